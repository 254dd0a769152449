"""
The clipboard of an RFB connection, old and extended.

Pure. The old one sends Latin-1 and hopes. The extended one (an offer, a request, the text in
UTF-8) is what tells whether anybody took the text.

Source: rfbproto, "Extended Clipboard Pseudo-Encoding".
"""

import struct
import zlib
from collections.abc import Callable

from computer.errors import RfbProtocolError
from computer.rfb import messages as wire
from computer.rfb.handshake import Need
from computer.rfb.messages import ClipboardFlag, Event

__all__ = ["MAX_TEXT_BYTES", "Clipboard"]

# Bytes of a text that is kept; longer ones are read past. Xvnc itself drops those over 256 KiB.
MAX_TEXT_BYTES = 4 << 20
# Bytes of one message. A server that claims more has lost its place in the stream.
MAX_MESSAGE_BYTES = 64 << 20
_SKIP_BYTES = 65_536
_ACTIONS = (
    ClipboardFlag.CAPS
    | ClipboardFlag.REQUEST
    | ClipboardFlag.PEEK
    | ClipboardFlag.NOTIFY
    | ClipboardFlag.PROVIDE
)


class Clipboard:
    """
    What the server can do with a clipboard.

    Attributes:
        is_extended: the server has the extended clipboard, with text.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.is_extended = False

    def offer(self) -> None:
        """Tell the server that we have text: it takes the clipboard over."""
        self._send(wire.render_clipboard(ClipboardFlag.NOTIFY | ClipboardFlag.TEXT))

    def provide(self, text: str) -> None:
        """Hand the text over, asked or not."""
        self._send(wire.render_clipboard_text(text))

    def request(self) -> None:
        """Ask for the server's text."""
        self._send(wire.render_clipboard(ClipboardFlag.REQUEST | ClipboardFlag.TEXT))

    def cut_text(self, length: int) -> Need[Event | None]:
        """Read a message of the old clipboard."""
        data = yield from _read(length)
        return None if data is None else wire.CutText(text=data.decode("latin-1"))

    def message(self, length: int) -> Need[Event | None]:
        """
        Read a message of the extended clipboard.

        Raises:
            RfbProtocolError: it is too short for its own flags.
        """
        if length < 4:
            raise RfbProtocolError("a clipboard message ends before its flags")
        (flags,) = struct.unpack(">I", (yield 4))
        body = yield from _read(length - 4)
        if flags & ClipboardFlag.CAPS:
            self._take_caps(flags)
            return None
        if flags & ClipboardFlag.NOTIFY:
            has_text = bool(flags & ClipboardFlag.TEXT)
            return wire.ClipboardOffered(has_text=has_text, is_empty=not flags & ClipboardFlag.FORMATS)
        if flags & ClipboardFlag.PROVIDE:
            has_text = bool(flags & ClipboardFlag.TEXT) and body is not None
            return wire.ClipboardProvided(text=_unpack(body or b"") if has_text else None)
        if flags & ClipboardFlag.REQUEST and flags & ClipboardFlag.TEXT:
            return wire.ClipboardRequested()
        return None

    def _take_caps(self, flags: int) -> None:
        # The sizes that follow limit what is sent unasked; they bind nobody who was asked.
        self.is_extended = bool(flags & ClipboardFlag.TEXT)
        if self.is_extended:
            self._send(wire.render_clipboard(_ACTIONS | ClipboardFlag.TEXT, struct.pack(">I", 0)))


def _read(length: int) -> Need[bytes | None]:
    """Read a text; None when it is too long to keep."""
    if length > MAX_MESSAGE_BYTES:
        msg = f"the VNC server sent {length} bytes for the clipboard"
        raise RfbProtocolError(msg)
    if length <= MAX_TEXT_BYTES:
        return (yield length)
    while length:
        part = min(length, _SKIP_BYTES)
        yield part
        length -= part
    return None


def _unpack(data: bytes) -> str | None:
    """Text of a message; None when it is too long. Raises RfbProtocolError when it is broken."""
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(data, MAX_TEXT_BYTES + 4)
    except zlib.error as exc:
        msg = f"the clipboard's text is broken: {exc}"
        raise RfbProtocolError(msg) from exc
    if len(plain) < 4:
        raise RfbProtocolError("the clipboard's text ends before its length")
    (length,) = struct.unpack_from(">I", plain)
    if length > MAX_TEXT_BYTES:
        return None
    if length > len(plain) - 4:
        raise RfbProtocolError("the clipboard's text ends early")
    text = plain[4 : 4 + length].decode("utf-8", "replace")
    return text.removesuffix("\0").replace("\r\n", "\n")
