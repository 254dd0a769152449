"""
What a viewer sends to a VNC server, as whole messages.

Pure: bytes in, messages and bytes for the viewer out. The greeting is answered here, as the server
that the viewer believes to talk to: whoever relays has shaken hands with the real one already, so
that an aborted handshake never reaches it and only one grammar follows, whatever the version.

RFB has no lengths, so a message of unknown type ends the connection: nothing that follows could be
told apart. A message is handed out when all of it has come, never in parts.

Sources: RFC 6143, 7.1 to 7.3 and 7.5; rfbproto for fences, continuous updates, SetDesktopSize,
QEMU's keys and the extended clipboard.
"""

import struct
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from computer.errors import RfbProtocolError
from computer.rfb.handshake import GREETING_BYTES, Need, read_minor
from computer.rfb.messages import MAX_FENCE_BYTES, ClipboardFlag, FenceFlag

__all__ = [
    "MAX_CLIPBOARD_BYTES",
    "ClipboardMessage",
    "ClipboardTrouble",
    "Control",
    "Encodings",
    "FenceMessage",
    "KeyMessage",
    "PointerMessage",
    "ResizeMessage",
    "UpdateRequest",
    "ViewerMessage",
    "ViewerParser",
]

# Bytes of UTF-8, line ends counted once. Longer texts are read past, never stored.
MAX_CLIPBOARD_BYTES = 1 << 20
# On the wire a line end has two bytes, and a zero byte follows the text.
_MAX_WIRE_TEXT = 2 * MAX_CLIPBOARD_BYTES + 1
# Bytes of a clipboard message that is read past at most; a longer one is no clipboard.
_MAX_SKIPPED = 64 << 20
_SKIP_BYTES = 65_536
# Encodings in one list; viewers name about thirty.
_MAX_ENCODINGS = 1_024
_NONE = 1
# Bytes of a message that says what the viewer's clipboard can do: flags, and a size for each format.
_MAX_CAPS_BYTES = 4 + 4 * 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A message that neither changes the desktop nor needs a closer look."""

    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """The viewer has room for the next update; *is_incremental* when it has seen the last."""

    raw: bytes
    is_incremental: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceMessage:
    """A fence of the viewer's, or its answer to one."""

    raw: bytes
    is_reply: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """The encodings that the viewer understands, best first."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMessage:
    """A key went down or up; *keycode* only in QEMU's message, 0 otherwise."""

    raw: bytes
    keysym: int
    keycode: int
    is_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerMessage:
    """Where the pointer is; bit 0 of *mask* is button 1."""

    raw: bytes
    x: int
    y: int
    mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeMessage:
    """The viewer wants another size of the screen."""

    raw: bytes


class ClipboardTrouble(Enum):
    """Why a clipboard message can't be passed on."""

    TOO_LONG = "longer than 1 MiB"
    NOT_TEXT = "no text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipboardMessage:
    """
    A message of either clipboard.

    Attributes:
        raw: as it came; empty when there is *trouble*.
        has_text: it carries text, rather than talk about it.
        is_request: it asks for the desktop's.
    """

    raw: bytes
    has_text: bool
    is_request: bool = False
    trouble: ClipboardTrouble | None = None


ViewerMessage = (
    Control
    | UpdateRequest
    | FenceMessage
    | Encodings
    | KeyMessage
    | PointerMessage
    | ResizeMessage
    | ClipboardMessage
)


class ViewerParser:
    """
    One viewer's stream.

    Args:
        init: the server's ServerInit message, handed to the viewer at the end of the handshake.

    Attributes:
        is_ready: the handshake is done.
        error: what RFB does not allow; whatever came after it is not looked at.
    """

    def __init__(self, init: bytes) -> None:
        self._init = init
        self._buffer = bytearray()
        self._out = bytearray(b"RFB 003.008\n")
        self._messages: deque[ViewerMessage] = deque()
        self.error: RfbProtocolError | None = None
        self.is_ready = False
        self._parser = self._run()
        self._needed = next(self._parser)

    def receive(self, data: bytes) -> list[ViewerMessage]:
        """Take what the viewer sent, in whatever pieces it came; the messages that are whole now."""
        if self.error is None:
            self._buffer += data
            self._advance()
        messages, self._messages = list(self._messages), deque()
        return messages

    def _advance(self) -> None:
        try:
            while len(self._buffer) >= self._needed:
                part = bytes(memoryview(self._buffer)[: self._needed])
                del self._buffer[: self._needed]
                self._needed = self._parser.send(part)
        except RfbProtocolError as exc:
            self.error = exc
            self._buffer.clear()

    def data_to_send(self) -> bytes:
        """Bytes for the viewer, of the handshake; each is handed out once."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def _run(self) -> Need[None]:
        yield from _greet(self._out.extend)
        self._out += self._init
        self.is_ready = True
        while True:
            kind = (yield 1)[0]
            read = _READERS.get(kind)
            if read is None:
                msg = f"the viewer sent a message of unknown type {kind}"
                raise RfbProtocolError(msg)
            message = yield from read(bytes([kind]))
            self._messages.append(message)


def _greet(send: Callable[[bytes], None]) -> Need[None]:
    """Shake hands as a server without security; sharing is not the viewer's to refuse."""
    minor = read_minor((yield GREETING_BYTES), "viewer")
    if minor == 3:
        send(struct.pack(">I", _NONE))
    else:
        send(bytes([1, _NONE]))
        chosen = (yield 1)[0]
        if chosen != _NONE:
            msg = f"the viewer chose security {chosen}, which was not offered"
            raise RfbProtocolError(msg)
        if minor == 8:
            send(struct.pack(">I", 0))
    yield 1


def _fixed(length: int) -> Callable[[bytes], Need[Control]]:
    def read(kind: bytes) -> Need[Control]:
        return Control(raw=kind + (yield length - 1))

    return read


def _encodings(_: bytes) -> Need[Encodings]:
    (count,) = struct.unpack(">xH", (yield 3))
    if count > _MAX_ENCODINGS:
        msg = f"the viewer names {count} encodings"
        raise RfbProtocolError(msg)
    return Encodings(numbers=struct.unpack(f">{count}i", (yield 4 * count)))


def _update_request(kind: bytes) -> Need[UpdateRequest]:
    body = yield 9
    return UpdateRequest(raw=kind + body, is_incremental=body[0] != 0)


def _key(kind: bytes) -> Need[KeyMessage]:
    body = yield 7
    down, keysym = struct.unpack(">BxxI", body)
    return KeyMessage(raw=kind + body, keysym=keysym, keycode=0, is_down=down != 0)


def _qemu(kind: bytes) -> Need[KeyMessage]:
    subtype = yield 1
    if subtype != b"\0":
        msg = f"the viewer sent a QEMU message of unknown type {subtype[0]}"
        raise RfbProtocolError(msg)
    body = yield 10
    down, keysym, keycode = struct.unpack(">HII", body)
    return KeyMessage(raw=kind + subtype + body, keysym=keysym, keycode=keycode, is_down=down != 0)


def _pointer(kind: bytes) -> Need[PointerMessage]:
    body = yield 5
    mask, x, y = struct.unpack(">BHH", body)
    return PointerMessage(raw=kind + body, x=x, y=y, mask=mask)


def _fence(kind: bytes) -> Need[FenceMessage]:
    head = yield 8
    flags, length = struct.unpack(">xxxIB", head)
    if length > MAX_FENCE_BYTES:
        msg = f"the viewer sent a fence of {length} bytes"
        raise RfbProtocolError(msg)
    return FenceMessage(raw=kind + head + (yield length), is_reply=not flags & FenceFlag.REQUEST)


def _resize(kind: bytes) -> Need[ResizeMessage]:
    head = yield 7
    return ResizeMessage(raw=kind + head + (yield 16 * head[5]))


def _clipboard(kind: bytes) -> Need[ClipboardMessage | Control]:
    head = yield 7
    (length,) = struct.unpack(">xxxi", head)
    is_extended = length < 0
    length = abs(length)
    if length > (_MAX_WIRE_TEXT if is_extended else MAX_CLIPBOARD_BYTES):
        yield from _skip(length)
        return ClipboardMessage(raw=b"", has_text=True, trouble=ClipboardTrouble.TOO_LONG)
    if is_extended and length < 4:
        raise RfbProtocolError("a clipboard message ends before its flags")
    body = yield length
    return (
        _extended(kind + head, body)
        if is_extended
        else ClipboardMessage(raw=kind + head + body, has_text=True)
    )


def _extended(head: bytes, body: bytes) -> ClipboardMessage | Control:
    (flags,) = struct.unpack_from(">I", body)
    if flags & ClipboardFlag.CAPS and len(body) <= _MAX_CAPS_BYTES:
        # Says what the viewer understands, and neither asks for a text nor offers one.
        return Control(raw=head + body)
    if not flags & ClipboardFlag.PROVIDE:
        is_request = bool(flags & ClipboardFlag.REQUEST)
        return ClipboardMessage(raw=head + body, has_text=False, is_request=is_request)
    trouble = _find_trouble(flags, body[4:])
    return ClipboardMessage(raw=b"" if trouble else head + body, has_text=True, trouble=trouble)


def _find_trouble(flags: int, packed: bytes) -> ClipboardTrouble | None:
    if flags & ClipboardFlag.FORMATS != ClipboardFlag.TEXT:
        return ClipboardTrouble.NOT_TEXT
    try:
        plain = zlib.decompressobj().decompress(packed, 4 + _MAX_WIRE_TEXT + 1)
    except zlib.error as exc:
        msg = f"the viewer's clipboard is broken: {exc}"
        raise RfbProtocolError(msg) from exc
    if len(plain) < 4:
        raise RfbProtocolError("the viewer's clipboard ends before its length")
    (length,) = struct.unpack_from(">I", plain)
    text = plain[4 : 4 + length]
    is_long = (
        length > _MAX_WIRE_TEXT or len(text.removesuffix(b"\0")) - text.count(b"\r\n") > MAX_CLIPBOARD_BYTES
    )
    return ClipboardTrouble.TOO_LONG if is_long else None


def _skip(length: int) -> Need[None]:
    if length > _MAX_SKIPPED:
        msg = f"the viewer sent {length} bytes for the clipboard"
        raise RfbProtocolError(msg)
    while length:
        part = min(length, _SKIP_BYTES)
        yield part
        length -= part


_READERS: dict[int, Callable[[bytes], Need[ViewerMessage]]] = {
    0: _fixed(20),  # SetPixelFormat
    2: _encodings,
    3: _update_request,
    4: _key,
    5: _pointer,
    6: _clipboard,
    150: _fixed(10),  # EnableContinuousUpdates
    248: _fence,
    251: _resize,
    255: _qemu,
}
