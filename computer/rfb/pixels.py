"""
Rectangles of pixels from their encodings.

Pure; holds the zlib streams of a connection, which span its rectangles. Pixels are ``<u4``,
0x00RRGGBB. Whatever does not decode is ``RfbProtocolError``.

Source: RFC 6143, 7.7.
"""

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from computer.errors import RfbProtocolError
from computer.geometry import Rect, Size

__all__ = ["PIXEL", "Inflater", "changed_box", "decode_cursor", "decode_raw", "decode_zrle", "zrle_limit"]

PIXEL = np.dtype("<u4")
# Pixels. Edge of a ZRLE tile.
TILE = 64
_COLOUR = np.uint32(0x00FF_FFFF)
_RUN = 0x80
_LARGEST_PALETTE = 16

Pixels = NDArray[np.uint32]


class Inflater:
    """One zlib stream of a connection."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj()

    def inflate(self, data: bytes, limit: int) -> bytes:
        """
        Decompress what one rectangle brings.

        Raises:
            RfbProtocolError: broken data, or more than *limit* bytes of it.
        """
        try:
            plain = self._stream.decompress(data, limit)
        except zlib.error as exc:
            msg = f"a rectangle's data is broken: {exc}"
            raise RfbProtocolError(msg) from exc
        if self._stream.unconsumed_tail:
            msg = f"a rectangle's data is more than the {limit} bytes that it can be"
            raise RfbProtocolError(msg)
        return plain


def decode_raw(data: bytes, size: Size) -> Pixels:
    """Pixels as they are; *data* has the length that *size* needs."""
    return np.frombuffer(data, PIXEL).reshape(size.height, size.width) & _COLOUR


def zrle_limit(size: Size) -> int:
    """Bytes that a ZRLE rectangle can be at most: each pixel a run of its own, and palettes."""
    tiles = -(-size.width // TILE) * -(-size.height // TILE)
    return size.width * size.height * 4 + tiles * (1 + 3 * 127)


def decode_zrle(data: bytes, size: Size) -> Pixels:
    """
    Pixels from inflated ZRLE data.

    Raises:
        RfbProtocolError: the data is short, long, or names a colour that does not exist.
    """
    pixels = np.zeros((size.height, size.width), PIXEL)
    reader = _Reader(data)
    for top in range(0, size.height, TILE):
        for left in range(0, size.width, TILE):
            tile = pixels[top : top + TILE, left : left + TILE]
            _decode_tile(reader, tile)
    if reader.rest():
        raise RfbProtocolError("a ZRLE rectangle has data left over")
    return pixels


class _Reader:
    """Takes bytes off the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise RfbProtocolError("a ZRLE rectangle ends early")
        part = self._data[self._at : end]
        self._at = end
        return part

    def byte(self) -> int:
        return self.take(1)[0]

    def colours(self, count: int) -> Pixels:
        parts = np.frombuffer(self.take(3 * count), np.uint8).reshape(count, 3).astype(np.uint32)
        colours: Pixels = parts[:, 0] | parts[:, 1] << np.uint32(8) | parts[:, 2] << np.uint32(16)
        return colours

    def run(self, limit: int) -> int:
        length = 1
        while (part := self.byte()) == 0xFF:
            length += part
            if length > limit:
                break
        return length + part

    def rest(self) -> int:
        return len(self._data) - self._at


def _decode_tile(reader: _Reader, tile: Pixels) -> None:
    kind = reader.byte()
    palette_size = kind & ~_RUN
    if kind == 0:
        tile[:] = reader.colours(tile.size).reshape(tile.shape)
    elif kind == 1:
        tile[:] = reader.colours(1)[0]
    elif kind & _RUN and palette_size != 1:
        palette = reader.colours(palette_size) if palette_size else None
        tile[:] = _decode_runs(reader, palette, tile.size).reshape(tile.shape)
    elif kind <= _LARGEST_PALETTE:
        tile[:] = _decode_packed(reader, reader.colours(kind), tile.shape[0], tile.shape[1])
    else:
        msg = f"ZRLE has no subencoding {kind}"
        raise RfbProtocolError(msg)


def _decode_packed(reader: _Reader, palette: Pixels, height: int, width: int) -> Pixels:
    bits = 1 if len(palette) == 2 else 2 if len(palette) <= 4 else 4
    stride = (width * bits + 7) // 8
    rows = np.frombuffer(reader.take(stride * height), np.uint8).reshape(height, stride, 1)
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    indices = ((rows >> shifts) & np.uint8((1 << bits) - 1)).reshape(height, -1)[:, :width]
    if indices.max(initial=0) >= len(palette):
        raise RfbProtocolError("a ZRLE tile names a colour that its palette lacks")
    pixels: Pixels = palette[indices]
    return pixels


def _decode_runs(reader: _Reader, palette: Pixels | None, total: int) -> Pixels:
    colours, lengths = [], []
    done = 0
    for colour, length in _runs(reader, palette, total):
        colours.append(colour)
        lengths.append(length)
        done += length
        if done >= total:
            break
    if done != total:
        raise RfbProtocolError("the runs of a ZRLE tile are longer than the tile")
    return np.repeat(np.array(colours, np.uint32), lengths)


def _runs(reader: _Reader, palette: Pixels | None, limit: int) -> Iterator[tuple[int, int]]:
    while True:
        if palette is None:
            colour = int.from_bytes(reader.take(3), "little")
            yield colour, reader.run(limit)
            continue
        index = reader.byte()
        length = reader.run(limit) if index & _RUN else 1
        if (index & ~_RUN) >= len(palette):
            raise RfbProtocolError("a ZRLE run names a colour that its palette lacks")
        yield int(palette[index & ~_RUN]), length


def decode_cursor(data: bytes, size: Size, *, has_alpha: bool) -> NDArray[np.uint8]:
    """Premultiplied BGRA of a pointer: from RGBA, or from pixels and a mask of one bit each."""
    count = size.width * size.height * 4
    picture = np.frombuffer(data, np.uint8, count).reshape(size.height, size.width, 4)
    if has_alpha:
        return picture[..., (2, 1, 0, 3)].copy()
    stride = (size.width + 7) // 8
    bits = np.frombuffer(data, np.uint8, stride * size.height, count).reshape(size.height, stride)
    mask = np.unpackbits(bits, axis=1)[:, : size.width] * np.uint8(255)
    cursor = picture & mask[..., None]
    cursor[..., 3] = mask
    return cursor


def changed_box(before: Pixels, after: Pixels, area: Rect) -> Rect | None:
    """Smallest box, inside *area*, round the pixels that differ; None when all are equal."""
    differs = before != after
    rows = np.flatnonzero(differs.any(axis=1))
    if not rows.size:
        return None
    columns = np.flatnonzero(differs.any(axis=0))
    return Rect(
        left=area.left + int(columns[0]),
        top=area.top + int(rows[0]),
        right=area.left + int(columns[-1]) + 1,
        bottom=area.top + int(rows[-1]) + 1,
    )
