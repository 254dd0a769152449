"""Reading, writing and editing real files."""

import os
import stat
from pathlib import Path

import pytest

from agentd.errors import FileRefused
from agentd.files.edits import Edit
from agentd.files.operations import edit_files, list_directory, read_text, write_file
from agentd.files.places import Places

ANYWHERE = Places()


def edit(old: str, new: str) -> list[Edit]:
    """One edit."""
    return [Edit(old_text=old, new_text=new)]


def test_write_makes_directories_and_keeps_mode(tmp_path: Path) -> None:
    """A new file has the usual mode; an old one keeps its own."""
    path = tmp_path / "a" / "b" / "run.sh"
    write_file(ANYWHERE, str(path), "one\n")
    path.chmod(0o750)

    write_file(ANYWHERE, str(path), "zwei ü\n")

    assert path.read_text() == "zwei ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert list(path.parent.iterdir()) == [path]


def test_write_follows_links_and_keeps_them(tmp_path: Path) -> None:
    """The file a link points to is written; the link stays a link."""
    target = tmp_path / "target"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)

    assert write_file(ANYWHERE, str(link), "new") == target

    assert link.is_symlink()
    assert target.read_text() == "new"


def test_roots_hold_after_links_are_followed(tmp_path: Path) -> None:
    """A link out of the roots, and dots, lead nowhere."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    places = Places(roots=(root,))

    for path in (root / "link", root / "up" / "secret", root / ".." / "secret", tmp_path / "root2"):
        with pytest.raises(FileRefused, match="outside"):
            read_text(places, str(path))
        with pytest.raises(FileRefused, match="outside"):
            write_file(places, str(path), "x")
    write_file(places, str(root / "inside"), "x")
    assert (tmp_path / "secret").read_text() == "s"


@pytest.mark.parametrize("path", ["", "relative", "./a", "a\0b", "/" + "a" * 5000, "~other/x"])
def test_paths_that_are_none(path: str) -> None:
    """Refused before anything is touched."""
    with pytest.raises(FileRefused):
        read_text(ANYWHERE, path)


def test_ring_of_links_pipe_directory_and_missing(tmp_path: Path) -> None:
    """Each is named for what it is, and none is waited for."""
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    os.mkfifo(tmp_path / "pipe")
    table = {"ring": "ring|exist|Too many", "pipe": "neither a file", "": "directory", "no": "does not exist"}

    for name, reason in table.items():
        with pytest.raises(FileRefused, match=reason):
            read_text(ANYWHERE, str(tmp_path / name))
    with pytest.raises(FileRefused, match="neither a file"):
        write_file(ANYWHERE, str(tmp_path / "pipe"), "x")


@pytest.mark.parametrize("raw", [b"\x89PNG\r\n\0\0", "ü".encode("latin-1"), "text".encode("utf-16")])
def test_binary_is_not_text(tmp_path: Path, raw: bytes) -> None:
    """Neither read nor edited, and said so."""
    path = tmp_path / "f"
    path.write_bytes(raw)

    with pytest.raises(FileRefused, match=r"binary|not UTF-8"):
        read_text(ANYWHERE, str(path))
    with pytest.raises(FileRefused, match=r"binary|not UTF-8"):
        edit_files(ANYWHERE, {str(path): edit("a", "b")})
    assert path.read_bytes() == raw


def test_byte_order_mark_survives_an_edit(tmp_path: Path) -> None:
    """It is not shown and not lost."""
    path = tmp_path / "f"
    path.write_bytes("\ufeffa\r\nb\r\n".encode())

    window, size = read_text(ANYWHERE, str(path))
    edit_files(ANYWHERE, {str(path): edit("b", "c")})

    assert (window.text, size) == ("1\ta\n2\tb\n3\t", 9)
    assert path.read_bytes() == "\ufeffa\r\nc\r\n".encode()


def test_edits_are_all_or_nothing(tmp_path: Path) -> None:
    """One edit that can't be applied leaves every file as it was, and every problem is named."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("a")
    bad.write_text("b")

    with pytest.raises(FileRefused) as caught:
        edit_files(
            ANYWHERE,
            {str(good): edit("a", "x"), str(bad): edit("zz", "x"), str(tmp_path / "none"): edit("a", "b")},
        )

    assert good.read_text() == "a"
    assert "nothing was written" in str(caught.value)
    assert "bad: edit 1" in str(caught.value)
    assert "none does not exist" in str(caught.value)


def test_one_file_by_two_names_is_refused(tmp_path: Path) -> None:
    """The second edit would overwrite the first."""
    path = tmp_path / "f"
    path.write_text("ab")
    (tmp_path / "link").symlink_to(path)

    with pytest.raises(FileRefused, match="are one file"):
        edit_files(ANYWHERE, {str(path): edit("a", "x"), str(tmp_path / "link"): edit("b", "y")})
    assert path.read_text() == "ab"


def test_edit_answers_with_a_diff(tmp_path: Path) -> None:
    """What changed, by path."""
    path = tmp_path / "f"
    path.write_text("a\nb\n")

    diffs = edit_files(ANYWHERE, {str(path): edit("b", "c")})

    assert path.read_text() == "a\nc\n"
    assert "-b\n+c\n" in diffs[str(path)]


def test_offset_past_the_end(tmp_path: Path) -> None:
    """An error that says how long the file is."""
    path = tmp_path / "f"
    path.write_text("a\n")

    with pytest.raises(FileRefused, match="has 2 lines"):
        read_text(ANYWHERE, str(path), offset=3)


def test_directory_is_listed_by_name(tmp_path: Path) -> None:
    """Directories end with a slash; names that are no UTF-8 are escaped."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()

    listing = list_directory(ANYWHERE, str(tmp_path), limit=2)

    assert listing.entries == ("\\udcff", "a")
    assert listing.window.text == "1\t\\udcff\n2\ta"
    assert listing.window.note == "1 more lines: go on with offset 3"


def test_empty_directory(tmp_path: Path) -> None:
    """Nothing, and no error."""
    assert list_directory(ANYWHERE, str(tmp_path)).entries == ()


def test_lone_surrogate_is_refused_before_the_file_is_touched(tmp_path: Path) -> None:
    """JSON can carry what UTF-8 can't."""
    path = tmp_path / "f"
    path.write_text("old")

    with pytest.raises(FileRefused, match="encoded"):
        write_file(ANYWHERE, str(path), "a\ud800")
    assert path.read_text() == "old"
