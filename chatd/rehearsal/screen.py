"""
Reads the text of terminals off a screenshot, without OCR.

A terminal here is an xterm with the bitmap font 6x13 (misc-fixed), dark on white
and not antialiased: every character is one of 95 known pictures at a place on a
grid, so exact comparison finds both the grid and the text. Owns pixels only; what
the text means is ``shell``'s matter.

How it works: each pixel gets a number that identifies the 6x13 window to its
lower right. Windows that equal a glyph vote for a grid (their place modulo 6
and 13). On each grid, cells that are a glyph or blank and touch one another are
one terminal; its cursor and reversed text are then read inside its bounds.
"""

import base64
import binascii
import io
import json
import re
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from chatd.errors import BadRequest
from chatd.rehearsal.conversation import Picture
from chatd.rehearsal.shell import UNREADABLE

__all__ = ["Cursor", "Screen", "Terminal", "glyph_bitmaps", "read_picture", "read_screen"]

CELL_WIDTH = 6
CELL_HEIGHT = 13
# Pixels of a picture that is looked at; an 8K screen has 33 million.
MAX_PIXELS = 34_000_000
# A window smaller than this (cells) is a label or an icon, not a terminal.
MIN_COLUMNS = 10
MIN_ROWS = 2
# Grids and terminals that are examined; bounds the work on a page full of look-alikes.
MAX_GRIDS = 8
MAX_TERMINALS = 8
# A colour channel above this is paper. Everything else, coloured text included, is ink.
PAPER_LEVEL = 200
# xterm's inner border, pixels of paper round the grid.
INNER_BORDER = 2

# Up to four cells far behind the text of a row: the mouse pointer, which is that wide at most.
_POINTER = re.compile(f"(?<= {{4}}){UNREADABLE}{{1,4}}(?= *$)")

Bits = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint64]

# Odd 64-bit multipliers, one per row of a cell: they spread windows over all numbers.
_MULTIPLIERS = tuple((0x9E3779B97F4A7C15 * (2 * row + 1) ** 5 | 1) % 2**64 for row in range(CELL_HEIGHT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """
    A terminal's text cursor, in cells; solid when the terminal has the focus.

    *gap* are the blank cells between the end of the text and the cursor; None when the
    cursor is in another row than the last that holds text.
    """

    column: int
    row: int
    is_solid: bool
    gap: int | None = field(default=1, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """
    One terminal's visible text.

    *origin* is the first cell's upper left corner, native pixels of the picture.
    *lines* have wrapped rows joined and no trailing blanks; cells that could not
    be read are U+FFFD, except what looks like the mouse pointer over blank cells.
    """

    origin: tuple[int, int]
    columns: int
    rows: int
    lines: tuple[str, ...]
    cursor: Cursor | None = None

    @property
    def center(self) -> tuple[int, int]:
        """The middle of the grid, pixels."""
        return (
            self.origin[0] + self.columns * CELL_WIDTH // 2,
            self.origin[1] + self.rows * CELL_HEIGHT // 2,
        )

    @property
    def is_full(self) -> bool:
        """Whether the text reaches the last rows, so that earlier text has scrolled away."""
        used = sum(max(1, -(-len(line) // self.columns)) for line in self.lines)
        return used >= self.rows - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a screenshot shows: its size in pixels and its terminals, the focused one first."""

    width: int
    height: int
    terminals: tuple[Terminal, ...] = ()


def read_picture(picture: Picture) -> Screen:
    """
    Read a base64 picture.

    Raises:
        BadRequest: it is no picture, or a huge one.
    """
    try:
        raw = base64.b64decode(picture.data, validate=True)
        with Image.open(io.BytesIO(raw)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise BadRequest("the picture is too large")
            pixels = np.asarray(image.convert("RGB"))
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise BadRequest("could not process the picture") from error
    return read_screen(pixels)


def read_screen(pixels: npt.NDArray[np.uint8]) -> Screen:
    """
    Read the terminals in *pixels*.

    Args:
        pixels: ``(height, width, 3)`` uint8, RGB.
    """
    height, width = pixels.shape[:2]
    ink = pixels.min(axis=2) <= PAPER_LEVEL
    if height < CELL_HEIGHT * MIN_ROWS or width < CELL_WIDTH * MIN_COLUMNS:
        return Screen(width=width, height=height)
    codes = _window_codes(ink)
    terminals: list[Terminal] = []
    covered = np.zeros(codes.shape, dtype=np.bool_)
    seeds = _glyph_places(codes)
    for grid_y, grid_x in _likely_grids(seeds):
        for found in _terminals_on_grid(ink, codes, (grid_y, grid_x), seeds, covered):
            if len(terminals) < MAX_TERMINALS:
                terminals.append(found)
    terminals.sort(key=_rank)
    return Screen(width=width, height=height, terminals=tuple(terminals))


def _rank(terminal: Terminal) -> tuple[int, int]:
    focus = 1 if terminal.cursor is None else 2 - 2 * terminal.cursor.is_solid
    return focus, -sum(map(len, terminal.lines))


def glyph_bitmaps(weight: str) -> dict[str, Bits]:
    """The 95 printable ASCII glyphs, ``(13, 6)`` bool each; *weight* is regular or bold."""
    table: dict[str, Any] = json.loads(
        resources.files("chatd.rehearsal").joinpath("glyphs_6x13.json").read_text(encoding="utf-8")
    )
    return {character: _bitmap(rows) for character, rows in table[weight].items()}


def _bitmap(rows: str) -> Bits:
    values = np.frombuffer(bytes.fromhex(rows), dtype=np.uint8)
    return ((values[:, None] >> np.arange(CELL_WIDTH - 1, -1, -1)) & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """
    Window numbers of everything that can be recognised.

    *solid* are the plain glyphs that prove a terminal. Blank proves nothing, and a
    glyph made of whole pixel rows, such as an underscore, may be a window's edge.
    """

    plain: dict[int, str]
    solid: frozenset[int]
    reversed: dict[int, str]
    hollow: dict[int, str]
    solid_top: Bits


@cache
def _tables() -> _Tables:
    plain: dict[int, str] = {}
    reversed_: dict[int, str] = {}
    hollow: dict[int, str] = {}
    solid: set[int] = set()
    frame = np.ones((CELL_HEIGHT, CELL_WIDTH), dtype=np.bool_)
    frame[1:-1, 1:-1] = False
    for weight in ("regular", "bold"):
        for character, bitmap in glyph_bitmaps(weight).items():
            plain.setdefault(_code_of(bitmap), character)
            reversed_.setdefault(_code_of(~bitmap), character)
            hollow.setdefault(_code_of(bitmap | frame), character)
            if not np.array_equal(bitmap.any(axis=1), bitmap.all(axis=1)):
                solid.add(_code_of(bitmap))
    top = np.zeros(1 << 16, dtype=np.bool_)
    top[[code >> 48 for code in solid]] = True
    return _Tables(plain=plain, solid=frozenset(solid), reversed=reversed_, hollow=hollow, solid_top=top)


def _code_of(bitmap: Bits) -> int:
    return int(_window_codes(bitmap)[0, 0])


def _window_codes(ink: Bits) -> Codes:
    """Number every 6x13 window of *ink*; blank is 0. Shape ``(height - 12, width - 5)``."""
    columns = ink.shape[1] - CELL_WIDTH + 1
    bits = ink.astype(np.uint8)
    row_codes = np.zeros((ink.shape[0], columns), dtype=np.uint64)
    for x in range(CELL_WIDTH):
        row_codes |= (bits[:, x : x + columns] << (CELL_WIDTH - 1 - x)).astype(np.uint64)
    rows = ink.shape[0] - CELL_HEIGHT + 1
    codes = np.zeros((rows, columns), dtype=np.uint64)
    for y, multiplier in enumerate(_MULTIPLIERS):
        codes += row_codes[y : y + rows] * np.uint64(multiplier)
    return codes


def _glyph_places(codes: Codes) -> npt.NDArray[np.intp]:
    """Where a window is a glyph that proves a terminal: ``(n, 2)``, y and x."""
    tables = _tables()
    maybe = np.argwhere(tables.solid_top[(codes >> np.uint64(48)).astype(np.intp)])
    exact = [int(codes[y, x]) in tables.solid for y, x in maybe]
    return maybe[np.array(exact, dtype=np.bool_)]


def _likely_grids(places: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """Grids with most glyphs first, as ``(y % 13, x % 6)``."""
    votes = np.zeros((CELL_HEIGHT, CELL_WIDTH), dtype=np.intp)
    np.add.at(votes, (places[:, 0] % CELL_HEIGHT, places[:, 1] % CELL_WIDTH), 1)
    order = np.argsort(votes, axis=None)[::-1][:MAX_GRIDS]
    grids = [divmod(int(index), CELL_WIDTH) for index in order]
    return [grid for grid in grids if votes[grid] > 0]


def _terminals_on_grid(
    ink: Bits, codes: Codes, grid: tuple[int, int], seeds: npt.NDArray[np.intp], covered: Bits
) -> list[Terminal]:
    """Terminals on one *grid*; marks their pixels in *covered* so that no other grid claims them."""
    grid_y, grid_x = grid
    cells = codes[grid_y::CELL_HEIGHT, grid_x::CELL_WIDTH]
    on_grid = (seeds[:, 0] % CELL_HEIGHT == grid_y) & (seeds[:, 1] % CELL_WIDTH == grid_x)
    places = [(int(y) // CELL_HEIGHT, int(x) // CELL_WIDTH) for y, x in seeds[on_grid]]
    is_open = cells == 0
    for place in places:
        is_open[place] = True
    found: list[Terminal] = []
    for row, column in places:
        if not is_open[row, column] or covered[row * CELL_HEIGHT + grid_y, column * CELL_WIDTH + grid_x]:
            continue
        members = np.array(_flood(is_open, row, column))
        for y, x in members.tolist():
            pixel_y, pixel_x = y * CELL_HEIGHT + grid_y, x * CELL_WIDTH + grid_x
            covered[pixel_y : pixel_y + CELL_HEIGHT, pixel_x : pixel_x + CELL_WIDTH] = True
        (top, left), (bottom, right) = members.min(axis=0).tolist(), (members.max(axis=0) + 1).tolist()
        if bottom - top >= MIN_ROWS and right - left >= MIN_COLUMNS:
            origin = left * CELL_WIDTH + grid_x, top * CELL_HEIGHT + grid_y
            found.append(_read_block(_without_border(ink, cells[top:bottom, left:right], origin), origin))
    return found


def _without_border(ink: Bits, block: Codes, origin: tuple[int, int]) -> Codes:
    """
    Drop a last column that is no column.

    A maximised window has up to five spare pixels; with xterm's border they can
    be as wide as a cell. A true last column has the whole border to its right.
    """
    left, top = origin
    right = left + block.shape[1] * CELL_WIDTH
    strip = ink[top : top + block.shape[0] * CELL_HEIGHT, right : right + INNER_BORDER]
    has_border = strip.shape[1] == INNER_BORDER and float(strip.mean()) < 0.5
    return block if has_border or block[:, -1].any() else block[:, :-1]


def _flood(is_open: Bits, row: int, column: int) -> list[tuple[int, int]]:
    """The open cells that touch one, itself included; closes them."""
    rows, columns = is_open.shape
    members = [(row, column)]
    waiting = deque(members)
    is_open[row, column] = False
    while waiting:
        y, x = waiting.popleft()
        for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if 0 <= near[0] < rows and 0 <= near[1] < columns and is_open[near]:
                is_open[near] = False
                members.append(near)
                waiting.append(near)
    return members


def _read_block(block: Codes, origin: tuple[int, int]) -> Terminal:
    tables = _tables()
    cursor: Cursor | None = None
    rows: list[str] = []
    for row, codes in enumerate(block.tolist()):
        characters: list[str] = []
        for column, code in enumerate(codes):
            character = tables.plain.get(code)
            if character is None:
                is_solid = code in tables.reversed
                character = tables.reversed.get(code) or tables.hollow.get(code)
                if character is not None:
                    cursor = Cursor(column=column, row=row, is_solid=is_solid)
            characters.append(character or UNREADABLE)
        rows.append(_POINTER.sub(lambda match: " " * len(match[0]), "".join(characters)))
    if cursor is not None:
        cursor = replace(cursor, gap=_gap(rows, cursor))
    return Terminal(
        origin=origin,
        columns=block.shape[1],
        rows=block.shape[0],
        lines=_joined(rows),
        cursor=cursor,
    )


def _gap(rows: list[str], cursor: Cursor) -> int | None:
    last = max((index for index, row in enumerate(rows) if row.strip()), default=0)
    return cursor.column - len(rows[last].rstrip()) if cursor.row == last else None


def _joined(rows: list[str]) -> tuple[str, ...]:
    """Join rows that fill the whole width with the next: that is where a terminal wraps."""
    lines: list[str] = []
    is_open = False
    for row in rows:
        if is_open:
            lines[-1] += row
        else:
            lines.append(row)
        is_open = row[-1] not in {" ", UNREADABLE}
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)
