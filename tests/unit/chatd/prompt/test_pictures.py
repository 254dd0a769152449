"""Pictures fit what vendors take, and what does not fit is told."""

import io
import os
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from chatd.prompt.pictures import (
    LIMITS,
    Fitted,
    PictureLimits,
    Unfit,
    fit_picture,
    kept_pictures,
    mend,
    sniff,
)

LIMIT = PictureLimits(picture_bytes=60_000, edge=400, total_bytes=100_000)


def encoded(width: int, height: int, kind: str = "PNG", mode: str = "RGB", *, noise: bool = False) -> bytes:
    """A picture; *noise* can't be compressed."""
    image = Image.new(mode, (width, height), 1)
    if noise:
        image = Image.frombytes(mode, (width, height), os.urandom(width * height * len(mode)))
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")],
)
def test_a_picture_is_what_its_bytes_say(kind: str, media_type: str) -> None:
    """BUGS 60: a JPEG that was called PNG bricks a session."""
    data = encoded(30, 20, kind)
    found = sniff(data)

    assert found is not None
    assert (found.media_type, found.width, found.height) == (media_type, 30, 20)
    assert fit_picture(data, LIMIT) == Fitted(media_type=media_type, data=data)


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"<svg/>", b"BM" + b"\0" * 99, encoded(3, 3)[:20]])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    """BUGS 60: told, not sent."""
    assert sniff(data) is None
    assert isinstance(fit_picture(data, LIMIT), Unfit)


def test_a_cut_picture_that_must_shrink_is_refused() -> None:
    """Ours: its header is whole, its pixels are not."""
    data = encoded(900, 900, noise=True)

    assert isinstance(fit_picture(data[:5_000], LIMIT), Unfit)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1"])
@pytest.mark.parametrize("noise", [False, True])
def test_an_oversized_picture_is_shrunk_and_says_so(mode: str, *, noise: bool) -> None:
    """BUGS 59: edges and bytes, in any mode."""
    is_noise = noise and mode in {"RGB", "RGBA"}
    found = fit_picture(encoded(1_000, 500, mode=mode, noise=is_noise), LIMIT)

    assert isinstance(found, Fitted)
    assert found.note is not None
    assert found.note.startswith("shrunk from 1000 x 500 to ")
    small = sniff(found.data)
    assert small is not None
    assert max(small.width, small.height) <= 400
    assert len(found.data) <= 60_000


def test_bombs_are_not_decoded() -> None:
    """Ours: 85 million pixels of one colour are a few kilobytes."""
    found = fit_picture(encoded(10_000, 8_500, mode="1"), LIMIT)

    assert found == Unfit("its 10000 x 8500 pixels are too many")


def test_a_screenshot_of_ours_is_sent_as_it_is() -> None:
    """Ours: by every vendor, at no cost."""
    data = encoded(1280, 800, noise=True)[:3_000_000]

    assert all(
        fit_picture(data, limits) == Fitted(media_type="image/png", data=data) for limits in LIMITS.values()
    )


def test_what_stays_is_the_same_until_a_batch_goes() -> None:
    """Ours: by number and by weight; the newest always stays."""
    names = range(200)
    kept = [kept_pictures([(n, 1) for n in names[:count]], total_bytes=1_000) for count in names]

    assert max(map(len, kept)) == 39
    assert all(later >= earlier or len(later) == 20 for earlier, later in pairwise(kept))
    assert kept_pictures([(n, 400) for n in range(3)], total_bytes=1_000) == {2}
    assert kept_pictures([(1, 5_000)], total_bytes=1_000) == {1}
    assert kept_pictures([], total_bytes=1) == set()


def _chunk(kind: bytes, data: bytes, *, is_whole: bool = True) -> bytes:
    checksum = zlib.crc32(kind + data) ^ (0 if is_whole else 1)
    return len(data).to_bytes(4) + kind + data + checksum.to_bytes(4)


def test_a_broken_colour_profile_costs_no_picture() -> None:
    """A picture of MCP's reference server has one: browsers show it, and readers refuse it."""
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2)).save(buffer, "PNG")
    good = buffer.getvalue()
    broken = good[:33] + _chunk(b"iCCP", b"profile", is_whole=False) + good[33:]
    with_text = good[:33] + _chunk(b"tEXt", b"a\0b") + good[33:]

    assert sniff(broken) is None
    assert mend(broken) == good
    assert mend(with_text) == with_text


@given(cut=st.integers(0, 80), at=st.integers(0, 80), value=st.integers(0, 255))
def test_mending_never_fails_and_never_makes_a_whole_picture_worse(cut: int, at: int, value: int) -> None:
    """Whatever the bytes."""
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2)).save(buffer, "PNG")
    data = bytearray(buffer.getvalue())
    if at < len(data):
        data[at] = value
    hurt = bytes(data[: len(data) - cut] if cut else data)

    assert sniff(hurt) is None or sniff(mend(hurt)) == sniff(hurt)
