"""PNG files, told by another decoder."""

import io
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from computer import png

Rgb = NDArray[np.uint8]


def _flat(height: int, width: int) -> Rgb:
    rgb = np.full((height, width, 3), 200, np.uint8)
    rgb[::7, ::3] = (10, 20, 30)
    return rgb


def _photo(height: int, width: int) -> Rgb:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:height, 0:width]
    smooth = 90 + 40 * np.sin(x / 90) + 40 * np.cos(y / 70)
    return np.asarray(smooth[..., None] + rng.normal(0, 3, (height, width, 3)), np.uint8)


def _text(height: int, width: int) -> Rgb:
    """Coloured letters in lines, no two lines alike."""
    rng = np.random.default_rng(2)
    shapes = rng.random((60, 13, 6)) < 0.3
    letters = shapes[rng.integers(60, size=(height // 13 + 1, width // 6 + 1))]
    ink = letters.transpose(0, 2, 1, 3).reshape(letters.shape[0] * 13, -1)[:height, :width]
    colours = rng.integers(256, size=(len(ink) // 13 + 1, ink.shape[1] // 90 + 1, 3), dtype=np.uint8)
    painted = colours.repeat(13, axis=0).repeat(90, axis=1)[:height, :width]
    return np.where(ink[..., None], painted, np.uint8(255))


def _half_photo(height: int, width: int) -> Rgb:
    return np.concatenate((_text(height // 2, width), _photo(height - height // 2, width)))


def _decode(data: bytes) -> Rgb:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("make", [_flat, _photo, _text, _half_photo])
@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (8, 8), (333, 201), (701, 601)])
def test_png_decodes_to_the_same_pixels(make: object, shape: tuple[int, int]) -> None:
    """Ours: no loss, whatever the filter, the size or the encoder, in one band or in two."""
    rgb = make(*shape)  # type: ignore[operator]

    assert np.array_equal(rgb, _decode(png.encode_png(rgb)))
    assert np.array_equal(rgb, _decode(png.encode_png_pillow(rgb)))


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("row", [0, 31, 32, 90])
def test_one_byte_makes_another_picture(row: int, channels: int) -> None:
    """Ours: whatever part of the picture it is in."""
    frame = np.random.default_rng(3).integers(256, size=(91, 50, channels), dtype=np.uint8)
    other = frame.copy()
    assert png.is_same(frame, other)

    other[row, 49, 2] ^= 1
    assert not png.is_same(frame, other)
    assert not png.is_same(frame, frame[:row])


@pytest.mark.parametrize("shape", [(1, 1), (37, 53), (701, 601)])
def test_a_framebuffer_is_encoded_as_its_rgb(shape: tuple[int, int]) -> None:
    """X11: pixels are BGRX in memory; the fourth byte is nothing."""
    frame = np.random.default_rng(3).integers(256, size=(*shape, 4), dtype=np.uint8)

    assert np.array_equal(frame[..., 2::-1], _decode(png.encode_png(frame)))
    assert np.array_equal(frame[..., 2::-1], _decode(png.encode_png_pillow(frame)))


@pytest.mark.parametrize("rows", [(0,), (799,), (100, 101), (99, 400), tuple(range(0, 800, 50)), ()])
def test_what_changes_is_encoded_anew(rows: tuple[int, ...]) -> None:
    """Ours: bands that are as before are kept, and nothing else is."""
    encoder = png.PngEncoder()
    encoder.encode(_half_photo(800, 300))
    changed = _half_photo(800, 300)
    changed[list(rows), 7] ^= 0xFF

    assert np.array_equal(changed, _decode(encoder.encode(changed)))
    assert encoder.encode(changed) == png.encode_png(changed) or rows


def test_another_size_is_another_picture() -> None:
    """Ours: a screen may grow, and lose its colours."""
    encoder = png.PngEncoder()
    for rgb in (_photo(300, 400), _photo(400, 300), _flat(300, 400), _photo(300, 400)):
        assert np.array_equal(rgb, _decode(encoder.encode(rgb)))


def test_a_band_that_is_as_before_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a caret costs one band."""
    made, deflate = [], png._deflate

    def count(rows: Rgb, codec: object, *, is_last: bool) -> object:
        made.append(rows)
        return deflate(rows, codec, is_last=is_last)

    monkeypatch.setattr(png, "_deflate", count)
    encoder = png.PngEncoder()
    rgb = _photo(800, 1280)
    encoder.encode(rgb)
    everything = len(made)
    changed = rgb.copy()
    changed[250, 3] ^= 1
    encoder.encode(changed)

    assert (everything, len(made)) == (png.BANDS, png.BANDS + 1)


def test_one_pixel_is_a_picture() -> None:
    """Ours: the smallest one."""
    assert np.array_equal(_flat(1, 1), _decode(png.encode_png(_flat(1, 1))))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("make", [_flat, _photo, _text])
def test_every_row_filter_is_undone_by_a_decoder(
    monkeypatch: pytest.MonkeyPatch, make: object, number: int
) -> None:
    """W3C PNG, 9.2: none, sub, and sub or up."""
    monkeypatch.setattr(png, "_choose_filter", lambda *_: png._FILTERS[number])
    rgb = make(37, 53)  # type: ignore[operator]

    assert np.array_equal(rgb, _decode(png.encode_png(rgb)))


@pytest.mark.parametrize("make", [_flat, _photo, _half_photo])
def test_bands_are_one_stream_that_is_checked(make: object) -> None:
    """RFC 1950, 2.2: the checksum at its end is that of all bytes."""
    rgb = make(601, 701)  # type: ignore[operator]
    data = png.encode_png(rgb)
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start])

    assert rgb.nbytes > 2 * png.MIN_BAND_BYTES
    assert len(zlib.decompress(data[start + 4 : start + 4 + length])) == 601 * (701 * 3 + 1)


@pytest.mark.parametrize("make", [_flat, _photo, _text, _half_photo])
def test_png_is_as_small_as_pillows(make: object) -> None:
    """Required: the quick encoder costs no upload time; its bands cost a kilobyte."""
    rgb = make(800, 1280)  # type: ignore[operator]

    assert len(png.encode_png(rgb)) <= 1.02 * len(png.encode_png_pillow(rgb)) + 1_000


def test_pillow_encodes_where_isal_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: no wheel, no difference."""
    monkeypatch.setattr(png, "_load_isal", lambda: None)
    rgb = _photo(40, 30)

    assert np.array_equal(rgb, _decode(png.encode_png(rgb)))


@pytest.mark.parametrize("has_isal", [True, False])
def test_palette_png_is_exact_for_few_colours(monkeypatch: pytest.MonkeyPatch, has_isal: bool) -> None:
    """Ours: 256 colours are enough for a terminal."""
    if not has_isal:
        monkeypatch.setattr(png, "_load_isal", lambda: None)
    rgb = _flat(120, 90)
    rgb[40:60] = (200, 10, 60)
    data = png.encode_png8(rgb)

    assert Image.open(io.BytesIO(data)).mode == "P"
    assert np.array_equal(rgb, _decode(data))
