"""
``Display`` on an X server.

Owns the connection for input and questions, and what is reopened when the server closes one
connection without being gone. Pixels and changes are the ``Screen``'s.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from Xlib import X
from Xlib import error as xerror

from computer.display import DisplayInfo, Typed
from computer.display.partial import telling_how_far
from computer.display.x11.authority import read_cookie
from computer.display.x11.clipboard import Clipboard
from computer.display.x11.connection import XConnection, connect, disconnect, shut_down, translate_errors
from computer.display.x11.held import CORE_BUTTONS, read_buttons, read_held
from computer.display.x11.keyboard import Keyboard
from computer.display.x11.properties import Properties
from computer.display.x11.screen import Screen
from computer.display.x11.typist import Typist
from computer.errors import ComputerError, DisplayClosed, DisplayLost
from computer.geometry import Point, Rect, Size
from computer.keys import Chord
from computer.pixels import Framebuffer
from computer.wire import Held

__all__ = ["X11Display"]

P = ParamSpec("P")
R = TypeVar("R")


def _on_server(
    method: "Callable[Concatenate[X11Display, P], R]",
) -> "Callable[Concatenate[X11Display, P], R]":
    """Guard a method that acts: on a connection that is lost it may have acted or not."""

    @wraps(method)
    def guarded(self: "X11Display", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.usable():
            return method(self, *args, **kwargs)

    return guarded


def _asks_server(
    method: "Callable[Concatenate[X11Display, P], R]",
) -> "Callable[Concatenate[X11Display, P], R]":
    """Guard a method that only asks: it is tried once more on a new connection."""

    @wraps(method)
    def guarded(self: "X11Display", /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with self.usable():
                return method(self, *args, **kwargs)
        except DisplayLost:
            if not self.is_lost:
                raise
        with self.usable():
            return method(self, *args, **kwargs)

    return guarded


class _Usable:
    """Opens what was lost, translates errors, and notes a loss."""

    def __init__(self, display: "X11Display") -> None:
        self._display = display
        self._translation = translate_errors()

    def __enter__(self) -> None:
        self._display.check_usable()
        self._translation.__enter__()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        try:
            self._translation.__exit__(kind, exc, trace)  # type: ignore[arg-type]
        except DisplayLost as lost:
            # A refused request is no loss of the connection.
            if not isinstance(lost.__cause__, xerror.XError):
                self._display.is_lost = True
            raise


class X11Display:
    """
    A local X server, driven from one thread.

    Args:
        name: ``":10"``.
        cookie: MIT-MAGIC-COOKIE-1; read from *authority* when None.
        use_shm: try shared memory for pictures.
        authority: X authority file to read the cookie from, and to name when it is wrong.

    Attributes:
        is_lost: the connection was lost; the next call opens a new one.

    Raises:
        DisplayLost: the server can't be reached, refuses the cookie, or lacks XTEST.
    """

    def __init__(
        self,
        name: str,
        cookie: bytes | None = None,
        *,
        use_shm: bool = True,
        authority: Path | None = None,
    ) -> None:
        self.is_closed = False
        self.is_lost = False
        self._is_aborted = False
        self._name = name
        self._use_shm = use_shm
        self._authority = authority
        self._cookie = read_cookie(authority, name) if cookie is None and authority is not None else cookie
        self._buttons: dict[int, None] = {}
        self._clipboard: Clipboard | None = None
        self._open()

    def usable(self) -> _Usable:
        """Context in which the server may be asked."""
        return _Usable(self)

    def check_usable(self) -> None:
        """
        Open a new connection where the last one was lost.

        Raises:
            DisplayClosed, DisplayLost: there is none to be had.
        """
        if self.is_closed:
            msg = "the display was closed"
            raise DisplayClosed(msg)
        if self._is_aborted:
            msg = "the display was aborted"
            raise DisplayLost(msg)
        if self.is_lost:
            self._drop()
            self._open()
            self.is_lost = False

    @_asks_server
    def info(self) -> DisplayInfo:
        """Describe the ways that were found to work."""
        return DisplayInfo(
            driver="x11",
            capture="shm" if self._screen.has_shm else "get_image",
            input="xtest",
            has_damage=self._screen.has_damage,
            has_cursor=self._screen.has_cursor,
            warnings=tuple(self._screen.warnings),
        )

    @_asks_server
    def size(self) -> Size:
        """Size of the root window, which follows RandR."""
        return self._screen.size()

    @_asks_server
    def capture(self) -> Framebuffer:
        """Pixels of the root window with the pointer drawn in."""
        return self._screen.capture()

    @_asks_server
    def is_unchanged(self) -> bool:
        """Ask damage and pointer."""
        return self._screen.is_unchanged()

    @_asks_server
    def read_pixels(self, region: Rect) -> Framebuffer:
        """Pixels of the root window."""
        return self._screen.read(region)

    @_asks_server
    def active_title(self) -> str | None:
        """Ask the window manager; "" where there is none."""
        return Properties(self._connection).active_title()

    @_on_server
    def pointer(self) -> Point:
        """Position of the core pointer; proof, too, that the server took what was sent before."""
        return self._screen.pointer()

    @_asks_server
    def read_held(self) -> Held:
        """Read the keys and the button mask; buttons above the fifth are in neither."""
        held = read_held(self._connection)
        above = tuple(button for button in self._buttons if button > CORE_BUTTONS)
        return Held(keys=held.keys, buttons=held.buttons + above)

    @_on_server
    def move_pointer(self, point: Point) -> None:
        """Warp by XTEST, so that applications see motion."""
        if not self._screen.size_seen.holds(point):
            self._screen.size().check_holds(point)
        self._connection.xtest_fake_input(X.MotionNotify, 0, x=point.x, y=point.y)
        self._connection.flush()

    @_on_server
    def press_button(self, button: int) -> None:
        """Press a button."""
        if button not in self._buttons:
            self._buttons[button] = None
            self._connection.xtest_fake_input(X.ButtonPress, button)
            self._connection.flush()

    @_on_server
    def release_button(self, button: int) -> None:
        """Release a button."""
        self._release_button(button)

    @_on_server
    def press_chord(self, chord: Chord) -> None:
        """Press a chord."""
        self._keyboard.press(chord)

    @_on_server
    def release_chord(self, chord: Chord) -> None:
        """Release a chord."""
        self._keyboard.release(chord)

    def type_text(self, text: str) -> Generator[int, None, Typed]:
        """Type by keys, spare keys or pasting, whichever is exact."""
        with self.usable():
            return (yield from telling_how_far(self._typist.type(text)))

    @_on_server
    def paste_text(self, text: str) -> Typed:
        """Paste by Shift+Insert."""
        return self._typist.paste(text)

    @_on_server
    def set_clipboard(self, text: str) -> None:
        """Own CLIPBOARD."""
        self._get_clipboard().write_text(text)

    @_on_server
    def get_clipboard(self) -> str:
        """Ask the owner of CLIPBOARD."""
        return self._get_clipboard().read_text()

    @_on_server
    def adopt_clipboard(self, max_bytes: int) -> int:
        """See ``Clipboard.adopt_text``."""
        return self._get_clipboard().adopt_text(max_bytes)

    @_on_server
    def release_all(self) -> None:
        """Release keys, then buttons."""
        self._keyboard.release_all()
        for button in tuple(self._buttons):
            self._release_button(button)
        self._connection.sync()

    @_asks_server
    def mark(self) -> None:
        """Forget earlier damage."""
        self._screen.mark()

    @_asks_server
    def wait_changes(self, timeout_s: float) -> tuple[Rect, ...]:
        """Wait for damage."""
        return self._screen.wait(timeout_s)

    @_asks_server
    def take_changes(self) -> tuple[Rect, ...]:
        """Boxes by damage."""
        return self._screen.take_boxes()

    def close(self) -> None:
        """Release what is held, give spare keycodes back, disconnect."""
        if self.is_closed:
            return
        with suppress(ComputerError):
            self.release_all()
            self._give_back()
        self.is_closed = True
        self._drop()

    def abort(self) -> None:
        """Break all connections."""
        self._is_aborted = True
        shut_down(self._connection)
        self._screen.abort()
        if self._clipboard is not None:
            self._clipboard.abort()

    @_on_server
    def _give_back(self) -> None:
        self._keyboard.unbind()

    def _get_clipboard(self) -> Clipboard:
        if self._clipboard is None:
            self._clipboard = Clipboard(self._name, self._cookie)
        return self._clipboard

    def _open(self) -> None:
        self._connection: XConnection = connect(self._name, self._cookie, authority=self._authority)
        try:
            with translate_errors():
                self._check_extensions()
                self._root = self._connection.screen().root
                self._keyboard = Keyboard(self._connection)
                self._release_leftovers()
                self._screen = Screen(self._connection, self._name, self._cookie, use_shm=self._use_shm)
                self._typist = Typist(self._connection, self._keyboard, self._screen, self._get_clipboard)
        except BaseException:
            disconnect(self._connection)
            raise

    def _drop(self) -> None:
        if self._clipboard is not None:
            self._clipboard.close()
            self._clipboard = None
        self._screen.close()
        disconnect(self._connection)

    def _check_extensions(self) -> None:
        if not self._connection.has_extension("XTEST"):
            msg = f"the X server {self._name} lacks the XTEST extension: nothing can be pressed there"
            raise DisplayLost(msg)

    def _release_leftovers(self) -> None:
        self._keyboard.release_leftovers()
        for button in dict.fromkeys((*read_buttons(self._connection), *self._buttons)):
            self._connection.xtest_fake_input(X.ButtonRelease, button)
        self._buttons.clear()
        self._connection.sync()

    def _release_button(self, button: int) -> None:
        if button in self._buttons:
            del self._buttons[button]
            self._connection.xtest_fake_input(X.ButtonRelease, button)
            self._connection.flush()
