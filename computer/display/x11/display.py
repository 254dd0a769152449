"""
``Display`` on an X server.

Owns three connections: one for input and questions, one for damage, one for shared-memory
capture where the libraries are there.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from Xlib import X

from computer.display import Patience, Settled
from computer.display.shm import ShmCapture, ShmUnavailable
from computer.display.x11.connection import XConnection, connect, disconnect, shut_down, translate_errors
from computer.display.x11.damage import DamageWatch
from computer.display.x11.keyboard import Keyboard
from computer.errors import ComputerError, DisplayClosed, DisplayLost, OutOfBounds
from computer.geometry import Point, Size
from computer.keys import Chord
from computer.pixels import Cursor, Framebuffer, blend_cursor

__all__ = ["X11Display"]

P = ParamSpec("P")
R = TypeVar("R")


def _on_server(
    method: "Callable[Concatenate[X11Display, P], R]",
) -> "Callable[Concatenate[X11Display, P], R]":
    @wraps(method)
    def guarded(self: "X11Display", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_closed:
            msg = "the display was closed"
            raise DisplayClosed(msg)
        with translate_errors():
            return method(self, *args, **kwargs)

    return guarded


class X11Display:
    """
    A local X server, driven from one thread.

    Raises:
        DisplayLost: the server can't be reached, or lacks XTEST, DAMAGE or XFIXES.
    """

    def __init__(self, name: str, cookie: bytes | None = None, *, use_shm: bool = True) -> None:
        self.is_closed = False
        self._name = name
        self._buttons: dict[int, None] = {}
        self._connection: XConnection = connect(name, cookie)
        try:
            with translate_errors():
                self._check_extensions()
                self._root = self._connection.screen().root
                self._keyboard = Keyboard(self._connection)
                self._release_leftovers()
                self._damage = DamageWatch(name, cookie)
        except BaseException:
            disconnect(self._connection)
            raise
        self._shm = _open_shm(name, cookie) if use_shm else None

    @_on_server
    def size(self) -> Size:
        """Size of the root window, which follows RandR."""
        geometry = self._root.get_geometry()
        return Size(width=geometry.width, height=geometry.height)

    @_on_server
    def capture(self) -> Framebuffer:
        """Pixels of the root window with the pointer drawn in."""
        size = self.size()
        frame = self._shm.grab(size) if self._shm is not None else self._get_image(size)
        cursor = self._read_cursor()
        if cursor is not None:
            blend_cursor(frame, cursor)
        return frame

    @_on_server
    def pointer(self) -> Point:
        """Position of the core pointer."""
        found = self._root.query_pointer()
        return Point(x=found.root_x, y=found.root_y)

    @_on_server
    def move_pointer(self, point: Point) -> None:
        """Warp by XTEST, so that applications see motion."""
        size = self.size()
        if not (0 <= point.x < size.width and 0 <= point.y < size.height):
            msg = f"({point.x}, {point.y}) is outside the {size} screen"
            raise OutOfBounds(msg)
        self._connection.xtest_fake_input(X.MotionNotify, 0, x=point.x, y=point.y)
        self._connection.sync()

    @_on_server
    def press_button(self, button: int) -> None:
        """Press a button."""
        if button not in self._buttons:
            self._buttons[button] = None
            self._connection.xtest_fake_input(X.ButtonPress, button)
            self._connection.sync()

    @_on_server
    def release_button(self, button: int) -> None:
        """Release a button."""
        if button in self._buttons:
            del self._buttons[button]
            self._connection.xtest_fake_input(X.ButtonRelease, button)
            self._connection.sync()

    @_on_server
    def press_chord(self, chord: Chord) -> None:
        """Press a chord."""
        self._keyboard.press(chord)

    @_on_server
    def release_chord(self, chord: Chord) -> None:
        """Release a chord."""
        self._keyboard.release(chord)

    def type_text(self, text: str) -> Iterator[int]:
        """Type in bursts."""
        if self.is_closed:
            msg = "the display was closed"
            raise DisplayClosed(msg)
        with translate_errors():
            yield from self._keyboard.type(text)

    @_on_server
    def release_all(self) -> None:
        """Release keys, then buttons."""
        self._keyboard.release_all()
        for button in tuple(self._buttons):
            self.release_button(button)

    @_on_server
    def mark(self) -> None:
        """Forget earlier damage."""
        self._damage.drain()

    @_on_server
    def wait_settled(self, patience: Patience) -> Settled:
        """Wait for rest by damage."""
        return self._damage.wait(patience)

    def close(self) -> None:
        """Release what is held, give spare keycodes back, disconnect."""
        if self.is_closed:
            return
        with suppress(ComputerError):
            self.release_all()
            self._give_back()
        self.is_closed = True
        self._damage.close()
        disconnect(self._connection)
        if self._shm is not None:
            self._shm.close()

    def abort(self) -> None:
        """Break all connections."""
        shut_down(self._connection)
        self._damage.abort()
        if self._shm is not None:
            self._shm.abort()

    @_on_server
    def _give_back(self) -> None:
        self._keyboard.unbind()

    def _check_extensions(self) -> None:
        for extension in ("XTEST", "DAMAGE", "XFIXES"):
            if not self._connection.has_extension(extension):
                msg = f"the X server {self._name} lacks the {extension} extension"
                raise DisplayLost(msg)
        self._connection.xfixes_query_version()

    def _release_leftovers(self) -> None:
        self._keyboard.release_leftovers()
        mask = self._root.query_pointer().mask
        for button in range(1, 6):
            if mask & (X.Button1Mask << (button - 1)):
                self._connection.xtest_fake_input(X.ButtonRelease, button)
        self._connection.sync()

    def _get_image(self, size: Size) -> Framebuffer:
        image = self._root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFF_FFFF)
        return np.frombuffer(bytearray(image.data), np.uint8).reshape(size.height, size.width, 4)

    def _read_cursor(self) -> Cursor | None:
        image = self._connection.xfixes_get_cursor_image(self._root)
        if not image.width or not image.height:
            return None
        pixels = np.array(image.cursor_image, np.uint32).view(np.uint8).reshape(image.height, image.width, 4)
        return Cursor(pixels=pixels, origin=Point(x=image.x - image.xhot, y=image.y - image.yhot))


def _open_shm(name: str, cookie: bytes | None) -> ShmCapture | None:
    try:
        return ShmCapture(name, cookie)
    except ShmUnavailable:
        return None
