"""Which window is a program's own, and the end of what it says."""

import asyncio
import os

import pytest

from computer.session.launch import OutputTail, Process, choose_window, family_of, read_processes
from computer.wire import WindowInfo


def _window(number: int, pid: int | None) -> WindowInfo:
    box = (0, 0, 1, 1)
    return WindowInfo(id=number, title="", window_class="", pid=pid, bounds=box, frame=box)


@pytest.mark.parametrize(
    ("windows", "has_handed_over", "expected"),
    [
        ([], False, None),
        ([_window(1, 7)], False, None),
        ([_window(2, 7)], False, 2),
        ([_window(2, 9)], False, None),
        ([_window(2, 9)], True, 2),
        ([_window(2, None)], False, 2),
        ([_window(2, None), _window(3, 8)], False, 3),
        ([_window(2, 9), _window(3, 8)], True, 3),
    ],
    ids=["none", "old", "own", "foreign", "handed over", "nameless", "own first", "own before handed over"],
)
def test_first_window_of_a_program(
    windows: list[WindowInfo], has_handed_over: bool, expected: int | None
) -> None:
    """Ours: its own processes first, strangers only after a handover."""
    chosen = choose_window(windows, known={1}, family={7, 8}, has_handed_over=has_handed_over)

    assert expected == (chosen.id if chosen else None)


def test_family_holds_descendants_and_orphans_of_the_session() -> None:
    """Ours: a launcher that forks twice still owns what it made."""
    processes = {
        5: Process(parent=1, session=5),
        6: Process(parent=5, session=5),
        7: Process(parent=6, session=7),
        8: Process(parent=1, session=5),
        9: Process(parent=1, session=9),
    }

    assert family_of(5, processes) == {5, 6, 7, 8}


def test_own_process_is_read_with_its_parent() -> None:
    """Ours: /proc is read right, whatever the name of the program."""
    found = read_processes()[os.getpid()]

    assert (found.parent, found.session) == (os.getppid(), os.getsid(0))


async def test_tail_keeps_the_end_and_closes_with_the_writer() -> None:
    """Ours: bounded, and no descriptor is left."""
    tail = OutputTail()
    writer = os.dup(tail.writer)
    tail.started()
    await asyncio.to_thread(os.write, writer, b"x" * 5_000 + b"end\xff\n")

    assert tail.text().endswith("xend\N{REPLACEMENT CHARACTER}")
    os.close(writer)
    assert len(tail.text()) < 2_001
    assert not tail.is_open
    tail.close()
