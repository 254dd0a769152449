"""Reading terminals off pictures that are drawn from the glyphs themselves."""

import base64
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PcfFontFile

from chatd.errors import BadRequest
from chatd.rehearsal.conversation import Picture
from chatd.rehearsal.screen import Cursor, glyph_bitmaps, read_picture, read_screen

GLYPHS = glyph_bitmaps("regular")
FONTS = Path("/usr/share/fonts/X11/misc")
ASCII = "".join(map(chr, range(32, 127)))


def _desktop(level: int = 60) -> np.ndarray:
    return np.full((800, 1280, 3), level, dtype=np.uint8)


def _draw(
    pixels: np.ndarray, x: int, y: int, rows: list[str], *, columns: int = 80, count: int = 24, spare: int = 0
) -> None:
    """Draw a terminal whose first cell is at (x, y); *spare* pixels widen its right border."""
    pixels[y - 3 : y + count * 13 + 3, x - 3 : x + columns * 6 + 3 + spare] = 0
    pixels[y - 2 : y + count * 13 + 2, x - 2 : x + columns * 6 + 2 + spare] = 255
    for row, text in enumerate(rows):
        for column, character in enumerate(text):
            _cell(pixels, x + column * 6, y + row * 13)[GLYPHS[character]] = 0


def _cell(pixels: np.ndarray, x: int, y: int) -> np.ndarray:
    return pixels[y : y + 13, x : x + 6]


@pytest.mark.parametrize(("weight", "file"), [("regular", "6x13"), ("bold", "6x13B")])
def test_the_shipped_glyphs_are_the_fonts(weight: str, file: str) -> None:
    """Source: the X.Org font misc-fixed 6x13, in the public domain."""
    path = FONTS / f"{file}-ISO8859-1.pcf.gz"
    if not path.exists():
        pytest.fail("the font is not installed; script/bootstrap installs xfonts-base")
    with gzip.open(path) as stream:
        font = PcfFontFile.PcfFontFile(io.BytesIO(stream.read()))

    for character, bitmap in glyph_bitmaps(weight).items():
        assert np.array_equal(np.asarray(font.glyph[ord(character)][3]).astype(bool), bitmap), character


@settings(max_examples=15, deadline=None)
@given(
    x=st.integers(min_value=3, max_value=700),
    y=st.integers(min_value=3, max_value=450),
    rows=st.lists(st.text(alphabet=ASCII, max_size=79), min_size=1, max_size=20),
)
def test_any_text_on_any_grid_is_read(x: int, y: int, rows: list[str]) -> None:
    """Ours: what is drawn comes back, wherever the window is."""
    rows = ["$ anchor", *rows]
    pixels = _desktop()
    _draw(pixels, x, y, rows)

    (terminal, *_) = read_screen(pixels).terminals

    expected = [row.rstrip() for row in rows]
    while not expected[-1]:
        expected.pop()
    assert list(terminal.lines) == expected
    assert (terminal.origin, terminal.columns, terminal.rows) == ((x, y), 80, 24)


def test_a_lone_prompt_is_found() -> None:
    """Ours: a fresh terminal shows one character."""
    pixels = _desktop()
    _draw(pixels, 101, 57, ["$ "])
    _cell(pixels, 113, 57)[:] = 0

    (terminal,) = read_screen(pixels).terminals

    assert terminal.lines == ("$",)
    assert terminal.cursor == Cursor(column=2, row=0, is_solid=True)


def test_cursors_do_not_hide_the_character_below() -> None:
    """Ours: a solid cursor shows its glyph in reverse, a hollow one frames it."""
    pixels = _desktop()
    _draw(pixels, 50, 50, ["$ abc"])
    _cell(pixels, 62, 50)[:] = np.where(GLYPHS["a"], 255, 0)[:, :, None]
    hollow = _cell(pixels, 74, 50)
    hollow[[0, -1]] = 0
    hollow[:, [0, -1]] = 0

    (terminal,) = read_screen(pixels).terminals

    assert terminal.lines == ("$ abc",)
    assert terminal.cursor == Cursor(column=4, row=0, is_solid=False)


@pytest.mark.parametrize("spare", [0, 4, 5])
def test_full_rows_are_joined_even_in_a_window_with_spare_pixels(spare: int) -> None:
    """Ours: a maximised window is not a whole number of cells wide."""
    pixels = _desktop()
    _draw(pixels, 40, 40, ["a" * 80, "b" * 10, "c" * 79, "d"], spare=spare)

    (terminal,) = read_screen(pixels).terminals

    assert terminal.lines == ("a" * 80 + "b" * 10, "c" * 79, "d")


def test_overlapping_terminals_are_told_apart_and_the_focused_one_is_first() -> None:
    """Ours: windows lie on one another; the one with the solid cursor gets the keys."""
    pixels = _desktop()
    _draw(pixels, 100, 100, ["$ below", *(["text"] * 20)])
    _draw(pixels, 251, 150, ["$ above"], columns=60, count=10)
    _cell(pixels, 251, 163)[:] = 0

    first, second = read_screen(pixels).terminals

    assert first.lines == ("$ above",)
    assert first.cursor == Cursor(column=0, row=1, is_solid=True)
    assert second.lines[:2] == ("$ below", "text")


def test_coloured_text_is_text_and_a_pointer_is_unreadable() -> None:
    """Ours: everything that is not paper is ink."""
    pixels = _desktop()
    _draw(pixels, 30, 30, ["$ green here"])
    _cell(pixels, 42, 30)[GLYPHS["g"]] = (0, 205, 0)
    _cell(pixels, 78, 30)[3:9, 1:3] = 0

    (terminal,) = read_screen(pixels).terminals

    assert terminal.lines == ("$ green \ufffdere",)


def test_unreadable_cells_at_the_end_are_kept_and_a_pointer_far_behind_is_not() -> None:
    """Ours: foreign characters belong to the text, the pointer over blank cells does not."""
    pixels = _desktop()
    _draw(pixels, 30, 30, ["$ caf", "$ ls", "x"])
    for x, y in ((60, 30), (66, 30), (150, 43), (156, 43)):
        _cell(pixels, x, y)[3:9, 1:3] = 0

    (terminal,) = read_screen(pixels).terminals

    assert terminal.lines == ("$ caf\ufffd\ufffd", "$ ls", "x")


@pytest.mark.parametrize(("column", "row", "gap"), [(2, 1, 1), (1, 1, 0), (0, 2, None), (7, 1, 6)])
def test_the_cursors_distance_from_the_text_is_known(column: int, row: int, gap: int | None) -> None:
    """Ours: right after a prompt it waits, in another row a program runs."""
    pixels = _desktop()
    _draw(pixels, 30, 30, ["$ ls", "$"])
    _cell(pixels, 30 + column * 6, 30 + row * 13)[:] = 0

    (terminal,) = read_screen(pixels).terminals

    assert terminal.cursor is not None
    assert terminal.cursor.gap == gap


@pytest.mark.parametrize("level", [0, 60, 255])
def test_a_desktop_without_a_terminal_has_none(level: int) -> None:
    """Ours: nothing is made up, on black, grey or white."""
    assert read_screen(_desktop(level)).terminals == ()


def test_noise_is_no_terminal() -> None:
    """Ours: exact comparison has no near misses."""
    noise = np.random.default_rng(1).integers(0, 256, size=(400, 600, 3), dtype=np.uint8)

    assert read_screen(noise).terminals == ()
    assert read_screen(noise[:5, :5]).terminals == ()


def test_encoded_pictures_are_read_and_others_refused() -> None:
    """Ours: PNG in base64, as tools return it."""
    pixels = _desktop()
    _draw(pixels, 30, 30, ["$ hi"])
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()

    assert read_picture(Picture(media_type="image/png", data=data)).terminals[0].lines == ("$ hi",)
    with pytest.raises(BadRequest):
        read_picture(Picture(media_type="image/png", data=data[:200]))
