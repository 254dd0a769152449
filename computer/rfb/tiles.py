"""
Which parts of a picture differ, in tiles.

Pure. A set of tiles is an integer with a bit for each: cheap to add to, to compare and to keep one of for
every watcher. Row by row from the upper left; bit 0 is the first.
"""

from dataclasses import dataclass

import numpy as np

from computer.geometry import Rect, Size
from computer.pixels import Framebuffer

__all__ = ["TILE", "TileGrid"]

# Pixels of a tile's edge. Smaller ones follow changes more closely and cost more each.
TILE = 64


@dataclass(frozen=True, slots=True)
class TileGrid:
    """The tiles of a picture of one size; those at the right and lower edges may be smaller."""

    size: Size

    @property
    def columns(self) -> int:
        """Tiles in a row."""
        return -(-self.size.width // TILE)

    @property
    def rows(self) -> int:
        """Tiles in a column."""
        return -(-self.size.height // TILE)

    @property
    def everything(self) -> int:
        """The set of all tiles."""
        return (1 << self.columns * self.rows) - 1

    def differing(self, before: Framebuffer, after: Framebuffer) -> int:
        """
        The tiles in which two pictures of this size differ.

        Args:
            before: ``(height, width, 4)`` uint8, contiguous; what its fourth bytes hold counts, too.
            after: likewise.
        """
        unlike = before.view(np.uint32)[..., 0] != after.view(np.uint32)[..., 0]
        down = np.logical_or.reduceat(unlike, np.arange(0, self.size.height, TILE), axis=0)
        tiles = np.logical_or.reduceat(down, np.arange(0, self.size.width, TILE), axis=1)
        return int.from_bytes(np.packbits(tiles, bitorder="little").tobytes(), "little")

    def rects(self, tiles: int, most_rows: int) -> tuple[Rect, ...]:
        """
        Rectangles that cover exactly the set *tiles*, each at most *most_rows* tiles high.

        Runs of a row, joined to the same run of the row above.
        """
        done: list[Rect] = []
        open_runs: dict[tuple[int, int], int] = {}
        for row in range(self.rows + 1):
            runs = set(self._runs(tiles, row)) if row < self.rows else set()
            for run, top in tuple(open_runs.items()):
                if run not in runs or row - top == most_rows:
                    done.append(self._rect(run, top, row))
                    del open_runs[run]
            for run in runs:
                open_runs.setdefault(run, row)
        return tuple(sorted(done, key=lambda rect: (rect.top, rect.left)))

    def _runs(self, tiles: int, row: int) -> "list[tuple[int, int]]":
        bits = tiles >> row * self.columns & (1 << self.columns) - 1
        runs = []
        while bits:
            first = (bits & -bits).bit_length() - 1
            length = (~(bits >> first) & (bits >> first) + 1).bit_length() - 1
            runs.append((first, first + length))
            bits &= ~(((1 << length) - 1) << first)
        return runs

    def _rect(self, run: tuple[int, int], top: int, bottom: int) -> Rect:
        return Rect(
            left=run[0] * TILE,
            top=top * TILE,
            right=min(run[1] * TILE, self.size.width),
            bottom=min(bottom * TILE, self.size.height),
        )
