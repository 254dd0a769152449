"""Encoding, scaling and drawing."""

import numpy as np
import pytest
from PIL import Image

from computer import pixels
from computer.errors import InvalidAction, OutOfBounds
from computer.geometry import Point, Rect, Size
from computer.pixels import Cursor, EncodingSettings, Framebuffer
from computer.png import encode_png


def _flat(height: int, width: int) -> Framebuffer:
    frame = np.full((height, width, 4), 200, np.uint8)
    frame[::7, ::3] = (10, 20, 30, 0)
    return frame


def _photo(height: int, width: int) -> Framebuffer:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:height, 0:width]
    smooth = 90 + 40 * np.sin(x / 90) + 40 * np.cos(y / 70)
    return np.asarray(smooth[..., None] + rng.normal(0, 3, (height, width, 4)), np.uint8)


def test_blue_green_red_becomes_red_green_blue() -> None:
    """X11: pixels are BGRX in memory."""
    frame = np.zeros((1, 2, 4), np.uint8)
    frame[0, 1] = (1, 2, 3, 99)

    assert pixels.to_rgb(frame).tolist() == [[[0, 0, 0], [3, 2, 1]]]


def test_crop_is_a_copy() -> None:
    """Ours: a crop never shares memory."""
    frame = _flat(10, 10)
    part = pixels.crop(frame, Rect(left=2, top=3, right=5, bottom=4))
    part[:] = 0

    assert part.shape == (1, 3, 4)
    assert frame[3, 2:5].all()


@pytest.mark.parametrize("area", [(-1, 0, 2, 2), (0, 0, 11, 2), (0, 5, 2, 5), (0, 0, 2, 11)])
def test_crop_outside_is_refused(area: tuple[int, int, int, int]) -> None:
    """Ours: a crop is exact or refused."""
    left, top, right, bottom = area

    with pytest.raises(OutOfBounds):
        pixels.crop(_flat(10, 10), Rect(left=left, top=top, right=right, bottom=bottom))


def test_scaling_gives_the_size_asked_for() -> None:
    """Ours: model size is exact; the native size changes nothing."""
    frame = _photo(90, 160)

    assert pixels.to_rgb(frame, Size(width=64, height=40)).shape == (40, 64, 3)
    assert np.array_equal(pixels.to_rgb(frame, Size(width=160, height=90)), pixels.to_rgb(frame))


def test_cursor_covers_by_its_opacity() -> None:
    """XFixes: cursor pixels are premultiplied."""
    frame = np.full((2, 3, 4), 100, np.uint8)
    shape = np.array([[[255, 0, 0, 255], [0, 0, 0, 0], [64, 64, 64, 128]]], np.uint8)
    pixels.blend_cursor(frame, Cursor(pixels=shape, origin=Point(x=0, y=1)))

    assert frame[0].tolist() == [[100] * 4] * 3
    assert frame[1, :, :3].tolist() == [[255, 0, 0], [100, 100, 100], [113, 113, 113]]


@pytest.mark.parametrize(("x", "y", "changed"), [(-1, -1, 1), (9, 9, 1), (-2, 0, 0), (10, 0, 0), (4, 4, 4)])
def test_cursor_at_an_edge_is_clipped(x: int, y: int, changed: int) -> None:
    """Ours: a pointer half outside is drawn half."""
    frame = np.zeros((10, 10, 4), np.uint8)
    pixels.blend_cursor(frame, Cursor(pixels=np.full((2, 2, 4), 255, np.uint8), origin=Point(x=x, y=y)))

    assert changed == np.count_nonzero(frame[..., 0])


def test_base64_is_text() -> None:
    """Ours: pictures travel as text."""
    assert pixels.to_base64(b"\xff\x00") == "/wA="


def test_auto_takes_jpeg_for_photos_only() -> None:
    """Required: lossy where the upload would be much smaller, on a photo."""
    auto = EncodingSettings(format="auto")

    assert pixels.encode(pixels.to_rgb(_flat(400, 640)), auto).media_type == "image/png"
    assert pixels.encode(pixels.to_rgb(_photo(400, 640)), auto).media_type == "image/jpeg"


def test_too_large_picture_becomes_a_smaller_one() -> None:
    """Required: a limit in bytes is kept by quality."""
    rgb = pixels.to_rgb(_photo(400, 640))
    limit = 20_000
    picture = pixels.encode(rgb, EncodingSettings(max_bytes=limit))

    assert len(encode_png(rgb)) > limit >= len(picture.data)
    assert picture.media_type == "image/jpeg"
    assert pixels.encode(rgb, EncodingSettings(max_bytes=10_000_000)).media_type == "image/png"


@pytest.mark.parametrize(
    "settings", [{"quality": 0}, {"quality": 101}, {"auto_ratio": 0.5}, {"max_bytes": -1}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, int]) -> None:
    """Ours: at once, not at the first picture."""
    with pytest.raises(InvalidAction):
        EncodingSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [(1568, 882), (640, 360), (1900, 901)])
def test_scaling_in_two_halves_is_scaling_in_one(target: tuple[int, int]) -> None:
    """Ours: no seam in the middle."""
    frame = _photo(1080, 1920)
    image = Image.fromarray(pixels.to_rgb(frame))
    whole = np.asarray(image.resize(target, Image.Resampling.HAMMING), np.int16)
    halves = pixels.to_rgb(frame, Size(width=target[0], height=target[1]))

    assert np.abs(whole - halves).max() <= 1


def test_fine_stripes_become_grey_when_they_are_scaled() -> None:
    """Ours: no aliases: one-pixel stripes average out."""
    frame = np.zeros((900, 1600, 4), np.uint8)
    frame[:, ::2] = 255
    small = pixels.to_rgb(frame, Size(width=400, height=225))

    assert small[:, 2:-2].min() > 100
    assert small[:, 2:-2].max() < 155


def test_blank_is_one_colour_but_for_the_pointer() -> None:
    """Required: a warning on blank frames."""
    frame = np.full((200, 300, 4), 40, np.uint8)
    frame[..., 3] = np.arange(300) % 255
    assert pixels.is_blank(frame)

    frame[100:116, 150:160] = 255
    assert pixels.is_blank(frame)
    frame[0, 0] = 255
    assert not pixels.is_blank(frame)
    assert not pixels.is_blank(_photo(200, 300))
