"""The action log on disk."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.trace import storage as module
from agentd.trace.entry import LogEntry
from agentd.trace.storage import LogStorage
from computer.wire import ScreenshotData

AT = datetime(2026, 1, 1, tzinfo=UTC)


def _entry(number: int) -> LogEntry:
    return LogEntry(number=number, id=f"call {number}", at=AT, desktop="main", actor="agent", actions=())


def _picture(data: bytes) -> ScreenshotData:
    text = base64.b64encode(data).decode()
    return ScreenshotData(data=text, model_size=(4, 3), native_size=(4, 3), taken_at=AT)


@pytest.fixture
def storage(tmp_path: Path) -> LogStorage:
    """A log of its own."""
    return LogStorage(tmp_path / "main", max_picture_bytes=100)


def test_entries_come_back_in_order(storage: LogStorage) -> None:
    """Ours: append only."""
    for number in (1, 2, 3):
        storage.append(_entry(number))

    assert storage.entries() == [_entry(1), _entry(2), _entry(3)]
    assert storage.entries(last=2) == [_entry(2), _entry(3)]
    assert storage.last_number() == 3


def test_later_line_of_the_same_number_stands_for_the_earlier_one(storage: LogStorage) -> None:
    """Ours: the picture after a call may come after its answer, and after the next line."""
    first, second = _entry(1), _entry(2)
    storage.append(first)
    storage.append(second)
    storage.append(first.model_copy(update={"pointer": (3, 4)}))

    assert [(entry.number, entry.pointer) for entry in storage.entries()] == [(1, (3, 4)), (2, None)]
    assert storage.last_number() >= 1


def test_line_that_a_crash_tore_harms_no_other(storage: LogStorage, tmp_path: Path) -> None:
    """Ours: the next line begins on its own."""
    storage.append(_entry(1))
    with (tmp_path / "main" / "actions.jsonl").open("a") as file:
        file.write('{"number": 2, "id": "ca')
    storage.append(_entry(3))

    assert [entry.number for entry in storage.entries()] == [1, 3]


def test_full_file_is_set_aside_and_the_oldest_goes(
    storage: LogStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: bounded, newest kept."""
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 1)
    for number in range(1, 9):
        storage.append(_entry(number))

    assert [entry.number for entry in storage.entries()] == [4, 5, 6, 7, 8]
    assert len(list((tmp_path / "main").glob("*.jsonl"))) == 5


def test_same_picture_is_stored_once(storage: LogStorage, tmp_path: Path) -> None:
    """Ours: content-addressed."""
    first, second = storage.keep(_picture(b"abc")), storage.keep(_picture(b"abc"))

    assert first == second
    assert storage.picture_path(first.sha256, first.media_type).read_bytes() == b"abc"
    assert len(list((tmp_path / "main" / "pictures").iterdir())) == 1


def test_pictures_used_longest_ago_make_room(storage: LogStorage) -> None:
    """Ours: bounded by bytes."""
    kept = [storage.keep(_picture(bytes([number]) * 30)) for number in range(6)]
    there = [storage.picture_path(each.sha256, each.media_type).exists() for each in kept]

    assert there[-1]
    assert not there[0]
    assert sum(there) <= 3


def test_log_is_private(storage: LogStorage, tmp_path: Path) -> None:
    """Ours: screens show what they show."""
    storage.append(_entry(1))

    assert (tmp_path / "main").stat().st_mode & 0o777 == 0o700
