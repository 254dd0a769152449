"""
Pixels to pictures: crop, scale, draw the pointer, encode.

Pure computation on arrays. Knows no display; PNG files are ``computer.png``'s.
"""

import io
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pybase64
from numpy.typing import NDArray
from PIL import Image

from computer.errors import InvalidAction, OutOfBounds
from computer.geometry import Point, Rect, Size
from computer.png import PngEncoder, as_image, as_rgb, encode_png8, helper, pack_rgb

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
    "frame_size",
    "is_blank",
    "to_base64",
    "to_rgb",
]

# (height, width, 4) uint8, BGRX, origin top left.
Framebuffer = NDArray[np.uint8]

# Pillow's WebP effort: 0 is three times faster than its default, for a tenth more bytes.
WEBP_METHOD: Final = 0
# Bytes of lossless PNG per pixel from which a screen is likely a photo, so that a lossy picture of
# it is worth trying. Text screens take 0.05 to 0.3, photos 0.9 and more.
PHOTO_BYTES_PER_PIXEL: Final = 0.4
# Qualities tried, one after another, where a picture is larger than allowed.
FALLING_QUALITIES: Final = (75, 55, 35, 20)
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


def to_rgb(framebuffer: Framebuffer, target: Size | None = None) -> NDArray[np.uint8]:
    """Convert to ``(height, width, 3)`` uint8 RGB, resampled with antialiasing where *target* asks for it."""
    image = as_image(framebuffer)
    if target is None or target == frame_size(framebuffer):
        return pack_rgb(image)
    if target.width * target.height < BANDS_FROM_AREA:
        return _resize(image, target, 0, target.height)
    # Pillow lets go of the interpreter while it resamples, and a band reads the rows around it, so
    # that two halves are the same pixels as the whole, in half the time.
    middle = target.height // 2
    lower = helper().submit(_resize, image, target, middle, target.height)
    upper = _resize(image, target, 0, middle)
    return np.concatenate((upper, lower.result()))


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


def encode(pixels: NDArray[np.uint8], settings: EncodingSettings, png: PngEncoder | None = None) -> Encoded:
    """
    Encode a framebuffer, or ``(height, width, 3)`` uint8 RGB, as the settings say.

    Args:
        pixels: not changed afterwards where *png* is given.
        settings: how.
        png: remembers the picture before, for less work.
    """
    picture = _encode_as(pixels, settings, png or PngEncoder())
    if settings.max_bytes is None or len(picture.data) <= settings.max_bytes:
        return picture
    for quality in FALLING_QUALITIES:
        smaller = _lossy(pixels, "JPEG", quality)
        if len(smaller.data) < len(picture.data):
            picture = smaller
        if len(picture.data) <= settings.max_bytes:
            break
    return picture


def _encode_as(pixels: NDArray[np.uint8], settings: EncodingSettings, encoder: PngEncoder) -> Encoded:
    match settings.format:
        case "jpeg":
            return _lossy(pixels, "JPEG", settings.quality)
        case "webp":
            return _lossy(pixels, "WEBP", settings.quality)
        case "png8":
            return Encoded(data=encode_png8(pixels), media_type="image/png")
        case _:
            png = Encoded(data=encoder.encode(pixels), media_type="image/png")
    if settings.format == "auto" and _is_photo(png, pixels):
        lossy = _lossy(pixels, "JPEG", settings.quality)
        if len(lossy.data) * settings.auto_ratio < len(png.data):
            return lossy
    return png


def _is_photo(png: Encoded, pixels: NDArray[np.uint8]) -> bool:
    height, width = pixels.shape[:2]
    return bool(len(png.data) > PHOTO_BYTES_PER_PIXEL * height * width)


def to_base64(data: bytes) -> str:
    """Encode as base64 text."""
    return pybase64.b64encode_as_string(data)


def _resize(image: Image.Image, target: Size, top: int, bottom: int) -> NDArray[np.uint8]:
    """Rows *top* to *bottom* of *image* scaled to *target*."""
    rows = image.height / target.height
    box = (0, top * rows, image.width, bottom * rows)
    # Hamming is as quick as bilinear and nearly as sharp as bicubic when it makes pictures smaller.
    return pack_rgb(image.resize((target.width, bottom - top), Image.Resampling.HAMMING, box=box))


def _lossy(pixels: NDArray[np.uint8], kind: Literal["JPEG", "WEBP"], quality: int) -> Encoded:
    buffer, image = io.BytesIO(), Image.fromarray(as_rgb(pixels))
    if kind == "JPEG":
        # Colours at full resolution: halving them blurs small text.
        image.save(buffer, "JPEG", quality=quality, subsampling=0)
        return Encoded(data=buffer.getvalue(), media_type="image/jpeg")
    image.save(buffer, "WEBP", quality=quality, method=WEBP_METHOD)
    return Encoded(data=buffer.getvalue(), media_type="image/webp")
