"""Pictures of any size on a canvas that a video can have."""

import numpy as np
import pytest

from computer.geometry import Size
from computer.pixels import Framebuffer
from computer.recording.frames import changed_pixels, even_size, onto_canvas


def _frame(width: int, height: int, value: int = 200) -> Framebuffer:
    return np.full((height, width, 4), value, np.uint8)


@pytest.mark.parametrize(
    ("size", "even"), [((1280, 800), (1280, 800)), ((1281, 801), (1282, 802)), ((1, 2), (2, 2))]
)
def test_odd_sides_get_a_line(size: tuple[int, int], even: tuple[int, int]) -> None:
    """Spec: H.264 in 4:2:0 has even sides."""
    told = even_size(Size(width=size[0], height=size[1]))

    assert even == (told.width, told.height)


def test_odd_frame_keeps_its_pixels_and_gets_black_edges() -> None:
    """Ours: nothing is scaled, so text stays sharp."""
    screen = Size(width=5, height=3)
    whole = onto_canvas(_frame(5, 3), even_size(screen), screen)

    assert whole.shape == (4, 6, 4)
    assert (whole[:3, :5] == 200).all()
    assert not whole[3].any()
    assert not whole[:, 5].any()


def test_frame_of_another_size_fits_into_the_first_ones() -> None:
    """Ours: the screen may be resized while it is filmed; the film can't be."""
    screen = Size(width=40, height=20)
    whole = onto_canvas(_frame(40, 40), screen, screen)

    assert whole.shape == (20, 40, 4)
    assert (whole[:, :20, :3] == 200).all()
    assert not whole[:, 20:].any()


def test_changed_pixels_are_counted() -> None:
    """Ours: a caret is few."""
    before, after = _frame(10, 10), _frame(10, 10)
    after[2, 3:5] = 0

    assert changed_pixels(before, after) == 2
    assert changed_pixels(before, _frame(10, 12)) == 120
