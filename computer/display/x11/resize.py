"""
The size of a screen, changed while programs run (RandR).

Owns the making of modes: a virtual screen has no real ones, and takes any size once a mode of that
size is among its output's.
"""

import time
from typing import Any

from Xlib.ext import randr

from computer.display.x11.connection import XConnection, connected
from computer.errors import InvalidAction, NotConfirmed
from computer.geometry import Size

__all__ = ["resize_screen"]

# Seconds for the server to have the new size.
CONFIRM_S = 2.0
LOOK_S = 0.01
# Times that a change is asked for again because another change came first.
TRIES = 5


def resize_screen(name: str, cookie: bytes | None, size: Size) -> None:
    """
    Give the screen of server *name* another size.

    Raises:
        InvalidAction: the server takes no such size, or can't change it.
        NotConfirmed: it did not change in time.
        DisplayLost: the server is gone.
    """
    with connected(name, cookie) as connection:
        if not connection.has_extension("RANDR"):
            msg = "this X server can't change the size of its screen (it lacks RANDR)"
            raise InvalidAction(msg)
        root = connection.screen().root
        _ensure_mode(connection, size)
        for _ in range(TRIES):
            info = root.xrandr_get_screen_info()
            sizes = [(each.width_in_pixels, each.height_in_pixels) for each in info.sizes]
            if (size.width, size.height) not in sizes:
                msg = f"this X server takes no screen of {size.width}x{size.height}"
                raise InvalidAction(msg)
            index = sizes.index((size.width, size.height))
            answer = root.xrandr_set_screen_config(index, randr.Rotate_0, info.config_timestamp, 0)
            if answer.status == randr.SetConfigSuccess:
                break
        _wait_size(root, size)


def _ensure_mode(connection: XConnection, size: Size) -> None:
    root: Any = connection.screen().root
    resources = root.xrandr_get_screen_resources()._data
    if any((mode["width"], mode["height"]) == (size.width, size.height) for mode in resources["modes"]):
        return
    text = f"{size.width}x{size.height}-agentd"
    # Nothing is ever drawn by these timings; they only have to make sense.
    mode = (
        0, size.width, size.height, size.width * size.height * 60,
        size.width, size.width, size.width, 0, size.height, size.height, size.height, len(text), 0,
    )  # fmt: skip
    created = root.xrandr_create_mode(mode, text)
    for output in resources["outputs"]:
        connection.xrandr_add_output_mode(output, created.mode)
    connection.sync()


def _wait_size(root: Any, size: Size) -> None:  # noqa: ANN401
    deadline = time.monotonic() + CONFIRM_S
    while True:
        geometry = root.get_geometry()
        if (geometry.width, geometry.height) == (size.width, size.height):
            return
        if time.monotonic() >= deadline:
            msg = f"the screen is {geometry.width}x{geometry.height} still; it did not change in time"
            raise NotConfirmed(msg)
        time.sleep(LOOK_S)
