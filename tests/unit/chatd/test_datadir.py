"""The data directory belongs to one process at a time."""

import fcntl
import os
from pathlib import Path

import pytest

from chatd.datadir import DataDir, DataDirBusy, DataDirUnusable


def test_a_data_directory_is_private_and_held_once(tmp_path: Path) -> None:
    """Ours: 0700; the second one is told who holds it."""
    path = tmp_path / "a" / "data"
    first = DataDir(path)
    with pytest.raises(DataDirBusy) as caught:
        DataDir(path)

    assert path.stat().st_mode & 0o777 == 0o700
    assert str(os.getpid()) in str(caught.value)
    first.release()
    assert list(path.iterdir()) == []
    DataDir(path).release()


def test_a_directory_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """Ours: an existing directory is tightened."""
    tmp_path.chmod(0o755)
    DataDir(tmp_path).release()

    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_place_that_can_t_be_written_is_refused(tmp_path: Path) -> None:
    """Ours: a file where the directory should be."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataDirUnusable):
        DataDir(tmp_path / "file" / "data")


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the holder may go between our opening of its file and our lock; two must never hold."""
    holder = DataDir(tmp_path)
    flock = fcntl.flock

    def leave_first(fd: int, flags: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        holder.release()
        flock(fd, flags)

    monkeypatch.setattr(fcntl, "flock", leave_first)
    second = DataDir(tmp_path)
    with pytest.raises(DataDirBusy):
        DataDir(tmp_path)

    second.release()
