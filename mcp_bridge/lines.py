"""Lines of a byte stream, each bounded; sans I/O."""

import re
from dataclasses import dataclass

__all__ = ["LineSplitter", "Overlong"]

# Bytes kept of both ends of a line that is too long.
END_BYTES = 2_048
# The id of a JSON-RPC message whose id comes first, or last. Both ends are at the top level for sure:
# nothing but the version may come before it, nothing but the last brace after it.
_ID = rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")'
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlong:
    """A line that was dropped because of its length, in bytes."""

    size: int
    head: bytes
    tail: bytes

    @property
    def request_id(self) -> int | str | None:
        """Id of the JSON-RPC response that it was; None when its ends don't show it."""
        found = _FIRST.match(self.head) or _LAST.search(self.tail)
        if found is None:
            return None
        text = found[1].decode(errors="replace")
        return text.strip('"') if text.startswith('"') else int(text)


class LineSplitter:
    """Feed it bytes, take lines; holds at most *limit* bytes and what was fed last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Lines that *data* completes, without their end."""
        lines: list[bytes | Overlong] = []
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def flush(self) -> list[bytes | Overlong]:
        """The last line, when the stream ended without an end of line."""
        return [self._take()] if self._size else []

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        if self._parts:
            self._head = b"".join(self._parts)
            self._tail = self._head[-END_BYTES:]
            self._parts.clear()
        if len(self._head) < END_BYTES:
            self._head += part[:END_BYTES]
        self._head = self._head[:END_BYTES]
        self._tail = (self._tail + part[-END_BYTES:])[-END_BYTES:]

    def _take(self) -> bytes | Overlong:
        if self._size > self._limit:
            line: bytes | Overlong = Overlong(size=self._size, head=self._head, tail=self._tail)
        else:
            line = b"".join(self._parts)
        self._parts.clear()
        self._size, self._head, self._tail = 0, b"", b""
        return line
