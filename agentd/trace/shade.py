"""
Keep what was typed as a secret out of the pictures that are kept.

Pure. Where the screen differs from how it was before, the secret may be seen. That is black in every picture
until it looks otherwise there; text that has only moved up or down is followed. Pixels are
``(height, width, 3)`` uint8.

Invariant: a tile is shown only when most of what the secret changed in it and beside it has changed again.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shade"]

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]

# Pixels of a tile's side; a letter is about as high.
TILE = 16
# Difference of a colour that is none, where pictures lose a little.
LOSS = 48
# Pixels that are looked for elsewhere, and their part that must be there: other text meets a third of them.
MAX_SOUGHT = 2_000
FOUND = 0.6
# Part of a tile's own pixels that other text would not meet, where these are enough to say so.
SURELY_THERE = 0.9
ENOUGH = 16


class Shade:
    """
    One secret's, or that of several on top of each other.

    Args:
        before: the screen before it was typed; None: not known, so that all of it may show it.
        is_lossy: pictures of the same screen differ a little.
    """

    def __init__(self, before: Pixels | None, *, is_lossy: bool = False) -> None:
        self._before = before
        self._loss = LOSS if is_lossy else 0
        self._shown: Pixels | None = None
        self._changed: Mask | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of the secret is left to be seen."""
        return self._changed is not None and not self._changed.any()

    def reopen(self) -> None:
        """Another one is being typed: what changes from now on may show it as well."""
        self._shown = self._changed = None

    def cover(self, pixels: Pixels, *, is_typed: bool) -> Pixels:
        """
        Copy *pixels* with black where the secret may be seen.

        Args:
            pixels: the screen as it is.
            is_typed: programs have had time to show all of it.
        """
        if self._before is not None and self._before.shape != pixels.shape:
            self._before = None
            self.reopen()
        if self._shown is not None and self._shown.shape != pixels.shape:
            self.reopen()
        if self._shown is None or self._changed is None:
            changed = self._differs(self._before, pixels)
            if is_typed:
                self._shown, self._changed = pixels.copy(), changed
        else:
            changed = self._changed = self._follow(self._shown, self._changed, pixels)
        return np.where(_grow(changed)[..., None], np.uint8(0), pixels)

    def _differs(self, old: Pixels | None, new: Pixels) -> Mask:
        if old is None:
            return np.ones(new.shape[:2], np.bool_)
        apart = np.where(old > new, old - new, new - old)
        return np.asarray((apart > self._loss).any(axis=2))

    def _follow(self, shown: Pixels, changed: Mask, pixels: Pixels) -> Mask:
        """What of *changed* is there still, and where the rest has gone to."""
        has_gone = changed & _spread(_gone(changed, changed & ~self._differs(shown, pixels)), changed)
        if not has_gone.any():
            return changed
        moved = self._find_moved(shown, has_gone, pixels)
        shown[moved] = pixels[moved]
        return (changed & ~has_gone) | moved

    def _find_moved(self, shown: Pixels, sought: Mask, pixels: Pixels) -> Mask:
        """Where what is *sought* is now, if it has only moved up or down."""
        rows, columns = np.nonzero(sought)
        step = max(1, len(rows) // MAX_SOUGHT)
        some_rows, some_columns = rows[::step], columns[::step]
        wanted = shown[some_rows, some_columns].astype(np.int16)
        height = pixels.shape[0]
        moved = np.zeros_like(sought)
        for offset in range(1 - height, height):
            at = some_rows + offset
            is_inside = (at >= 0) & (at < height)
            if offset == 0 or np.count_nonzero(is_inside) < FOUND * len(at):
                continue
            found = pixels[at[is_inside], some_columns[is_inside]]
            is_there = (np.abs(found - wanted[is_inside]) <= self._loss).all(axis=1)
            if np.count_nonzero(is_there) >= FOUND * len(at):
                fits = (rows + offset >= 0) & (rows + offset < height)
                moved[rows[fits] + offset, columns[fits]] = True
        return moved


def _count(mask: Mask) -> NDArray[np.intp]:
    """How many of each tile."""
    height, width = mask.shape
    padded = np.pad(mask, ((0, -height % TILE), (0, -width % TILE)))
    tiles = padded.reshape(padded.shape[0] // TILE, TILE, padded.shape[1] // TILE, TILE)
    count: NDArray[np.intp] = tiles.sum(axis=(1, 3))
    return count


def _gone(changed: Mask, same: Mask) -> Mask:
    """Tiles of which less is the same than other text in that place would have alike by chance."""
    all_own, own = _count(changed), _count(same)
    is_there = (own >= SURELY_THERE * all_own) & (all_own >= ENOUGH)
    return ~is_there & (2 * _around(own) < _around(all_own))


def _around(count: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many of each tile and those that touch it."""
    padded = np.pad(count, 1)
    height, width = count.shape
    every = np.zeros_like(count)
    for down in range(3):
        for right in range(3):
            every += padded[down : down + height, right : right + width]
    return every


def _spread(tiles: Mask, like: Mask) -> Mask:
    """Tiles as pixels."""
    pixels = tiles.repeat(TILE, axis=0).repeat(TILE, axis=1)
    return pixels[: like.shape[0], : like.shape[1]]


def _grow(mask: Mask) -> Mask:
    """All of each tile in which something is."""
    return _spread(_count(mask) > 0, mask)
