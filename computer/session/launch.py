"""
Start an application and see its first window come.

Owns the rule which window belongs to a program, and the bounded tail of what the program
says. A window is a program's own when the process that made it descends from it or is in its
session. Launchers hand over to a process that runs already: a new window of nobody we
know counts when the program has ended well, or when the window names no process.
"""

import asyncio
import os
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from computer.wire import WindowInfo

__all__ = ["OutputTail", "Process", "choose_window", "family_of", "read_processes"]

# Bytes of a program's output that are kept, and read at once.
TAIL_BYTES = 2_000
CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process: its parent and its session."""

    parent: int
    session: int


class OutputTail:
    """
    The end of what a program writes, kept while it runs; never blocks the program.

    ``writer`` is given to the program and closed here afterwards with ``started``.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # The program must block where its pipe is full, as it would in a terminal.
        os.set_blocking(self.writer, True)
        self._kept: deque[int] = deque(maxlen=TAIL_BYTES)
        self.is_open = True
        self._is_writable = True
        self._loop.add_reader(self._reader, self._on_data)

    def started(self) -> None:
        """Close our end for writing: the program has its own."""
        if self._is_writable:
            self._is_writable = False
            os.close(self.writer)

    def text(self) -> str:
        """What was written last, as text."""
        self._on_data()
        return bytes(self._kept).decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Stop reading; harmless when repeated."""
        self.started()
        if self.is_open:
            self.is_open = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reader)
            os.close(self._reader)

    def _on_data(self) -> None:
        if not self.is_open:
            return
        with suppress(BlockingIOError):
            data = os.read(self._reader, CHUNK_BYTES)
            self._kept.extend(data[-TAIL_BYTES:])
            if not data:
                self.close()


def choose_window(
    windows: Iterable[WindowInfo], *, known: Collection[int], family: Collection[int], has_handed_over: bool
) -> WindowInfo | None:
    """
    Choose the first window of a program among those that are new; None while it has none.

    Args:
        windows: all windows now.
        known: ids that were there before the program started.
        family: its processes.
        has_handed_over: the program has ended well and may have asked another to open a window.
    """
    new = [window for window in windows if window.id not in known]
    own = [window for window in new if window.pid in family]
    nameless = [window for window in new if window.pid is None or has_handed_over]
    return next(iter([*own, *nameless]), None)


def family_of(leader: int, processes: Mapping[int, Process]) -> frozenset[int]:
    """Processes that descend from *leader* or are in its session; itself as well."""
    family = {leader} | {pid for pid, process in processes.items() if process.session == leader}
    has_grown = True
    while has_grown:
        children = {pid for pid, process in processes.items() if process.parent in family}
        has_grown = not children <= family
        family |= children
    return frozenset(family)


def read_processes() -> dict[int, Process]:
    """All processes of the machine, from ``/proc``; empty where there is none."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The name in brackets may hold anything, blanks and brackets too.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found[int(entry.name)] = Process(parent=int(fields[1]), session=int(fields[3]))
    return found
