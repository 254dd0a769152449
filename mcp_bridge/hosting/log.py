"""A server's log: what it says on stderr, noise on its stdout, what became of it. Bounded."""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from mcp_bridge.wire import LogLine

__all__ = ["ServerLog"]

# Lines and characters of one server that are kept, the newest.
MAX_LINES = 2_000
MAX_CHARACTERS = 256 * 1024
# Characters of one line.
MAX_LINE = 2_000


class ServerLog:
    """
    The newest lines of one server, without its secrets.

    Args:
        redact: takes secrets out of a line.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._lines: deque[LogLine] = deque()
        self._size = 0

    def add(self, origin: Literal["stderr", "stdout", "bridge"], text: str) -> None:
        """Keep one line; the oldest go."""
        printable = "".join(c if c.isprintable() or c == "\t" else "�" for c in text.rstrip("\r\n"))
        line = LogLine(at=datetime.now(UTC), origin=origin, text=self._redact(printable)[:MAX_LINE])
        self._lines.append(line)
        self._size += len(line.text)
        while len(self._lines) > MAX_LINES or self._size > MAX_CHARACTERS:
            self._size -= len(self._lines.popleft().text)

    def lines(self, limit: int = MAX_LINES) -> list[LogLine]:
        """The newest *limit* lines, the oldest first."""
        return list(self._lines)[-limit:] if limit > 0 else []

    def last_words(self) -> str:
        """The last line that the server itself wrote on stderr; "" when there is none."""
        return next(
            (line.text for line in reversed(self._lines) if line.origin == "stderr" and line.text), ""
        )
