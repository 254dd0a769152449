"""Updates, read back as a client reads them."""

import io
import struct
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from computer.geometry import Rect, Size
from computer.rfb.messages import CAPTURE_FORMAT
from computer.rfb.updates import Style, parse_style, render_no_cursor, render_resize, render_update

WHOLE = Rect(left=0, top=0, right=200, bottom=130)
LOSSLESS = Style(has_jpeg=False)
RAW = Style(is_tight=False, has_jpeg=False)


def _pixels(kind: str) -> NDArray[np.uint8]:
    pixels = np.zeros((130, 200, 4), np.uint8)
    if kind == "photo":
        y, x = np.mgrid[0:130, 0:200]
        for channel in range(3):
            pixels[..., channel] = (x * (channel + 1) + y * 2) % 256
    elif kind == "text":
        pixels[10:100:7, 20:180, :3] = (255, 10, 60)
    else:
        pixels[..., :3] = (1, 2, 3)
    return pixels


def _length(data: io.BytesIO) -> int:
    length, shift = 0, 0
    while True:
        byte = data.read(1)[0]
        length |= (byte & (0x7F if shift < 14 else 0xFF)) << shift
        shift += 7
        if shift > 14 or not byte & 0x80:
            return length


def _tight(data: io.BytesIO, width: int, height: int) -> NDArray[np.uint8]:
    """RGB pixels, as RFC 6143's successor says; other sub-encodings are not made here."""
    control = data.read(1)[0]
    if control >> 4 == 8:
        return np.broadcast_to(np.frombuffer(data.read(3), np.uint8), (height, width, 3))
    if control == 0x90:
        return np.asarray(Image.open(io.BytesIO(data.read(_length(data)))).convert("RGB"))
    # Basic compression in stream 3, which begins anew: a server's own streams go on untouched.
    assert control == 0x38
    count = width * height * 3
    plain = data.read(count) if count < 12 else zlib.decompress(data.read(_length(data)))
    return np.frombuffer(plain, np.uint8).reshape(height, width, 3)


def _read(update: bytes, width: int = 200, height: int = 130) -> NDArray[np.uint8]:
    """The RGB picture that an update draws on black."""
    shown = np.zeros((height, width, 3), np.uint8)
    data = io.BytesIO(update)
    kind, count = struct.unpack(">BxH", data.read(4))
    assert kind == 0
    for _ in range(count):
        left, top, w, h, encoding = struct.unpack(">HHHHi", data.read(12))
        if encoding == 7:
            shown[top : top + h, left : left + w] = _tight(data, w, h)
        else:
            raw = np.frombuffer(data.read(w * h * 4), np.uint8).reshape(h, w, 4)
            shown[top : top + h, left : left + w] = raw[..., 2::-1]
    assert data.read() == b""
    return shown


@pytest.mark.parametrize("kind", ["photo", "text", "plain"])
@pytest.mark.parametrize("style", [Style(), LOSSLESS, RAW], ids=["jpeg", "lossless", "raw"])
def test_update_shows_the_pixels(kind: str, style: Style) -> None:
    """Rfbproto 7.7.6: exact, unless it is a photo and the client allowed JPEG."""
    pixels = _pixels(kind)
    rects = [Rect(left=0, top=0, right=200, bottom=64), Rect(left=3, top=64, right=200, bottom=130)]
    shown = _read(render_update(pixels, rects, style))
    expected = pixels[..., 2::-1].copy()
    expected[64:, :3] = 0

    error = np.abs(shown.astype(int) - expected)
    is_lossy = kind == "photo" and style.has_jpeg
    assert (error.mean() < 12) if is_lossy else not error.any()


@pytest.mark.parametrize("size", [(1, 1), (3, 1), (2, 2), (200, 1)])
def test_small_rectangles_are_sent_as_they_are(size: tuple[int, int]) -> None:
    """Rfbproto 7.7.6: fewer than 12 bytes are not compressed."""
    pixels = _pixels("photo")
    rect = Rect(left=0, top=0, right=size[0], bottom=size[1])
    shown = _read(render_update(pixels, [rect], LOSSLESS))

    assert (shown[: size[1], : size[0]] == pixels[: size[1], : size[0], 2::-1]).all()


@pytest.mark.parametrize(
    ("encodings", "message"),
    [((7, -239), struct.pack(">BxHHHHHi", 0, 1, 0, 0, 0, 0, -239)), ((7, -314), b"")],
)
def test_pointer_is_taken_from_who_draws_one(encodings: tuple[int, ...], message: bytes) -> None:
    """Rfbproto 7.8.1: a pointer without pixels; nothing for whoever never drew one."""
    assert render_no_cursor(encodings) == message


def _format(
    bits: int = 32, depth: int = 24, *, big: int = 0, true: int = 1, shifts: tuple[int, ...] = (16, 8, 0)
) -> bytes:
    return struct.pack(">BBBBHHHBBBxxx", bits, depth, big, true, 255, 255, 255, *shifts)


@pytest.mark.parametrize(
    ("pixel_format", "encodings", "expected"),
    [
        (CAPTURE_FORMAT, (7, -26), Style()),
        (_format(shifts=(0, 8, 16)), (1, 7, 0), LOSSLESS),
        (CAPTURE_FORMAT, (), RAW),
        (_format(shifts=(0, 8, 16)), (0, -239), Style(is_tight=False, has_jpeg=False, order=(2, 1, 0))),
        (_format(big=1), (0,), Style(is_tight=False, has_jpeg=False, order=(3, 2, 1))),
        (_format(bits=16, depth=16), (7,), None),
        (_format(bits=8, depth=8, true=0), (7,), None),
        (_format(shifts=(20, 10, 0)), (0,), None),
    ],
)
def test_style_is_what_the_client_understands(
    pixel_format: bytes, encodings: tuple[int, ...], expected: Style | None
) -> None:
    """Ours: noVNC's, TigerVNC's and vncdotool's wishes; anything else is the server's own work."""
    assert parse_style(pixel_format, encodings) == expected


def test_raw_pixels_come_in_the_client_s_order() -> None:
    """RFC 6143, 7.4."""
    pixels = _pixels("plain")
    rect = Rect(left=0, top=0, right=1, bottom=1)

    for order, expected in (((0, 1, 2), b"\1\2\3\0"), ((2, 1, 0), b"\3\2\1\0"), ((3, 2, 1), b"\0\3\2\1")):
        assert (
            render_update(pixels, [rect], Style(is_tight=False, has_jpeg=False, order=order))[-4:] == expected
        )


def test_new_size_is_told_to_who_understands_it() -> None:
    """Rfbproto 7.8.2: the others can't go on."""
    size = Size(width=640, height=480)
    extended, plain = render_resize(size, (7, -308, -223)), render_resize(size, (-223,))

    assert extended is not None
    assert plain is not None
    assert (len(extended), len(plain)) == (4 + 12 + 4 + 16, 4 + 12)
    assert struct.unpack_from(">HHi", plain, 8) == (640, 480, -223)
    assert render_resize(size, (7,)) is None
