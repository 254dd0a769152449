"""
A window of a text file, numbered for a model; pure.

Lines are ``number, tab, text``. A file that ends with a newline has one empty line after it,
as editors count. What is over a limit is left out, and the window says where to go on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["MAX_LINES", "MAX_LINE_BYTES", "MAX_WINDOW_BYTES", "Window", "number_lines"]

# Lines of one answer, where the caller names no limit.
MAX_LINES = 2_000
# Bytes of one line; generated files have lines of megabytes.
MAX_LINE_BYTES = 1_024
# Bytes of one answer, numbers included.
MAX_WINDOW_BYTES = 32 * 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    Numbered lines of a file.

    Attributes:
        text: the lines, each ``number, tab, text``.
        first: 1-based number of the first line.
        count: how many lines *text* holds.
        total: how many lines the file has.
        cut: numbers of the lines that were longer than ``MAX_LINE_BYTES``.
    """

    text: str
    first: int
    count: int
    total: int
    cut: tuple[int, ...] = ()

    @property
    def next_offset(self) -> int | None:
        """Where to go on; None at the file's end."""
        following = self.first + self.count
        return following if following <= self.total else None

    @property
    def note(self) -> str | None:
        """A sentence about what is missing; None when nothing is."""
        notes = []
        if self.next_offset is not None:
            notes.append(
                f"{self.total - self.next_offset + 1} more lines: go on with offset {self.next_offset}"
            )
        if self.cut:
            shown = ", ".join(map(str, self.cut[:10])) + (", …" if len(self.cut) > 10 else "")
            notes.append(f"cut to {MAX_LINE_BYTES} bytes: line {shown}")
        return "; ".join(notes) or None


def number_lines(lines: Iterable[str], *, offset: int = 1, limit: int = MAX_LINES) -> Window:
    """
    Number a file's lines from *offset* (1-based) on, at most *limit* of them.

    *lines* come without their newlines; all are counted, few are kept.
    """
    kept: list[str] = []
    cut: list[int] = []
    size = 0
    full = False
    total = 0
    for total, line in enumerate(lines, start=1):
        if total < offset or full:
            continue
        shown = _bounded(line)
        numbered = f"{total}\t{shown}"
        # The first line is always given: a window that stays empty would never end.
        room = not kept or size + len(numbered.encode()) + 1 <= MAX_WINDOW_BYTES
        if len(kept) >= limit or not room:
            full = True
            continue
        if shown is not line:
            cut.append(total)
        kept.append(numbered)
        size += len(numbered.encode()) + 1
    return Window(text="\n".join(kept), first=offset, count=len(kept), total=total, cut=tuple(cut))


def _bounded(line: str) -> str:
    raw = line.encode()
    if len(raw) <= MAX_LINE_BYTES:
        return line
    return raw[:MAX_LINE_BYTES].decode(errors="ignore")
