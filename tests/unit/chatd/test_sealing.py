"""Secrets at rest."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from chatd.sealing import KEY_FILE, KeyFile, KeyUnusable, SealBroken, Sealer, load_sealer, new_key


def _key() -> str:
    return Fernet.generate_key().decode()


def test_what_is_sealed_can_be_opened_and_not_read() -> None:
    """Ours: any text, and nothing of it in the clear."""
    sealer = Sealer([_key()])
    sealed = sealer.seal("hunter2 🙂")

    assert b"hunter2" not in sealed
    assert sealer.open(sealed) == "hunter2 🙂"


def test_keys_can_be_replaced() -> None:
    """Ours: the first key seals, the older ones open still; without them it is said what to do."""
    old, new = _key(), _key()
    sealed = Sealer([old]).seal("x")

    assert Sealer([new, old]).open(sealed) == "x"
    with pytest.raises(SealBroken, match="enter it again"):
        Sealer([new]).open(sealed)


def test_a_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    """Ours: a restart opens what was sealed before; nobody else can read the key."""
    sealed = load_sealer([], tmp_path).seal("x")

    assert load_sealer([], tmp_path).open(sealed) == "x"
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", ["", "short", "ü" * 44])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    """Ours: with the command that makes one."""
    with pytest.raises(KeyUnusable, match="openssl"):
        Sealer([key])


@pytest.mark.attack
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o602, 0o666])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """Ours: what to do is said; nothing is mended in silence, since the key may be known by now."""
    load_sealer([], tmp_path)
    (tmp_path / KEY_FILE).chmod(mode)

    with pytest.raises(KeyUnusable, match="chmod 600"):
        load_sealer([], tmp_path)


def test_a_replaced_file_counts_at_once(tmp_path: Path) -> None:
    """Ours: a running process seals with the new key, and opens what the old one sealed."""
    file = KeyFile(tmp_path / KEY_FILE)
    sealer = Sealer(file)
    old = sealer.seal("x")
    (first,) = file.keys()
    file.write([new_key(), first])
    fresh = sealer.reseal(old)
    file.write(file.keys()[:1])

    assert sealer.open(fresh) == "x"
    with pytest.raises(SealBroken):
        sealer.open(old)


@pytest.mark.attack
def test_a_link_in_place_of_the_partial_file_is_not_followed(tmp_path: Path) -> None:
    """Ours: whoever plants one gets no key written to where it leads."""
    (tmp_path / "secrets.part").symlink_to(tmp_path / "elsewhere")
    load_sealer([], tmp_path)

    assert not (tmp_path / "elsewhere").exists()


def test_a_key_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Ours: the path is named."""
    (tmp_path / KEY_FILE).mkdir()
    with pytest.raises(KeyUnusable, match=KEY_FILE):
        load_sealer([], tmp_path)
