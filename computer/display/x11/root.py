"""The root window: its colour."""

from computer.display.x11.connection import connected

__all__ = ["paint_root"]


def paint_root(name: str, cookie: bytes | None, colour: int) -> None:
    """
    Fill the root window with ``0xRRGGBB``, to stay so.

    Raises:
        DisplayLost: the server is gone.
    """
    with connected(name, cookie) as connection:
        root = connection.screen().root
        root.change_attributes(background_pixel=colour)
        root.clear_area(0, 0, 0, 0)
        connection.sync()
