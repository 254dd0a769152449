"""
PNG files: lossless, made for speed.

Compresses with ISA-L where the ``isal`` wheel is there, with Pillow where it is not. A picture
is made in bands that know nothing of each other: two threads share them from both ends until they
meet, since numpy and ISA-L let go of the interpreter while they work, and a band that is as it was
in the picture before is not made again.

Source: W3C PNG (Third Edition), 5, 9 and 10; RFC 1950, 2.2; RFC 1951, 3.2.3.
"""

import io
import struct
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = [
    "PngEncoder",
    "as_image",
    "as_rgb",
    "encode_png",
    "encode_png8",
    "encode_png_pillow",
    "helper",
    "is_same",
    "pack_rgb",
]

# Compression levels. Level 2 of ISA-L is 20 times faster than zlib's default and as small, and
# no slower than its level 1; Pillow's level 1 is the nearest to it in speed.
ISAL_LEVEL: Final = 2
PILLOW_LEVEL: Final = 1
# Bands of a picture, and the least bytes of one; how a zlib stream begins.
BANDS: Final = 8
MIN_BAND_BYTES: Final = 60_000
_ZLIB_HEADER: Final = b"\x78\x01"
_ADLER_MODULUS: Final = 65_521
# Rows of two pictures that are compared in one go.
COMPARED_ROWS: Final = 32
# Rows of one strip, and strips at most, from which the filter of some bands is chosen. Lower strips
# than a line of text do not show that its letters come again.
SAMPLE_ROWS: Final = 8
SAMPLE_STRIPS: Final = 3
# What the strips unfiltered shrink to at best where they are of a photo.
PHOTO_RATIO: Final = 0.4
_FILTER_NONE: Final = 0
_FILTER_SUB: Final = 1
_FILTER_UP: Final = 2
# Bytes of an RGB pixel.
_RGB: Final = 3
_COLOUR_RGB: Final = 2
_COLOUR_PALETTE: Final = 3

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Band:
    """Deflated rows, and the Adler-32 checksum and number of the bytes in them."""

    data: bytes
    checksum: int
    length: int


class PngEncoder:
    """
    Encodes one picture after another, of the same screen.

    Remembers the last one, which must not be changed afterwards.
    """

    def __init__(self) -> None:
        self._last: Bytes | None = None
        self._bands: list[_Band] = []

    def encode(self, pixels: Bytes) -> bytes:
        """Encode a framebuffer, or ``(height, width, 3)`` uint8 RGB, as a PNG without loss."""
        codec = _load_isal()
        if codec is None:
            return encode_png_pillow(pixels)
        self._bands = _make_bands(pixels, codec, self._known(pixels))
        self._last = pixels
        size = (pixels.shape[1], pixels.shape[0])
        return _assemble(size, _COLOUR_RGB, _join(self._bands), codec)

    def _known(self, pixels: Bytes) -> dict[int, _Band]:
        """Bands of the last picture that are the same in *pixels*, by their first row."""
        last = self._last
        if last is None or last.shape != pixels.shape:
            return {}
        bands = zip(_split(pixels), self._bands, strict=True)
        return {top: band for (top, end), band in bands if is_same(last[top:end], pixels[top:end])}


def encode_png(pixels: Bytes) -> bytes:
    """Encode a framebuffer, or ``(height, width, 3)`` uint8 RGB, as a PNG without loss."""
    return PngEncoder().encode(pixels)


def encode_png8(pixels: Bytes) -> bytes:
    """Encode as a PNG of at most 256 colours; exact where there are no more, not dithered."""
    image = Image.fromarray(as_rgb(pixels)).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    codec = _load_isal()
    if codec is None:
        buffer = io.BytesIO()
        image.save(buffer, "PNG", compress_level=PILLOW_LEVEL)
        return buffer.getvalue()
    palette = bytes(image.getpalette("RGB") or ())
    data = _join([_deflate(_unfiltered(np.asarray(image)), codec, is_last=True)])
    return _assemble(image.size, _COLOUR_PALETTE, data, codec, palette=palette)


def encode_png_pillow(pixels: Bytes) -> bytes:
    """Encode with Pillow: the way where no ISA-L wheel exists."""
    buffer = io.BytesIO()
    Image.fromarray(as_rgb(pixels)).save(buffer, "PNG", compress_level=PILLOW_LEVEL)
    return buffer.getvalue()


def as_image(framebuffer: Bytes) -> Image.Image:
    """
    The same memory as an image, red where Pillow has blue.

    What is done to it must end with ``pack_rgb``, whose packer turns them round, six times faster
    than numpy does.
    """
    data: Any = np.ascontiguousarray(framebuffer).data
    height, width = framebuffer.shape[:2]
    return Image.frombuffer("RGB", (width, height), data, "raw", "RGBX", 0, 1)


def pack_rgb(image: Image.Image) -> Bytes:
    """``(height, width, 3)`` uint8 RGB of what ``as_image`` made."""
    return np.frombuffer(image.tobytes("raw", "BGR"), np.uint8).reshape(image.height, image.width, _RGB)


def as_rgb(pixels: Bytes) -> Bytes:
    """RGB of a framebuffer; what is RGB already stays as it is."""
    return pixels if pixels.shape[2] == _RGB else pack_rgb(as_image(pixels))


def is_same(one: Bytes, other: Bytes) -> bool:
    """Whether two pictures are equal; compares parts that fit in the cache, to the first difference."""
    if one.shape != other.shape:
        return False
    if one.shape[2] != _RGB:
        # Four bytes at a time, where there are four.
        one, other = np.ascontiguousarray(one).view(np.uint32), np.ascontiguousarray(other).view(np.uint32)
    return all(
        np.array_equal(one[top : top + COMPARED_ROWS], other[top : top + COMPARED_ROWS])
        for top in range(0, len(one), COMPARED_ROWS)
    )


@cache
def helper() -> ThreadPoolExecutor:
    """The thread that does one half of what is done in two halves."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="pixels")


def _load_isal() -> Any | None:  # noqa: ANN401  the module has no types
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return None


def _assemble(
    size: tuple[int, int],
    colour: int,
    data: bytes,
    codec: Any,  # noqa: ANN401
    *,
    palette: bytes | None = None,
) -> bytes:
    header = struct.pack(">IIBBBBB", *size, 8, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    if palette is not None:
        chunks.insert(1, (b"PLTE", palette))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data, codec) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes, codec: Any) -> bytes:  # noqa: ANN401
    checksum = codec.crc32(data, codec.crc32(kind))
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", checksum)))


def _split(pixels: Bytes) -> list[tuple[int, int]]:
    """First row of each band, and the first after it."""
    height = len(pixels)
    number = min(BANDS, max(1, pixels.nbytes // MIN_BAND_BYTES), height)
    return list(pairwise(band * height // number for band in range(number + 1)))


class _Half:
    """Bands that lie together, and the filter that suits them."""

    def __init__(self, pixels: Bytes, places: list[tuple[int, int]], codec: Any) -> None:  # noqa: ANN401
        self._pixels, self._places, self._codec = pixels, places, codec
        self._todo = deque(places)

    @cached_property
    def _apply(self) -> Callable[[Bytes], Bytes]:
        # Two threads may find it at the same time: both find the same.
        return _choose_filter([self._pixels[top:end] for top, end in self._places], self._codec)

    def make(self, take: Callable[[deque[tuple[int, int]]], tuple[int, int]]) -> Iterator[tuple[int, _Band]]:
        """Bands that nobody has begun, *take* for *take*, by their first row."""
        while True:
            try:
                top, end = take(self._todo)
            except IndexError:
                return
            rows = self._apply(_flat_rgb(self._pixels[top:end]))
            yield top, _deflate(rows, self._codec, is_last=end == len(self._pixels))


def _make_bands(pixels: Bytes, codec: Any, known: dict[int, _Band]) -> list[_Band]:  # noqa: ANN401
    """All bands of *pixels*; those that are not *known* are made in two threads, from both ends."""
    every = _split(pixels)
    missing = [place for place in every if place[0] not in known]
    middle = -(-len(missing) // 2)
    upper, lower = (_Half(pixels, part, codec) for part in (missing[:middle], missing[middle:]))

    def make_upward() -> dict[int, _Band]:
        return dict((*lower.make(deque.pop), *upper.make(deque.pop)))

    helped = helper().submit(make_upward) if missing[middle:] else None
    bands = known | dict((*upper.make(deque.popleft), *lower.make(deque.popleft)))
    if helped is not None:
        bands |= helped.result()
    return [bands[top] for top, _ in every]


def _flat_rgb(pixels: Bytes) -> Bytes:
    """``(height, width * 3)`` uint8."""
    return as_rgb(pixels).reshape(len(pixels), -1)


def _deflate(rows: Bytes, codec: Any, *, is_last: bool) -> _Band:  # noqa: ANN401
    deflate = codec.compressobj(ISAL_LEVEL, codec.DEFLATED, -codec.MAX_WBITS)
    body = deflate.compress(rows.data) + deflate.flush(codec.Z_FINISH if is_last else codec.Z_SYNC_FLUSH)
    return _Band(data=body, checksum=codec.adler32(rows.data), length=rows.nbytes)


def _join(bands: list[_Band]) -> bytes:
    """One zlib stream; its blocks may follow one another, whoever made them."""
    # Adler-32 of all bands, from that of each: two sums, the second weighted by what follows.
    low, high = 1, 0
    for band in bands:
        high += (band.checksum >> 16) + band.length * (low - 1)
        low += (band.checksum & 0xFFFF) - 1
    checksum = (high % _ADLER_MODULUS) << 16 | low % _ADLER_MODULUS
    return b"".join((_ZLIB_HEADER, *(band.data for band in bands), struct.pack(">I", checksum)))


def _choose_filter(bands: list[Bytes], codec: Any) -> Callable[[Bytes], Bytes]:  # noqa: ANN401
    """The filter that makes strips of the bands, which are pixels, smallest."""
    chosen = bands[:: -(-len(bands) // SAMPLE_STRIPS)]
    tops = (max(0, len(band) - SAMPLE_ROWS) // 2 for band in chosen)
    strips = [band[top:][:SAMPLE_ROWS] for band, top in zip(chosen, tops, strict=True)]
    sample = _flat_rgb(np.concatenate(strips))
    plain, *filtered = _FILTERS
    sizes = {plain: _size(plain(sample), codec)}
    if sizes[plain] > PHOTO_RATIO * sample.nbytes:
        return _by_left
    sizes |= {apply: _size(apply(sample), codec) for apply in filtered}
    return min(sizes, key=sizes.__getitem__)


def _size(rows: Bytes, codec: Any) -> int:  # noqa: ANN401
    return len(codec.compress(rows.data, ISAL_LEVEL))


def _unfiltered(flat: Bytes) -> Bytes:
    """Rows as they are: best where the same letters come again and again."""
    rows = np.empty((len(flat), flat.shape[1] + 1), np.uint8)
    rows[:, 0] = _FILTER_NONE
    rows[:, 1:] = flat
    return rows


def _by_left(flat: Bytes) -> Bytes:
    """Rows as what they differ by from the pixel to the left: best for photos."""
    rows = np.empty((len(flat), flat.shape[1] + 1), np.uint8)
    rows[:, 0] = _FILTER_SUB
    rows[:, 1 : 1 + _RGB] = flat[:, :_RGB]
    np.subtract(flat[:, _RGB:], flat[:, :-_RGB], out=rows[:, 1 + _RGB :])
    return rows


def _by_left_or_above(flat: Bytes) -> Bytes:
    """The same, but from the row above where less changes that way: best for coloured text."""
    rows = _by_left(flat)
    body, above = rows[1:, 1:], flat[1:] - flat[:-1]
    is_above = _count_changes(above) < _count_changes(body)
    rows[1:][is_above, 0] = _FILTER_UP
    body[is_above] = above[is_above]
    return rows


def _count_changes(rows: Bytes) -> NDArray[np.uint32]:
    """How many bytes of each row are not zero."""
    counts: NDArray[np.uint32] = np.bitwise_count(np.packbits(rows, axis=1)).sum(axis=1, dtype=np.uint32)
    return counts


_FILTERS: Final = (_unfiltered, _by_left, _by_left_or_above)
