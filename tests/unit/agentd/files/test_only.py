"""The one file that may be written, and files that are handed over whole."""

from pathlib import Path

import pytest

from agentd.errors import FileRefused
from agentd.files.operations import read_bytes
from agentd.files.places import Places

ANYWHERE = Places()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plan of a chat, not written yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "plans" / "PLAN.md"


def test_the_plan_may_be_written_however_it_is_spelt(plan: Path) -> None:
    """And any file where there is no such limit."""
    for path in ("~/plans/PLAN.md", str(plan), str(plan.parent / ".." / "plans" / "PLAN.md")):
        ANYWHERE.require_only(path, "~/plans/PLAN.md")
    ANYWHERE.require_only("/etc/passwd", None)


@pytest.mark.parametrize("path", ["~/plans/OTHER.md", "/etc/passwd", "~/plans/PLAN.md/x", "PLAN.md"])
def test_no_other_file_may_be_written(plan: Path, path: str) -> None:
    """Spec 8.2: plan turns are limited to that file."""
    with pytest.raises(FileRefused):
        ANYWHERE.require_only(path, "~/plans/PLAN.md")


def test_a_plan_that_is_a_link_is_not_written(plan: Path, tmp_path: Path) -> None:
    """Spec 8.2: it must not resolve elsewhere, however the link came there."""
    (tmp_path / "secret").write_text("x")
    plan.parent.mkdir()
    plan.symlink_to(tmp_path / "secret")
    for path in ("~/plans/PLAN.md", str(tmp_path / "secret")):
        with pytest.raises(FileRefused, match="no link"):
            ANYWHERE.require_only(path, "~/plans/PLAN.md")


def test_a_whole_file_is_handed_over(tmp_path: Path) -> None:
    """Bytes as they are; what is too large, a directory or missing is refused by name."""
    path = tmp_path / "data"
    path.write_bytes(b"\x00\xff" * 50)

    assert read_bytes(ANYWHERE, str(path), 100) == (path, b"\x00\xff" * 50)
    for wrong, limit in ((path, 99), (tmp_path, 100), (tmp_path / "missing", 100)):
        with pytest.raises(FileRefused, match=wrong.name):
            read_bytes(ANYWHERE, str(wrong), limit)
