"""
Windows of applications, through the window manager (EWMH).

Owns what is asked of the manager and the proof that it happened: every change is read back,
and what was not seen to happen is an error or a warning. Not the picture, not the input.

``WindowDesk`` keeps a connection of its own and belongs to the one thread that uses it; only
``abort`` may be called from another. Questions are cheap: opening a desk for one request costs
some 10 ms, most of it the connection.

Source: Extended Window Manager Hints 1.5.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from Xlib import X
from Xlib import error as xerror
from Xlib.protocol import event

from computer.display.x11.connection import XConnection, connect, disconnect, shut_down, translate_errors
from computer.display.x11.properties import MAX_WINDOWS, Properties
from computer.errors import InvalidAction, NotConfirmed, WindowNotFound
from computer.wire import WindowInfo, WindowReport, WireBox

__all__ = ["WindowDesk"]

# Seconds in which a request must show its effect, and between two looks.
CONFIRM_S = 1.0
POLL_S = 0.005
# Largest coordinate and size in the X protocol.
MAX_COORDINATE = 32_767
# Source of our requests: a pager, so that the manager does as told. Gravity: static, the given
# place is that of what the application draws, whatever the frame's width.
SOURCE_PAGER = 2
GRAVITY_STATIC = 10
# Flags of _NET_MOVERESIZE_WINDOW.
_HAS_PLACE = 0b0011 << 8
_HAS_SIZE = 0b1100 << 8
# Ancestors walked from the focus; deeper nesting is a loop.
_MAX_DEPTH = 32
_ICONIC = 3

Box = tuple[int, int, int, int]


class WindowDesk:
    """
    Lists and changes the windows of one display.

    Raises:
        DisplayLost: the server can't be reached; from every method, when it goes away.
    """

    def __init__(
        self, name: str, cookie: bytes | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._connection: XConnection = connect(name, cookie)
        self._reads = Properties(self._connection)
        self._root = self._connection.screen().root

    def close(self) -> None:
        """Disconnect; harmless when repeated."""
        disconnect(self._connection)

    def abort(self) -> None:
        """Break the connection, from any thread: a call in progress ends in ``DisplayLost``."""
        shut_down(self._connection)

    def windows(self) -> tuple[WindowInfo, ...]:
        """All windows that the manager lists, oldest first; none where no manager runs."""
        with translate_errors():
            if not self._reads.has_manager():
                return ()
            active = self._reads.active_id()
            found = (self._describe(number, active) for number in self._reads.listed())
            return tuple(window for window in found if window is not None)

    def active(self) -> WindowInfo | None:
        """The window that has the focus, or None."""
        return next((window for window in self.windows() if window.active), None)

    def top_levels(self) -> tuple[WindowInfo, ...]:
        """Windows of the manager, or, where none runs, whatever applications show on the root."""
        with translate_errors():
            if self._reads.has_manager():
                return self.windows()
            children = [child for child in self._root.query_tree().children if _is_shown(child)]
            found = (self._describe(child.id, None) for child in children[:MAX_WINDOWS])
            return tuple(window for window in found if window is not None)

    def focus(self, number: int) -> WindowReport:
        """
        Raise a window, un-minimise it, and give it the focus.

        Raises:
            WindowNotFound: there is no such window.
            NotConfirmed: it did not become the active window.
        """
        with self._using(number):
            active = self._reads.active_id() or 0
            self._send(number, "_NET_ACTIVE_WINDOW", SOURCE_PAGER, X.CurrentTime, active)
            window = self._wait(number, lambda found: found.active and not found.minimized)
            if window is None:
                msg = f"window {number} did not get the focus within {CONFIRM_S:g} s"
                raise NotConfirmed(msg)
            warning = None
            if not self._wait_true(lambda: self._has_input(number)):
                warning = "the window is active, but it has not taken the keyboard"
            return WindowReport(window=window, warning=warning)

    def move(self, number: int, x: int, y: int) -> WindowReport:
        """
        Put the upper left corner of what the application draws at a place, in native pixels.

        Raises:
            WindowNotFound, InvalidAction: no such window; the place can't exist.
            NotConfirmed: the window did not move at all.
        """
        _check_range(-MAX_COORDINATE, x, y)
        with self._using(number):
            before = self._require(number)
            if before.bounds[:2] == (x, y):
                return WindowReport(window=before)
            self._ask_place(number, _HAS_PLACE, (x, y, 0, 0))
            box = self._wait_moved(number, before)
            if box[:2] not in {(x, y), before.bounds[:2]}:
                # Managers count a border that the program once asked for (xterm's) as its own pixels.
                self._ask_place(number, _HAS_PLACE, (2 * x - box[0], 2 * y - box[1], 0, 0))
            return self._confirm_place(number, before, lambda box: box[:2] == (x, y))

    def resize(self, number: int, width: int, height: int) -> WindowReport:
        """
        Give what the application draws a size, in pixels.

        Raises:
            WindowNotFound, InvalidAction: no such window; the size can't exist.
            NotConfirmed: the size did not change at all.
        """
        _check_range(1, width, height)
        with self._using(number):
            before = self._require(number)
            self._ask_place(number, _HAS_SIZE, (0, 0, width, height))
            return self._confirm_place(number, before, lambda box: _size(box) == (width, height))

    def close_window(self, number: int, *, force: bool = False, wait_s: float = CONFIRM_S) -> None:
        """
        Ask a window to close (WM_DELETE_WINDOW), and see that it has gone.

        With *force*, one that stays is disconnected from the server.

        Raises:
            WindowNotFound: there is no such window.
            NotConfirmed: it is still there: it asks something, or takes no notice.
        """
        with self._using(number):
            self._send(number, "_NET_CLOSE_WINDOW", X.CurrentTime, SOURCE_PAGER)
            if self._wait_true(lambda: self._is_gone(number), wait_s):
                return
            if force:
                self._window(number).kill_client()
                if self._wait_true(lambda: self._is_gone(number)):
                    return
            msg = f"window {number} was asked to close and is still there after {wait_s:g} s"
            raise NotConfirmed(msg)

    def _ask_place(self, number: int, flags: int, box: Box) -> None:
        words = (GRAVITY_STATIC | flags | SOURCE_PAGER << 12, *(part & 0xFFFF_FFFF for part in box))
        self._send(number, "_NET_MOVERESIZE_WINDOW", *words)

    def _wait_moved(self, number: int, before: WindowInfo) -> Box:
        """Where the window is once it has left its place, or the same place when it stays."""
        moved = self._wait(number, lambda found: found.bounds != before.bounds)
        return before.bounds if moved is None else moved.bounds

    def _confirm_place(
        self, number: int, before: WindowInfo, is_done: Callable[[WireBox], bool]
    ) -> WindowReport:
        if (window := self._wait(number, lambda found: is_done(found.bounds))) is not None:
            return WindowReport(window=window)
        after = self._require(number)
        if after.bounds == before.bounds:
            msg = f"window {number} stayed as it is, {_render(after.bounds)}"
            raise NotConfirmed(msg)
        return WindowReport(
            window=after, warning=f"it came out otherwise than asked: {_render(after.bounds)}"
        )

    @contextmanager
    def _using(self, number: int) -> Iterator[None]:
        """Turn Xlib's errors into ours; refuse windows that the manager does not list."""
        try:
            with translate_errors():
                self._require(number)
                yield
        except (xerror.BadWindow, xerror.BadDrawable) as exc:
            raise _not_found(number) from exc

    def _require(self, number: int) -> WindowInfo:
        is_listed = number in self._reads.listed()
        found = self._describe(number, self._reads.active_id()) if is_listed else None
        if found is None:
            raise _not_found(number)
        return found

    def _wait(self, number: int, is_done: Callable[[WindowInfo], bool]) -> WindowInfo | None:
        """Look until the window is as wanted; None when it never was."""
        deadline = self._clock() + CONFIRM_S
        while True:
            window = self._require(number)
            if is_done(window):
                return window
            if self._clock() >= deadline:
                return None
            time.sleep(POLL_S)

    def _wait_true(self, is_done: Callable[[], bool], wait_s: float = CONFIRM_S) -> bool:
        deadline = self._clock() + wait_s
        while not is_done():
            if self._clock() >= deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _is_gone(self, number: int) -> bool:
        if number in self._reads.listed():
            return False
        try:
            return bool(self._window(number).get_attributes().map_state == X.IsUnmapped)
        except xerror.XError:
            return True

    def _has_input(self, number: int) -> bool:
        """Whether the keyboard goes to the window or to something inside it."""
        focus = self._connection.get_input_focus().focus
        for _ in range(_MAX_DEPTH):
            if isinstance(focus, int) or focus is None or focus.id == self._root.id:
                return False
            if focus.id == number:
                return True
            try:
                focus = focus.query_tree().parent
            except xerror.XError:
                return False
        return False

    def _describe(self, number: int, active: int | None) -> WindowInfo | None:
        """Describe a window; None when it has gone meanwhile."""
        window = self._window(number)
        try:
            geometry = window.get_geometry()
            origin = self._root.translate_coords(window, 0, 0)
        except (xerror.BadWindow, xerror.BadDrawable):
            return None
        box = (origin.x, origin.y, origin.x + geometry.width, origin.y + geometry.height)
        pids = self._reads.words(window, "_NET_WM_PID")
        return WindowInfo(
            id=number,
            title=self._reads.title(window),
            window_class=self._class(window),
            pid=pids[0] if pids else None,
            bounds=box,
            frame=_grow(box, self._reads.words(window, "_NET_FRAME_EXTENTS")),
            active=number == active,
            minimized=self._is_minimized(window),
        )

    def _is_minimized(self, window: Any) -> bool:  # noqa: ANN401  Xlib has no types
        if self._reads.atom("_NET_WM_STATE_HIDDEN") in self._reads.words(window, "_NET_WM_STATE"):
            return True
        return self._reads.words(window, "WM_STATE")[:1] == (_ICONIC,)

    def _class(self, window: Any) -> str:  # noqa: ANN401
        return self._reads.text(window, "WM_CLASS", "latin-1").rstrip("\0").rpartition("\0")[2]

    def _window(self, number: int) -> Any:  # noqa: ANN401
        return self._connection.create_resource_object("window", number)

    def _send(self, number: int, kind: str, *words: int) -> None:
        data = (32, [*words, *(0,) * (5 - len(words))])
        window, atom = self._window(number), self._reads.atom(kind)
        message = event.ClientMessage(window=window, client_type=atom, data=data)
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self._connection.sync()


def _is_shown(window: Any) -> bool:  # noqa: ANN401
    try:
        attributes = window.get_attributes()
        geometry = window.get_geometry()
    except xerror.XError:
        return False
    is_own = not attributes.override_redirect and attributes.win_class == X.InputOutput
    return bool(is_own and attributes.map_state == X.IsViewable and geometry.width * geometry.height > 1)


def _grow(box: Box, extents: tuple[int, ...]) -> Box:
    left, right, top, bottom = extents if len(extents) == 4 else (0, 0, 0, 0)
    return (box[0] - left, box[1] - top, box[2] + right, box[3] + bottom)


def _size(box: WireBox) -> tuple[int, int]:
    return (box[2] - box[0], box[3] - box[1])


def _render(box: WireBox) -> str:
    width, height = _size(box)
    return f"{width}x{height} at ({box[0]}, {box[1]})"


def _check_range(least: int, *numbers: int) -> None:
    for number in numbers:
        if not least <= number <= MAX_COORDINATE:
            msg = f"{number} is not between {least} and {MAX_COORDINATE}"
            raise InvalidAction(msg)


def _not_found(number: int) -> WindowNotFound:
    return WindowNotFound(f"there is no window {number}")
