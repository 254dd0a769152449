"""
Updates of a screen, as a server sends them, the same bytes for every client of a style.

Pure. Tight, with its zlib stream begun anew for each rectangle, and JPEG carry nothing over from what
was sent before: what was encoded once can be sent to anybody, whatever that one has seen. Of Tight's four
zlib streams only the last is used, which X servers leave alone: theirs go on where a broadcast ends.
Where a client knows no Tight, raw pixels in its own order.

Source: rfbproto, 7.7.1 (raw) and 7.7.6 (Tight).
"""

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from isal import isal_zlib
from PIL import Image

from computer.geometry import Rect, Size
from computer.pixels import Framebuffer
from computer.rfb.messages import Encoding

__all__ = ["Style", "parse_style", "render_no_cursor", "render_resize", "render_update"]

# Quality of JPEG: one for all, as all get the same bytes. TigerVNC's default has the same.
QUALITY = 80
# Colours among the looked-at pixels of a rectangle from which on it is a photo, and how far these are apart.
PHOTO_COLOURS = 96
SAMPLE_STEP = 8
# Fastest compression; text and surfaces of one colour shrink well with it.
LEVEL = 1
# Bytes below which Tight sends pixels without compression.
MIN_COMPRESSED = 12
# Basic compression in stream 3, begun anew; one colour; JPEG.
_STREAM_3, _FILL, _JPEG = 0x38, 0x80, 0x90
_COLOUR_BITS = 0x00FF_FFFF
# A quality that a client names allows JPEG.
QUALITY_LEVELS = range(-32, -22)
_FORMAT_BYTES = 16
# Tight packs the pixels of such formats as red, green, blue, whatever their order.
_PACKED = (32, 24, 255, 255, 255)


@dataclass(frozen=True, slots=True)
class Style:
    """
    How a client wants updates.

    Attributes:
        is_tight: else raw.
        has_jpeg: photos may lose a little.
        order: of raw pixels: where in its four bytes blue, green and red go.
    """

    is_tight: bool = True
    has_jpeg: bool = True
    order: tuple[int, int, int] = (0, 1, 2)


def parse_style(pixel_format: bytes, encodings: Iterable[int]) -> Style | None:
    """
    The style of a client that named these; None: it wants something that is not made here.

    Args:
        pixel_format: 16 bytes of its SetPixelFormat message, or of the server's.
        encodings: that it understands.
    """
    bits, depth, is_big, is_true, *maxima, red, green, blue = struct.unpack(
        ">BBBBHHHBBBxxx", pixel_format[:_FORMAT_BYTES]
    )
    known = set(encodings)
    if not is_true or (bits, depth, *maxima) != _PACKED or any(s % 8 for s in (red, green, blue)):
        return None
    if Encoding.TIGHT in known:
        return Style(has_jpeg=any(level in known for level in QUALITY_LEVELS))
    bytes_of = [3 - shift // 8 if is_big else shift // 8 for shift in (blue, green, red)]
    return Style(is_tight=False, has_jpeg=False, order=(bytes_of[0], bytes_of[1], bytes_of[2]))


def render_update(frame: Framebuffer, rects: Iterable[Rect], style: Style) -> bytes:
    """One whole message that shows *rects* of *frame*, which is BGRX."""
    parts = [_render_rect(frame, rect, style) for rect in rects]
    return struct.pack(">BxH", 0, len(parts)) + b"".join(parts)


def render_resize(size: Size, encodings: Iterable[int]) -> bytes | None:
    """A message that the screen has another size now; None when the client does not understand that."""
    known = set(encodings)
    if Encoding.EXTENDED_DESKTOP_SIZE in known:
        screen = struct.pack(">BxxxIHHHHI", 1, 0, 0, 0, size.width, size.height, 0)
        head = struct.pack(">HHHHi", 0, 0, size.width, size.height, Encoding.EXTENDED_DESKTOP_SIZE)
        return struct.pack(">BxH", 0, 1) + head + screen
    if Encoding.DESKTOP_SIZE in known:
        head = struct.pack(">HHHHi", 0, 0, size.width, size.height, Encoding.DESKTOP_SIZE)
        return struct.pack(">BxH", 0, 1) + head
    return None


def render_no_cursor(encodings: Iterable[int]) -> bytes:
    """A message that the client shall draw no pointer, if it draws one: it is in the picture."""
    if Encoding.CURSOR not in encodings:
        return b""
    return struct.pack(">BxHHHHHi", 0, 1, 0, 0, 0, 0, Encoding.CURSOR)


def _render_rect(frame: Framebuffer, rect: Rect, style: Style) -> bytes:
    part = np.ascontiguousarray(frame[rect.top : rect.bottom, rect.left : rect.right])
    encoding = Encoding.TIGHT if style.is_tight else Encoding.RAW
    size = rect.size
    head = struct.pack(">HHHHi", rect.left, rect.top, size.width, size.height, encoding)
    return head + (_tight(part, has_jpeg=style.has_jpeg) if style.is_tight else _raw(part, style.order))


def _raw(part: Framebuffer, order: tuple[int, int, int]) -> bytes:
    if order == (0, 1, 2):
        return part.tobytes()
    pixels = np.zeros_like(part)
    for channel, place in enumerate(order):
        pixels[..., place] = part[..., channel]
    return pixels.tobytes()


def _tight(part: Framebuffer, *, has_jpeg: bool) -> bytes:
    words = part.view(np.uint32)[..., 0] & _COLOUR_BITS
    colour = words[0, 0]
    samples = words[::SAMPLE_STEP, ::SAMPLE_STEP]
    if (samples == colour).all() and (words == colour).all():
        return bytes([_FILL]) + _rgb(part[:1, :1])
    if has_jpeg and np.unique(samples).size >= PHOTO_COLOURS:
        return bytes([_JPEG]) + _with_length(_jpeg(part))
    plain = _rgb(part)
    if len(plain) < MIN_COMPRESSED:
        return bytes([_STREAM_3]) + plain
    return bytes([_STREAM_3]) + _with_length(isal_zlib.compress(plain, LEVEL))


def _image(part: Framebuffer) -> Image.Image:
    height, width = part.shape[:2]
    return Image.frombuffer("RGB", (width, height), part.tobytes(), "raw", "BGRX", 0, 1)


def _rgb(part: Framebuffer) -> bytes:
    return _image(part).tobytes()


def _jpeg(part: Framebuffer) -> bytes:
    buffer = io.BytesIO()
    _image(part).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def _with_length(data: bytes) -> bytes:
    """A length of one to three bytes of seven bits (the last of eight), then the data."""
    length = len(data)
    if length < 1 << 7:
        return bytes([length]) + data
    if length < 1 << 14:
        return bytes([length & 0x7F | 0x80, length >> 7]) + data
    return bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + data
