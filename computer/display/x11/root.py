"""
The root window: its colour, and whether a window manager looks after it.

Used while a session starts; every function makes a connection of its own.
"""

import time

from Xlib import X

from computer.display.x11.connection import connect, translate_errors

__all__ = ["paint_root", "wait_window_manager"]

# Seconds between two looks at a property; the wait ends within this after the manager is ready.
POLL_S = 0.005


def paint_root(name: str, cookie: bytes | None, colour: int) -> None:
    """
    Fill the root window with ``0xRRGGBB``, to stay so.

    Raises:
        DisplayLost: the server is gone.
    """
    connection = connect(name, cookie)
    with translate_errors():
        root = connection.screen().root
        root.change_attributes(background_pixel=colour)
        root.clear_area(0, 0, 0, 0)
        connection.sync()
        connection.close()


def wait_window_manager(name: str, cookie: bytes | None, timeout_s: float) -> bool:
    """
    Block until a window manager has announced itself; False when none did in time.

    Raises:
        DisplayLost: the server is gone.

    Source: Extended Window Manager Hints, "_NET_SUPPORTING_WM_CHECK".
    """
    connection = connect(name, cookie)
    deadline = time.monotonic() + timeout_s
    with translate_errors():
        root = connection.screen().root
        check = connection.intern_atom("_NET_SUPPORTING_WM_CHECK")
        found = root.get_full_property(check, X.AnyPropertyType) is not None
        while not found and time.monotonic() < deadline:
            time.sleep(POLL_S)
            found = root.get_full_property(check, X.AnyPropertyType) is not None
        connection.close()
    return found
