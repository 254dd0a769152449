"""
What a command printed, bounded: the first bytes, the last bytes, and how much lay between; pure.

Lines that are too long are cut as they come in, so that one endless line does not push all
others out.
"""

from dataclasses import dataclass

__all__ = ["CUT_SUFFIX", "HEAD_BYTES", "MAX_LINE_BYTES", "TAIL_BYTES", "Output", "Printed"]

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 16 * 1024
# Bytes of one line; a longer one keeps this many less the suffix's.
MAX_LINE_BYTES = 2_048
CUT_SUFFIX = b"...[line is cut]"
KEPT_OF_CUT_LINE = MAX_LINE_BYTES - len(CUT_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    Text to show and what it stands for.

    Attributes:
        text: head, a marker where bytes are missing, tail.
        original_bytes: how much was printed.
        omitted_bytes: how much of it is not in *text*, ends of cut lines included.
    """

    text: str
    original_bytes: int
    omitted_bytes: int


class Output:
    """Keeps the head and the tail of a stream of bytes, in about three times ``TAIL_BYTES`` of memory."""

    def __init__(self) -> None:
        self._lines = _LineCutter()
        self._head = bytearray()
        self._tail = bytearray()
        self._kept_bytes = 0
        self._fed_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take what was printed next."""
        self._fed_bytes += len(data)
        kept = self._lines.feed(data)
        self._kept_bytes += len(kept)
        room = HEAD_BYTES - len(self._head)
        self._head += kept[:room]
        self._tail += kept[room:] if room > 0 else kept
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def printed(self) -> Printed:
        """What there is so far."""
        pending = self._lines.pending
        between = self._kept_bytes + len(pending) - HEAD_BYTES - TAIL_BYTES
        head = bytes(self._head)
        tail = bytes(self._tail) + pending
        if between > 0:
            marker = f"\n\n[... {between} bytes omitted ...]\n\n"
            text = _decode_head(head) + marker + _decode_tail(tail[-TAIL_BYTES:])
        else:
            text = (head + tail).decode(errors="replace")
        omitted = max(0, between) + self._lines.cut_bytes
        return Printed(text=text, original_bytes=self._fed_bytes, omitted_bytes=omitted)


class _LineCutter:
    """Passes lines on, the long ones without their ends; *pending* waits for the rest of its line."""

    def __init__(self) -> None:
        self._line_bytes = 0
        self.pending = b""
        self.cut_bytes = 0

    def feed(self, data: bytes) -> bytes:
        return data if self._has_short_lines(data) else self._cut(data)

    def _has_short_lines(self, data: bytes) -> bool:
        """Nothing to cut, found without a step of Python per line; then *data* is counted as passed on."""
        first, *others = data.split(b"\n")
        length = self._line_bytes + len(first)
        if max(length, *map(len, others), 0) > KEPT_OF_CUT_LINE:
            return False
        self._line_bytes = len(others[-1]) if others else length
        return True

    def _cut(self, data: bytes) -> bytes:
        pieces = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            pieces += [self._go_on(data[start:end]), self._end_line()]
            start = end + 1
        pieces.append(self._go_on(data[start:]))
        return b"".join(pieces)

    def _go_on(self, body: bytes) -> bytes:
        room = max(0, KEPT_OF_CUT_LINE - self._line_bytes)
        was_cut = self._line_bytes > MAX_LINE_BYTES
        self._line_bytes += len(body)
        if was_cut:
            self.cut_bytes += len(body)
            return b""
        self.pending += body[room:]
        if self._line_bytes <= MAX_LINE_BYTES:
            return body[:room]
        self.cut_bytes += len(self.pending)
        self.pending = b""
        return body[:room] + CUT_SUFFIX

    def _end_line(self) -> bytes:
        ended = self.pending + b"\n"
        self.pending = b""
        self._line_bytes = 0
        return ended


def _decode_head(raw: bytes) -> str:
    """Text without half a character at its end."""
    text = raw.decode(errors="replace")
    return text.removesuffix("\ufffd") if _is_split_at_end(raw) else text


def _decode_tail(raw: bytes) -> str:
    """Text without half a character at its start; a character has at most three bytes after its first."""
    start = 0
    while start < min(3, len(raw)) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:].decode(errors="replace")


def _is_split_at_end(raw: bytes) -> bool:
    try:
        raw[-4:].decode()
    except UnicodeDecodeError as exc:
        return exc.reason == "unexpected end of data"
    return False
