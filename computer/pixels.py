"""
Pixels to pictures: crop, scale, draw the pointer, encode.

Pure computation on arrays. Compresses with ISA-L where the ``isal`` wheel is there, with
Pillow where it is not; both are lossless. Knows no display.
"""

import base64
import io
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from computer.errors import InvalidAction, OutOfBounds
from computer.geometry import Point, Rect, Size

__all__ = [
    "Cursor",
    "Encoded",
    "EncodingSettings",
    "Framebuffer",
    "MediaType",
    "PictureFormat",
    "blend_cursor",
    "crop",
    "encode",
    "encode_png",
    "encode_png8",
    "frame_size",
    "is_blank",
    "scale_rgb",
    "to_base64",
    "to_rgb",
]

# (height, width, 4) uint8, BGRX, origin top left.
Framebuffer = NDArray[np.uint8]

# Compression levels. Level 2 of ISA-L is 20 times faster than zlib's default and as small, and
# no slower than its level 1; Pillow's level 1 is the nearest to it in speed.
ISAL_LEVEL: Final = 2
PILLOW_LEVEL: Final = 1
# Rows of one strip, and number of strips, from which the row filter is chosen.
SAMPLE_ROWS: Final = 5
SAMPLE_STRIPS: Final = 3
_FILTER_NONE: Final = 0
_FILTER_SUB: Final = 1
_FILTER_UP: Final = 2
_FILTER_AVERAGE: Final = 3
_FILTERS: Final = (_FILTER_NONE, _FILTER_SUB, _FILTER_UP, _FILTER_AVERAGE)
# Bytes of an RGB pixel.
_RGB: Final = 3
_COLOUR_RGB: Final = 2
_COLOUR_PALETTE: Final = 3
# Pillow's WebP effort: 0 is three times faster than its default, for a tenth more bytes.
WEBP_METHOD: Final = 0
# Bytes of lossless PNG per pixel from which a screen is likely a photo, so that a lossy picture of
# it is worth trying. Text screens take 0.05 to 0.3, photos 0.9 and more.
PHOTO_BYTES_PER_PIXEL: Final = 0.4
# Qualities tried, one after another, where a picture is larger than allowed.
FALLING_QUALITIES: Final = (75, 55, 35, 20)
# Bytes from which compression is shared between two threads, and how a zlib stream begins.
HALVES_FROM_BYTES: Final = 1_000_000
_ZLIB_HEADER: Final = b"\x78\x01"
# Pixels of the result from which scaling is shared between two threads.
BANDS_FROM_AREA: Final = 250_000
# Pixels. A pointer on an otherwise empty screen fits in here.
POINTER_EDGE: Final = 64
# Every so many pixels on both axes are looked at before all are.
BLANK_STRIDE: Final = 37
# The fourth byte of a pixel is padding.
_COLOUR_BITS: Final = np.uint32(0x00FF_FFFF)

PictureFormat = Literal["png", "png8", "jpeg", "webp", "auto"]
MediaType = Literal["image/png", "image/jpeg", "image/webp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingSettings:
    """
    How pictures are encoded.

    Attributes:
        format: ``png`` is lossless; ``png8`` has 256 colours; ``auto`` is png, unless a jpeg of
            the same screen is at least *auto_ratio* times smaller.
        quality: of jpeg and webp, 1 to 95.
        auto_ratio: how much smaller a lossy picture must be to be chosen.
        max_bytes: of the picture before base64; a larger one is encoded anew as jpeg of
            falling quality. The last of these is taken as it is.

    Raises:
        InvalidAction: a setting is out of its range.
    """

    format: PictureFormat = "png"
    quality: int = 80
    auto_ratio: float = 3.0
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.quality <= 95 or self.auto_ratio < 1 or (self.max_bytes or 1) < 1:
            msg = f"these settings can't encode a picture: {self}"
            raise InvalidAction(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A picture file in memory."""

    data: bytes
    media_type: MediaType


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The pointer's picture: premultiplied BGRA ``(height, width, 4)``, and its top left corner."""

    pixels: NDArray[np.uint8]
    origin: Point


def frame_size(framebuffer: Framebuffer) -> Size:
    """Width and height of a framebuffer."""
    return Size(width=framebuffer.shape[1], height=framebuffer.shape[0])


def crop(framebuffer: Framebuffer, area: Rect) -> Framebuffer:
    """
    Copy the pixels of *area* into a new framebuffer.

    Raises:
        OutOfBounds: *area* leaves the framebuffer.
    """
    height, width = framebuffer.shape[:2]
    if not (0 <= area.left < area.right <= width and 0 <= area.top < area.bottom <= height):
        msg = f"{area} leaves the {width}x{height} framebuffer"
        raise OutOfBounds(msg)
    return framebuffer[area.top : area.bottom, area.left : area.right].copy()


def blend_cursor(framebuffer: Framebuffer, cursor: Cursor) -> None:
    """Draw *cursor* over *framebuffer* in place, clipped to it."""
    height, width = framebuffer.shape[:2]
    rows, columns = cursor.pixels.shape[:2]
    left, top = max(cursor.origin.x, 0), max(cursor.origin.y, 0)
    right, bottom = min(cursor.origin.x + columns, width), min(cursor.origin.y + rows, height)
    if left >= right or top >= bottom:
        return
    source = cursor.pixels[
        top - cursor.origin.y : bottom - cursor.origin.y, left - cursor.origin.x : right - cursor.origin.x
    ].astype(np.uint16)
    target = framebuffer[top:bottom, left:right]
    opacity = source[..., 3:4]
    blended = source[..., :3] + target[..., :3] * (255 - opacity) // 255
    target[..., :3] = np.minimum(blended, 255).astype(np.uint8)


def to_rgb(framebuffer: Framebuffer) -> NDArray[np.uint8]:
    """Convert to ``(height, width, 3)`` uint8 RGB."""
    height, width = framebuffer.shape[:2]
    data: Any = np.ascontiguousarray(framebuffer).data
    # Pillow's unpacker is eight times faster than a numpy slice with reversed channels.
    image = Image.frombuffer("RGB", (width, height), data, "raw", "BGRX", 0, 1)
    return np.asarray(image)


def scale_rgb(rgb: NDArray[np.uint8], target: Size) -> NDArray[np.uint8]:
    """Resample to *target* with antialiasing; returns the same array when it fits already."""
    height, width = rgb.shape[:2]
    if (width, height) == (target.width, target.height):
        return rgb
    image = Image.fromarray(rgb)
    if target.width * target.height < BANDS_FROM_AREA:
        return np.asarray(_resize(image, target, 0, target.height))
    # Pillow lets go of the interpreter while it resamples, and a band reads the rows around it, so
    # that two halves are the same pixels as the whole, in half the time.
    middle = target.height // 2
    lower = _helper().submit(_resize, image, target, middle, target.height)
    upper = _resize(image, target, 0, middle)
    return np.concatenate((np.asarray(upper), np.asarray(lower.result())))


def is_blank(framebuffer: Framebuffer) -> bool:
    """Whether the picture is of one colour, but for a pointer."""
    words = np.ascontiguousarray(framebuffer).view(np.uint32)[..., 0]
    colour = words[-1, -1]
    few = (words[::BLANK_STRIDE, ::BLANK_STRIDE] ^ colour) & _COLOUR_BITS
    # A pointer covers at most two samples either way.
    if np.count_nonzero(few) > (POINTER_EDGE // BLANK_STRIDE + 1) ** 2:
        return False
    differs = ((words ^ colour) & _COLOUR_BITS) != 0
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    return not len(rows) or bool(
        rows[-1] - rows[0] < POINTER_EDGE and columns[-1] - columns[0] < POINTER_EDGE
    )


def encode(rgb: NDArray[np.uint8], settings: EncodingSettings) -> Encoded:
    """Encode ``(height, width, 3)`` uint8 RGB as the settings say."""
    picture = _encode_as(rgb, settings)
    if settings.max_bytes is None or len(picture.data) <= settings.max_bytes:
        return picture
    for quality in FALLING_QUALITIES:
        smaller = _lossy(rgb, "JPEG", quality)
        if len(smaller.data) < len(picture.data):
            picture = smaller
        if len(picture.data) <= settings.max_bytes:
            break
    return picture


def _encode_as(rgb: NDArray[np.uint8], settings: EncodingSettings) -> Encoded:
    match settings.format:
        case "jpeg":
            return _lossy(rgb, "JPEG", settings.quality)
        case "webp":
            return _lossy(rgb, "WEBP", settings.quality)
        case "png8":
            return Encoded(data=encode_png8(rgb), media_type="image/png")
        case _:
            png = Encoded(data=encode_png(rgb), media_type="image/png")
    if settings.format == "auto" and len(png.data) > PHOTO_BYTES_PER_PIXEL * rgb.shape[0] * rgb.shape[1]:
        lossy = _lossy(rgb, "JPEG", settings.quality)
        if len(lossy.data) * settings.auto_ratio < len(png.data):
            return lossy
    return png


def encode_png(rgb: NDArray[np.uint8]) -> bytes:
    """
    Encode ``(height, width, 3)`` uint8 RGB as a PNG, without loss.

    Source: W3C PNG (Third Edition), 5, 9 and 10.
    """
    codec = _load_isal()
    if codec is None:
        return encode_png_pillow(rgb)
    height, width = rgb.shape[:2]
    flat = rgb.reshape(height, width * 3)
    rows = _filter_rows(flat, _choose_filter(flat, codec))
    return _assemble(Size(width=width, height=height), _COLOUR_RGB, rows, codec)


def encode_png8(rgb: NDArray[np.uint8]) -> bytes:
    """Encode as a PNG of at most 256 colours; exact where there are no more, not dithered."""
    image = Image.fromarray(rgb).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    codec = _load_isal()
    if codec is None:
        buffer = io.BytesIO()
        image.save(buffer, "PNG", compress_level=PILLOW_LEVEL)
        return buffer.getvalue()
    palette = bytes(image.getpalette("RGB") or ())
    rows = _filter_rows(np.asarray(image), _FILTER_NONE)
    size = Size(width=image.width, height=image.height)
    return _assemble(size, _COLOUR_PALETTE, rows, codec, palette=palette)


def encode_png_pillow(rgb: NDArray[np.uint8]) -> bytes:
    """Encode with Pillow: the way where no ISA-L wheel exists."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG", compress_level=PILLOW_LEVEL)
    return buffer.getvalue()


def to_base64(data: bytes) -> str:
    """Encode as base64 text."""
    return base64.b64encode(data).decode("ascii")


def _load_isal() -> Any | None:  # noqa: ANN401  the module has no types
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return None


def _resize(image: Image.Image, target: Size, top: int, bottom: int) -> Image.Image:
    """Rows *top* to *bottom* of *image* scaled to *target*."""
    rows = image.height / target.height
    box = (0, top * rows, image.width, bottom * rows)
    # Hamming is as quick as bilinear and nearly as sharp as bicubic when it makes pictures smaller.
    return image.resize((target.width, bottom - top), Image.Resampling.HAMMING, box=box)


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="pixels")


def _lossy(rgb: NDArray[np.uint8], kind: Literal["JPEG", "WEBP"], quality: int) -> Encoded:
    buffer = io.BytesIO()
    if kind == "JPEG":
        # Colours at full resolution: halving them blurs small text.
        Image.fromarray(rgb).save(buffer, "JPEG", quality=quality, subsampling=0)
        return Encoded(data=buffer.getvalue(), media_type="image/jpeg")
    Image.fromarray(rgb).save(buffer, "WEBP", quality=quality, method=WEBP_METHOD)
    return Encoded(data=buffer.getvalue(), media_type="image/webp")


def _assemble(
    size: Size,
    colour: int,
    rows: NDArray[np.uint8],
    codec: Any,  # noqa: ANN401
    *,
    palette: bytes | None = None,
) -> bytes:
    header = struct.pack(">IIBBBBB", size.width, size.height, 8, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", _deflate(rows, codec)), (b"IEND", b"")]
    if palette is not None:
        chunks.insert(1, (b"PLTE", palette))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data, codec) for kind, data in chunks)


def _deflate(rows: NDArray[np.uint8], codec: Any) -> bytes:  # noqa: ANN401
    """
    Compress, large pictures in two threads: ISA-L lets go of the interpreter.

    Source: RFC 1950, 2.2, and RFC 1951, 3.2.3: deflated blocks may follow one another.
    """
    if rows.nbytes < HALVES_FROM_BYTES:
        return bytes(codec.compress(rows.data, ISAL_LEVEL))
    middle = len(rows) // 2
    lower = _helper().submit(_deflate_part, rows[middle:], codec, is_last=True)
    upper = _deflate_part(rows[:middle], codec, is_last=False)
    checksum = struct.pack(">I", codec.adler32(rows.data))
    return b"".join((_ZLIB_HEADER, upper, lower.result(), checksum))


def _deflate_part(rows: NDArray[np.uint8], codec: Any, *, is_last: bool) -> bytes:  # noqa: ANN401
    deflate = codec.compressobj(ISAL_LEVEL, codec.DEFLATED, -codec.MAX_WBITS)
    body = deflate.compress(rows.data)
    return b"".join((body, deflate.flush(codec.Z_FINISH if is_last else codec.Z_SYNC_FLUSH)))


def _chunk(kind: bytes, data: bytes, codec: Any) -> bytes:  # noqa: ANN401
    checksum = codec.crc32(data, codec.crc32(kind))
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", checksum)))


def _choose_filter(flat: NDArray[np.uint8], codec: Any) -> int:  # noqa: ANN401
    # Flat screens compress best unfiltered, photos with one of the others; strips tell which.
    height = flat.shape[0]
    tops = (
        max(0, (2 * strip + 1) * height // (2 * SAMPLE_STRIPS) - SAMPLE_ROWS // 2)
        for strip in range(SAMPLE_STRIPS)
    )
    sample = np.concatenate([flat[top : top + SAMPLE_ROWS] for top in tops])
    return min(_FILTERS, key=lambda kind: len(codec.compress(_filter_rows(sample, kind).data, ISAL_LEVEL)))


def _filter_rows(flat: NDArray[np.uint8], row_filter: int) -> NDArray[np.uint8]:
    height, width = flat.shape
    rows = np.empty((height, width + 1), np.uint8)
    rows[:, 0] = row_filter
    body = rows[:, 1:]
    match row_filter:
        case 0:
            body[:] = flat
        case 1:
            body[:, :_RGB] = flat[:, :_RGB]
            np.subtract(flat[:, _RGB:], flat[:, :-_RGB], out=body[:, _RGB:])
        case 2:
            body[0] = flat[0]
            np.subtract(flat[1:], flat[:-1], out=body[1:])
        case _:
            _filter_average(flat, body)
    return rows


def _filter_average(flat: NDArray[np.uint8], body: NDArray[np.uint8]) -> None:
    up, left = flat[:-1, _RGB:], flat[1:, :-_RGB]
    # Half the sum of two bytes without a ninth bit.
    mean = np.bitwise_xor(up, left)
    mean >>= 1
    mean += up & left
    np.subtract(flat[1:, _RGB:], mean, out=body[1:, _RGB:])
    np.subtract(flat[0, _RGB:], flat[0, :-_RGB] >> 1, out=body[0, _RGB:])
    body[0, :_RGB] = flat[0, :_RGB]
    np.subtract(flat[1:, :_RGB], flat[:-1, :_RGB] >> 1, out=body[1:, :_RGB])
