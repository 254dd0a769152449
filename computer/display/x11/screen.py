"""
The screen of an X server: pixels, pointer picture, and what has changed.

Owns the choice of the capture path, tried when it is opened, and the connections for capture
and damage. Belongs to the thread of its display.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from Xlib import X
from Xlib import error as xerror

from computer.display.shm import ShmCapture, ShmUnavailable
from computer.display.x11.connection import XConnection, translate_errors
from computer.display.x11.damage import DamageWatch, HasDrawn, PollWatch
from computer.display.x11.questions import CursorImage, ask_cursor, ask_pointer, ask_size, await_answers
from computer.errors import CaptureTimeout, DisplayLost
from computer.geometry import Point, Rect, Size
from computer.pixels import Cursor, Framebuffer, blend_cursor, crop

__all__ = ["Screen"]

# Seconds in which a picture is taken anew because the screen changed its size meanwhile.
RESIZE_LIMIT_S = 2.0
# Times that the two ways to the same pixels may differ while somebody draws.
SELF_TEST_TRIES = 5
# Pixels on each side of the region that the self-test compares.
SELF_TEST_EDGE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    """What a picture depends on besides its pixels; the server gives each cursor a serial number."""

    size: Size
    pointer: Point
    serial: int = 0
    cursor: Cursor | None = field(default=None, compare=False)


class Screen:
    """
    Captures and watches one root window.

    Attributes:
        warnings: what is slower or missing here, and why.
        size_seen: size of the screen when it was last asked for.

    Raises:
        DisplayLost: pixels come in a format that we don't read.
    """

    def __init__(
        self, connection: XConnection, name: str, cookie: bytes | None, *, use_shm: bool = True
    ) -> None:
        self.warnings: list[str] = []
        self._connection = connection
        self._root = connection.screen().root
        self._name, self._cookie = name, cookie
        self._captured: _Sight | None = None
        self.size_seen = self.size()
        _check_format(connection, name)
        self.has_cursor = bool(connection.has_extension("XFIXES"))
        if self.has_cursor:
            connection.xfixes_query_version()
        else:
            self.warnings.append("the server lacks XFIXES: pictures do not show the pointer")
        self._watch: DamageWatch | PollWatch = self._open_watch()
        self._shm = self._open_shm() if use_shm else None

    @property
    def has_shm(self) -> bool:
        """Whether pictures come through shared memory."""
        return self._shm is not None

    @property
    def has_damage(self) -> bool:
        """Whether the server tells what changes."""
        return isinstance(self._watch, DamageWatch)

    def size(self) -> Size:
        """Size of the root window, which follows RandR."""
        geometry = self._root.get_geometry()
        self.size_seen = Size(width=geometry.width, height=geometry.height)
        return self.size_seen

    def pointer(self) -> Point:
        """Position of the core pointer."""
        found = self._root.query_pointer()
        return Point(x=found.root_x, y=found.root_y)

    def capture(self) -> Framebuffer:
        """
        Copy of the screen with the pointer drawn in, all of one moment and one size.

        Raises:
            CaptureTimeout: the screen does not stop changing its size.
        """
        self._watch.begin_picture()
        frame, self._captured = self._grab_whole()
        if self._captured.cursor is not None:
            blend_cursor(frame, self._captured.cursor)
        return frame

    def read(self, region: Rect) -> Framebuffer:
        """Copy of *region*, without the pointer."""
        return crop(self._grab_whole()[0], region)

    def is_unchanged(self) -> bool:
        """Whether the last capture is still true."""
        return self._captured is not None and self._watch.is_unchanged() and self._look() == self._captured

    def mark(self) -> None:
        """Forget what has changed so far."""
        self._watch.mark()

    def wait(self, timeout_s: float) -> tuple[Rect, ...]:
        """Wait for a change."""
        return self._watch.wait(timeout_s)

    def take_boxes(self) -> tuple[Rect, ...]:
        """Boxes that changed since the first ``mark``."""
        return self._watch.take_boxes()

    def following(self) -> AbstractContextManager[HasDrawn]:
        """Notice what is drawn from here on; see ``DamageWatch.following``."""
        return self._watch.following()

    def close(self) -> None:
        """Close what this opened."""
        self._watch.close()
        if self._shm is not None:
            self._shm.close()

    def abort(self) -> None:
        """Break what this opened, from any thread."""
        self._watch.abort()
        if self._shm is not None:
            self._shm.abort()

    def _open_watch(self) -> DamageWatch | PollWatch:
        if self.has_cursor and self._connection.has_extension("DAMAGE"):
            return DamageWatch(self._name, self._cookie)
        self.warnings.append("the server lacks DAMAGE: changes are found by comparing pictures")
        return PollWatch(lambda: self._grab_whole()[0])

    def _open_shm(self) -> ShmCapture | None:
        try:
            shm = ShmCapture(self._name, self._cookie)
        except ShmUnavailable as exc:
            self.warnings.append(f"no shared memory ({exc}): pictures come by GetImage, ten times slower")
            return None
        if self._is_true(shm):
            return shm
        shm.close()
        self.warnings.append("shared memory shows other pixels than GetImage: it is not used")
        return None

    def _is_true(self, shm: ShmCapture) -> bool:
        """Compare a corner of the screen with what GetImage says of it."""
        for _ in range(SELF_TEST_TRIES):
            size = self.size()
            part = Size(width=min(size.width, SELF_TEST_EDGE), height=min(size.height, SELF_TEST_EDGE))
            frame, expected = shm.grab(size), self._get_image(part)
            if frame is None or expected is None:
                continue
            if np.array_equal(frame[: part.height, : part.width, :3], expected[..., :3]):
                return True
        return False

    def _grab_whole(self) -> tuple[Framebuffer, _Sight]:
        deadline = time.monotonic() + RESIZE_LIMIT_S
        while time.monotonic() < deadline:
            size = self.size_seen
            frame = self._grab(size)
            # A screen that grew meanwhile gave a part of itself without a word.
            sight = self._look()
            if frame is not None and sight.size == size:
                return frame, sight
        msg = "the screen kept changing its size"
        raise CaptureTimeout(msg)

    def _grab(self, size: Size) -> Framebuffer | None:
        if self._shm is None:
            return self._get_image(size)
        try:
            return self._shm.grab(size)
        except DisplayLost:
            # The server may have closed this one connection only.
            self._shm.close()
            self._shm = self._open_shm()
            return None

    def _get_image(self, size: Size) -> Framebuffer | None:
        try:
            image = self._root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFF_FFFF)
        except xerror.BadMatch:
            return None
        return np.frombuffer(bytearray(image.data), np.uint8).reshape(size.height, size.width, 4)

    def _look(self) -> _Sight:
        geometry = ask_size(self._connection)
        cursor = ask_cursor(self._connection) if self.has_cursor else ask_pointer(self._connection)
        await_answers(geometry, cursor)
        self.size_seen = Size(width=geometry.width, height=geometry.height)
        if isinstance(cursor, CursorImage):
            return _see_cursor(self.size_seen, cursor)
        return _Sight(size=self.size_seen, pointer=Point(x=cursor.root_x, y=cursor.root_y))


def _see_cursor(size: Size, image: CursorImage) -> _Sight:
    at = Point(x=image.x, y=image.y)
    if not image.width or not image.height:
        return _Sight(size=size, pointer=at)
    pixels = np.frombuffer(image.cursor_image, np.uint8).reshape(image.height, image.width, 4)
    cursor = Cursor(pixels=pixels, origin=Point(x=image.x - image.xhot, y=image.y - image.yhot))
    return _Sight(size=size, pointer=at, serial=image.cursor_serial, cursor=cursor)


def _check_format(connection: XConnection, name: str) -> None:
    with translate_errors():
        info: Any = connection.display.info
    depth = connection.screen().root_depth
    bits = next((form.bits_per_pixel for form in info.pixmap_formats if form.depth == depth), 0)
    if bits != 32 or info.image_byte_order != X.LSBFirst:
        msg = f"the X server {name} has depth {depth} in {bits} bits; 24 in 32, low byte first, is needed"
        raise DisplayLost(msg)
