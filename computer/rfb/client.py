"""
One RFB connection: bytes in, events and bytes out, and the picture as it is now.

Owns the parser of the server's messages and what has been learnt from them. After an error the
connection is of no use any more; every later ``receive`` raises the same error again.
"""

import struct
from collections import deque
from collections.abc import Sequence

import numpy as np

from computer.errors import ComputerError, RfbProtocolError
from computer.geometry import Point, Rect, Size
from computer.pixels import Cursor, Framebuffer
from computer.rfb import messages as wire
from computer.rfb.clipboard import Clipboard
from computer.rfb.handshake import MAX_NAME_BYTES, Need, check_size, handshake
from computer.rfb.messages import Encoding, Event, FenceFlag, Led, ServerMessage, Updated
from computer.rfb.pixels import (
    PIXEL,
    Inflater,
    changed_box,
    decode_cursor,
    decode_raw,
    decode_zrle,
    zrle_limit,
)

__all__ = ["PLAIN", "PSEUDO", "SMALL", "RfbClient"]

# Encodings for a server near by, where copying is cheaper than packing, and for one far away.
PLAIN = (Encoding.RAW, Encoding.COPY_RECT)
SMALL = (Encoding.ZRLE, Encoding.ZLIB, Encoding.COPY_RECT, Encoding.RAW)
PSEUDO = (
    Encoding.CURSOR_WITH_ALPHA, Encoding.CURSOR, Encoding.EXTENDED_DESKTOP_SIZE, Encoding.DESKTOP_SIZE,
    Encoding.LAST_RECT, Encoding.FENCE, Encoding.DESKTOP_NAME, Encoding.LED_STATE,
    Encoding.VMWARE_CURSOR_POSITION, Encoding.POINTER_POSITION, Encoding.EXTENDED_CLIPBOARD,
)  # fmt: skip
# Pixels. Edge of a pointer picture.
MAX_CURSOR = 1_024
# Bytes of a message that is skipped, taken at once.
SKIP_BYTES = 65_536


class RfbClient:
    """
    The client's side of a connection.

    Attributes:
        size: of the screen; None until the handshake is done.
        name: of the desktop.
        framebuffer: the picture; whole after each ``Updated``.
        cursor: picture of the pointer with its hot spot at the origin, None while unknown or hidden.
        pointer: where the server says that the pointer is; None when it never said.
        leds: lock keys that are on; None when the server does not tell.
        has_fences: the server answers fences.
        clipboard: the extended clipboard, and whether the server has it.
    """

    def __init__(self, *, password: str | None = None, encodings: Sequence[Encoding] = PLAIN) -> None:
        self._password = password
        self._encodings = (*encodings, *PSEUDO)
        self._buffer = bytearray()
        self._out = bytearray()
        self._events: deque[Event] = deque()
        self._error: ComputerError | None = None
        self._pixels = np.zeros((1, 1), PIXEL)
        self._inflaters = {Encoding.ZLIB: Inflater(), Encoding.ZRLE: Inflater()}
        self.size: Size | None = None
        self.name = ""
        self.cursor: Cursor | None = None
        self.pointer: Point | None = None
        self.leds: Led | None = None
        self.has_fences = False
        self.clipboard = Clipboard(self.send)
        self._parser = self._run()
        self._needed = next(self._parser)

    @property
    def framebuffer(self) -> Framebuffer:
        """A view of the picture: ``(height, width, 4)`` uint8 BGRX; copy it before the next ``receive``."""
        return self._pixels.view(np.uint8).reshape(*self._pixels.shape, 4)

    def receive(self, data: bytes) -> list[Event]:
        """
        Take what the server sent, in whatever pieces it came.

        Raises:
            RfbProtocolError: RFB does not allow it.
            DisplayLost: the server does not let us in.
        """
        if self._error is not None:
            raise self._error
        self._buffer += data
        try:
            while len(self._buffer) >= self._needed:
                part = bytes(memoryview(self._buffer)[: self._needed])
                del self._buffer[: self._needed]
                self._needed = self._parser.send(part)
        except ComputerError as exc:
            self._error = exc
            raise
        events, self._events = list(self._events), deque()
        return events

    def data_to_send(self) -> bytes:
        """Bytes for the server; each is handed out once."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def send(self, data: bytes) -> None:
        """Queue bytes for the server, of the ``render_`` functions."""
        self._out += data

    def _run(self) -> Need[None]:
        greeted = yield from handshake(self.send, self._password)
        self.name = greeted.name
        self._resize(greeted.size)
        self.send(wire.render_pixel_format() + wire.render_encodings(self._encodings))
        while True:
            yield from self._message((yield 1)[0])

    def _message(self, kind: int) -> Need[None]:
        if kind == ServerMessage.UPDATE:
            yield from self._update()
        elif kind == ServerMessage.CUT_TEXT:
            yield from self._cut_text()
        elif kind == ServerMessage.FENCE:
            yield from self._fence()
        elif kind == ServerMessage.COLOUR_MAP:
            # Means nothing to true colours.
            _, count = struct.unpack(">xHH", (yield 5))
            yield from _skip(6 * count)
        elif kind not in (ServerMessage.BELL, ServerMessage.END_OF_CONTINUOUS_UPDATES):
            msg = f"the VNC server sent a message of unknown type {kind}"
            raise RfbProtocolError(msg)

    def _update(self) -> Need[None]:
        (count,) = struct.unpack(">xH", (yield 3))
        sent: list[Rect] = []
        changed: list[Rect] = []
        for _ in range(count):
            left, top, width, height, encoding = struct.unpack(">HHHHi", (yield 12))
            if encoding == Encoding.LAST_RECT:
                break
            if encoding in (Encoding.RAW, Encoding.COPY_RECT, Encoding.ZLIB, Encoding.ZRLE):
                area = self._inside(left, top, width, height)
                if area is not None or encoding != Encoding.RAW:
                    difference = yield from self._rectangle(area, Encoding(encoding))
                    changed.extend([difference] if difference is not None else [])
                sent.extend([area] if area is not None else [])
            else:
                yield from self._pseudo(encoding, left, top, (width, height))
        self._events.append(Updated(sent=tuple(sent), changed=tuple(changed)))

    def _inside(self, left: int, top: int, width: int, height: int) -> Rect | None:
        """Check a rectangle; None when it has no pixels."""
        rows, columns = self._pixels.shape
        if left + width > columns or top + height > rows:
            msg = f"the VNC server sent a rectangle outside its {columns}x{rows} screen"
            raise RfbProtocolError(msg)
        if not (width and height):
            return None
        return Rect(left=left, top=top, right=left + width, bottom=top + height)

    def _rectangle(self, area: Rect | None, encoding: Encoding) -> Need[Rect | None]:
        size = area.size if area is not None else None
        pixels = None
        if encoding == Encoding.COPY_RECT:
            left, top = struct.unpack(">HH", (yield 4))
            source = self._inside(left, top, size.width, size.height) if size is not None else None
            pixels = self._pixels[_slices(source)].copy() if source is not None else None
        elif encoding == Encoding.RAW:
            pixels = decode_raw((yield size.width * size.height * 4), size) if size is not None else None
        else:
            pixels = yield from self._packed(size, encoding)
        if area is None or pixels is None:
            return None
        target = self._pixels[_slices(area)]
        difference = changed_box(target, pixels, area)
        target[:] = pixels
        return difference

    def _packed(self, size: Size | None, encoding: Encoding) -> "Need[np.ndarray | None]":
        (length,) = struct.unpack(">I", (yield 4))
        plain_limit = 0
        if size is not None:
            is_zrle = encoding == Encoding.ZRLE
            plain_limit = zrle_limit(size) if is_zrle else size.width * size.height * 4
        # Deflate adds five bytes a block to what it can't make smaller.
        if length > plain_limit + plain_limit // 8 + 1_024:
            msg = f"the VNC server sent a rectangle of {length} bytes, more than it can need"
            raise RfbProtocolError(msg)
        plain = self._inflaters[encoding].inflate((yield length), plain_limit + 1)
        if size is None:
            return None
        if encoding == Encoding.ZRLE:
            return decode_zrle(plain, size)
        if len(plain) != plain_limit:
            raise RfbProtocolError("a rectangle's data has another length than its pixels")
        return decode_raw(plain, size)

    def _pseudo(self, encoding: int, x: int, y: int, extent: tuple[int, int]) -> Need[None]:
        width, height = extent
        if encoding in (Encoding.CURSOR, Encoding.CURSOR_WITH_ALPHA):
            yield from self._cursor(Point(x=x, y=y), extent, has_alpha=encoding == Encoding.CURSOR_WITH_ALPHA)
        elif encoding == Encoding.DESKTOP_SIZE:
            self._resize(check_size(width, height))
        elif encoding == Encoding.EXTENDED_DESKTOP_SIZE:
            screens = (yield 4)[0]
            yield from _skip(16 * screens)
            # A refused request of ours (x = 1, y = why) tells the size that stays.
            self._resize(check_size(width, height))
        elif encoding == Encoding.DESKTOP_NAME:
            (length,) = struct.unpack(">I", (yield 4))
            if length > MAX_NAME_BYTES:
                msg = f"the VNC server's name has {length} bytes"
                raise RfbProtocolError(msg)
            yield from _skip(length)
        elif encoding == Encoding.LED_STATE:
            self.leds = Led((yield 1)[0] & (Led.SCROLL | Led.NUM | Led.CAPS))
        elif encoding in (Encoding.POINTER_POSITION, Encoding.VMWARE_CURSOR_POSITION):
            self.pointer = Point(x=x, y=y)
        else:
            msg = f"the VNC server sent a rectangle in encoding {encoding}, which was not offered"
            raise RfbProtocolError(msg)

    def _cursor(self, hot: Point, extent: tuple[int, int], *, has_alpha: bool) -> Need[None]:
        width, height = extent
        if max(width, height) > MAX_CURSOR:
            msg = f"the VNC server's pointer can't be {width}x{height}"
            raise RfbProtocolError(msg)
        if has_alpha and struct.unpack(">i", (yield 4)) != (Encoding.RAW,):
            raise RfbProtocolError("the VNC server's pointer is encoded in a way that was not offered")
        length = width * height * 4
        data = yield length if has_alpha else length + (width + 7) // 8 * height
        if not length:
            self.cursor = None
            return
        pixels = decode_cursor(data, Size(width=width, height=height), has_alpha=has_alpha)
        self.cursor = Cursor(pixels=pixels, origin=Point(x=-hot.x, y=-hot.y))

    def _cut_text(self) -> Need[None]:
        (length,) = struct.unpack(">xxxi", (yield 7))
        if length < 0:
            event = yield from self.clipboard.message(-length)
        else:
            event = yield from self.clipboard.cut_text(length)
        if event is not None:
            self._events.append(event)

    def _fence(self) -> Need[None]:
        flags, length = struct.unpack(">xxxIB", (yield 8))
        if length > wire.MAX_FENCE_BYTES:
            msg = f"the VNC server sent a fence of {length} bytes"
            raise RfbProtocolError(msg)
        payload = yield length
        self.has_fences = True
        if flags & FenceFlag.REQUEST:
            # Unanswered, the server holds its updates back.
            known = FenceFlag.BLOCK_BEFORE | FenceFlag.BLOCK_AFTER | FenceFlag.SYNC_NEXT
            self.send(wire.render_fence(flags & known, payload))
        else:
            self._events.append(wire.FenceReply(payload=payload))

    def _resize(self, size: Size) -> None:
        if size == self.size:
            return
        pixels = np.zeros((size.height, size.width), PIXEL)
        if self.size is not None:
            rows, columns = min(size.height, self.size.height), min(size.width, self.size.width)
            pixels[:rows, :columns] = self._pixels[:rows, :columns]
            self._events.append(wire.Resized(size=size))
        self._pixels, self.size = pixels, size


def _slices(area: Rect) -> tuple[slice, slice]:
    return slice(area.top, area.bottom), slice(area.left, area.right)


def _skip(count: int) -> Need[None]:
    while count:
        part = min(count, SKIP_BYTES)
        yield part
        count -= part
