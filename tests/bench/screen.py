"""
The screen that benchmarks look at: one realistic screen, the same in every run.

- behind everything a photo: smooth fields of colour at three scales, and the grain of a sensor;
- a window that shows a page: antialiased paragraphs, a coloured header, a table, a picture;
- two terminals full of coloured text, which ``tests.bench.desk`` opens, over a part of both.

About half of the photo stays in sight. That makes it dearer than most screens of an agent; a page
over the whole screen and a photo over the whole screen are measured beside it.
"""

import itertools

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from Xlib import X
from Xlib.xobject.drawable import Pixmap, Window

from computer.display.x11.connection import XConnection

__all__ = ["cover", "page", "paint", "photo", "terminals", "touch"]

Rgb = NDArray[np.uint8]

# Pixels across one field of colour of the photo, and its height in levels of 256.
FIELDS = ((160, 90), (40, 50), (10, 25))
# Standard deviation of the photo's grain, in levels of 256.
GRAIN = 3.0
# Rows of a picture that are sent to the server in one request.
BAND = 16
FONTS = "/usr/share/fonts/truetype/dejavu"
WORDS = (
    "the report of this quarter shows that most visitors came from search and stayed for two minutes "
    "while returning customers bought more often than before; see table below for details (preliminary)"
)
FONTS_OF_PAGE = (("DejaVuSans", 13), ("DejaVuSans-Bold", 24))
LISTING = (
    "for i in $(seq 1 60); do for c in 31 32 33 34 35 36; do "
    "printf '\\033[%dmdrwxr-xr-x %4d root staff %6d file-%d.txt\\033[0m  ' "
    "$c $i $((i*c*7919%99991)) $((i*c)); "
    "done; echo; done; exec cat > "
)


_colours = itertools.count(1)


def photo(width: int, height: int) -> Rgb:
    """A photo's statistics: smooth colours, edges of several sizes, grain."""
    rng = np.random.default_rng(7)
    sum_of_fields = np.full((height, width, 3), 120, np.float32)
    for edge, levels in FIELDS:
        shape = (max(2, height // edge), max(2, width // edge), 3)
        field = Image.fromarray(rng.integers(0, 256, shape, np.uint8))
        smooth = field.resize((width, height), Image.Resampling.BICUBIC)
        sum_of_fields += (np.asarray(smooth, np.float32) - 127.5) * (levels / 127.5)
    sum_of_fields += rng.normal(0, GRAIN, (height, width, 1)).astype(np.float32)
    return np.clip(sum_of_fields, 0, 255).astype(np.uint8)


def page(width: int, height: int) -> Rgb:
    """A page as a browser draws it."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    text, title = (ImageFont.truetype(f"{FONTS}/{name}.ttf", size) for name, size in FONTS_OF_PAGE)
    for x in range(width):
        draw.line((x, 0, x, 64), fill=(34 + 54 * x // width, 51 + 85 * x // width, 68 + 102 * x // width))
    draw.text((24, 16), "Quarterly report — figures, charts", font=title, fill="white")
    words, column = np.random.default_rng(3), width * 5 // 8
    for top in range(84, height, 22):
        _write_line(draw, words, (24, top), column, text)
    for row, top in enumerate(range(84, height // 2, 24)):
        for cell, left in enumerate(range(column + 48, width - 60, 64)):
            draw.rectangle((left, top, left + 64, top + 24), outline=(204, 204, 204))
            draw.text((left + 8, top + 4), str(row * cell * 7919 % 9973), font=text, fill=(51, 51, 51))
    image.paste(Image.fromarray(photo(width // 4, height // 3)), (column + 48, height // 2 + 24))
    return np.asarray(image)


def _write_line(
    draw: ImageDraw.ImageDraw,
    words: np.random.Generator,
    place: tuple[int, int],
    width: int,
    font: ImageFont.FreeTypeFont,
) -> None:
    line = str(words.choice(WORDS.split()))
    while draw.textlength(line, font=font) < width - 90:
        line += " " + str(words.choice(WORDS.split()))
    draw.text(place, line, font=font, fill=(33, 37, 41))


def paint(connection: XConnection, size: tuple[int, int]) -> None:
    """Put the photo behind everything, and the page in a window."""
    width, height = size
    root = connection.screen().root
    root.change_attributes(background_pixmap=_pixmap(connection, photo(width, height)))
    root.clear_area(0, 0, 0, 0)
    _show(connection, page(width // 2, height * 3 // 5), (width * 12 // 25, height // 20))


def cover(connection: XConnection, picture: Rgb) -> Window:
    """Show a picture over the whole screen, above everything, until it is destroyed."""
    return _show(connection, picture, (0, 0), above=True)


def touch(connection: XConnection, left: int, top: int, width: int, height: int) -> None:
    """Paint a part of the screen in a colour that it did not have."""
    root = connection.screen().root
    context = root.create_gc(foreground=next(_colours) * 7, subwindow_mode=X.IncludeInferiors)
    root.fill_rectangle(context, left, top, width, height)
    context.free()
    connection.sync()


def terminals(size: tuple[int, int], out: str) -> list[list[str]]:
    """Commands of two terminals; the second puts what is typed into the file *out*."""
    columns, rows = size[0] // 16, size[1] // 36
    return [
        ["xterm", "-u8", "-geometry", f"{columns}x{rows}+{x}+{y}", "-e", "sh", "-c", f"{LISTING}{target}"]
        for x, y, target in ((0, 0, "/dev/null"), (size[0] // 3, size[1] // 3, out))
    ]


def _show(connection: XConnection, picture: Rgb, place: tuple[int, int], *, above: bool = False) -> Window:
    height, width = picture.shape[:2]
    window = connection.screen().root.create_window(
        *place, width, height, 0, X.CopyFromParent,
        background_pixmap=_pixmap(connection, picture), override_redirect=above,
    )  # fmt: skip
    window.set_wm_name("Quarterly report")
    window.map()
    connection.sync()
    return window


def _pixmap(connection: XConnection, picture: Rgb) -> Pixmap:
    height, width = picture.shape[:2]
    screen = connection.screen()
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[..., :3] = picture[..., ::-1]
    pixmap = screen.root.create_pixmap(width, height, screen.root_depth)
    context = pixmap.create_gc()
    for top in range(0, height, BAND):
        rows = pixels[top : top + BAND]
        pixmap.put_image(context, 0, top, width, len(rows), X.ZPixmap, screen.root_depth, 0, rows.tobytes())
    connection.sync()
    return pixmap
