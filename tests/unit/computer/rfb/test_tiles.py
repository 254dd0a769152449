"""Tiles: which differ, and rectangles of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.geometry import Rect, Size
from computer.rfb.tiles import TILE, TileGrid

SIZES = st.builds(Size, width=st.integers(1, 400), height=st.integers(1, 300))


@given(SIZES, st.data())
def test_rectangles_cover_exactly_the_tiles(size: Size, data: st.DataObject) -> None:
    """Invariant: every tile of the set once, none besides, none outside the picture, none too high."""
    grid = TileGrid(size)
    tiles = data.draw(st.integers(0, grid.everything))
    most_rows = data.draw(st.integers(1, 4))
    drawn = np.zeros((size.height, size.width), np.uint8)
    for rect in grid.rects(tiles, most_rows):
        assert rect.size.height <= most_rows * TILE
        drawn[rect.top : rect.bottom, rect.left : rect.right] += 1

    for number in range(grid.columns * grid.rows):
        row, column = divmod(number, grid.columns)
        tile = drawn[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
        assert (tile == (tiles >> number & 1)).all()


@given(SIZES, st.data())
def test_tiles_that_differ_are_found(size: Size, data: st.DataObject) -> None:
    """Ours: one pixel is enough, at any edge."""
    before = np.zeros((size.height, size.width, 4), np.uint8)
    after = before.copy()
    x, y = data.draw(st.integers(0, size.width - 1)), data.draw(st.integers(0, size.height - 1))
    grid = TileGrid(size)
    nothing = grid.differing(before, after)
    after[y, x, data.draw(st.integers(0, 2))] = 1

    assert nothing == 0
    assert grid.differing(before, after) == 1 << (y // TILE * grid.columns + x // TILE)


@pytest.mark.parametrize(("most_rows", "count"), [(100, 1), (2, 7)])
def test_whole_picture_is_one_rectangle_or_bands(most_rows: int, count: int) -> None:
    """Ours: few rectangles, since each costs a header."""
    grid = TileGrid(Size(width=1280, height=800))
    rects = grid.rects(grid.everything, most_rows)

    assert len(rects) == count
    assert (rects[0].left, rects[0].right) == (0, 1280)
    assert rects[-1] == Rect(left=0, top=rects[-1].top, right=1280, bottom=800)
