"""
A display without a server, for tests.

``FakeDisplay`` passes the same contract suite as the real one. Only tests import this.
"""

import threading
from collections.abc import Generator

import numpy as np

from computer.display import DisplayInfo, Typed, Way
from computer.errors import DisplayClosed, DisplayLost, InvalidAction
from computer.geometry import Point, Rect, Size
from computer.keys import Chord, Keysym, keysym_name
from computer.pixels import Framebuffer, crop
from computer.wire import Held

__all__ = ["FakeDisplay"]

# Seconds between two changes of a restless screen.
RESTLESS_S = 0.001


class FakeDisplay:
    """
    Records what is done to it.

    Attributes:
        events: ``("press", 1)``, ``("key_down", "ctrl+l")``, ``("type", "abc")``, in order.
        pixels: what ``capture`` copies; tests may paint on it.
        burst: characters that are typed in one go.
        refuse_text: typing or pasting this character raises InvalidAction.
        clipboard: text on the clipboard.
        title: of the active window.
        is_restless: the screen never comes to rest.
        is_deaf: input has no effect on the screen.
        stuck: names of keys that the server says are down, whatever is released.
        hang: while set, ``capture`` blocks until ``abort``.
        entered: set when a capture has begun to hang.
    """

    def __init__(self, size: Size | None = None) -> None:
        self._size = size or Size(width=1280, height=800)
        self.events: list[tuple[str, object]] = []
        self.pixels: Framebuffer = np.zeros((self._size.height, self._size.width, 4), np.uint8)
        self.burst = 4
        self.refuse_text = ""
        self.clipboard = ""
        self.title: str | None = ""
        self.is_restless = False
        self.is_deaf = False
        self.stuck: tuple[str, ...] = ()
        self.hang = False
        self.entered = threading.Event()
        self.is_closed = False
        self._aborted = threading.Event()
        self._pointer = Point(x=0, y=0)
        self._buttons: dict[int, None] = {}
        self._keys: dict[Keysym, None] = {}
        self._has_changed = False
        self._changes: tuple[Rect, ...] = ()

    @property
    def held(self) -> tuple[int, ...]:
        """Buttons and keysyms that are down."""
        return (*self._buttons, *self._keys)

    def info(self) -> DisplayInfo:
        """Everything works, in memory."""
        self._check()
        return DisplayInfo(driver="fake", capture="memory", input="memory", has_damage=True, has_cursor=False)

    def size(self) -> Size:
        """Size that the test gave."""
        self._check()
        return self._size

    def resize(self, size: Size) -> None:
        """Become another size, black."""
        self._size = size
        self.pixels = np.zeros((size.height, size.width, 4), np.uint8)

    def capture(self) -> Framebuffer:
        """Copy of ``pixels``."""
        self._check()
        if self.hang:
            self.entered.set()
            self._aborted.wait()
            self._check()
        return self.pixels.copy()

    def is_unchanged(self) -> bool:
        """Never known: tests paint without telling."""
        self._check()
        return False

    def read_pixels(self, region: Rect) -> Framebuffer:
        """Copy of a part of ``pixels``."""
        self._check()
        return crop(self.pixels, region)

    def active_title(self) -> str | None:
        """What the test says."""
        self._check()
        return self.title

    def read_held(self) -> Held:
        """Keysyms by name, and buttons."""
        self._check()
        keys = (*map(keysym_name, self._keys), *self.stuck)
        return Held(keys=keys, buttons=tuple(self._buttons))

    def pointer(self) -> Point:
        """Where it was moved last."""
        self._check()
        return self._pointer

    def move_pointer(self, point: Point) -> None:
        """Record a move."""
        self._check()
        self._size.check_holds(point)
        self._pointer = point
        self._record("move", (point.x, point.y))

    def press_button(self, button: int) -> None:
        """Record a press."""
        self._check()
        if button not in self._buttons:
            self._buttons[button] = None
            self._record("press", button)

    def release_button(self, button: int) -> None:
        """Record a release."""
        self._check()
        if button in self._buttons:
            del self._buttons[button]
            self._record("release", button)

    def press_chord(self, chord: Chord) -> None:
        """Record keys going down."""
        self._check()
        self._keys |= dict.fromkeys(chord.keysyms)
        self._record("key_down", chord.text)

    def release_chord(self, chord: Chord) -> None:
        """Record keys going up."""
        self._check()
        for keysym in chord.keysyms:
            self._keys.pop(keysym, None)
        self._record("key_up", chord.text)

    def type_text(self, text: str) -> Generator[int, None, Typed]:
        """Record bursts of ``burst`` characters."""
        self._check()
        if self.refuse_text and self.refuse_text in text:
            msg = f"character {text.index(self.refuse_text)} of the text is not on the keyboard layout"
            raise InvalidAction(msg)
        for start in range(0, len(text), self.burst):
            self._check()
            part = text[start : start + self.burst]
            self._record("type", part)
            yield start + len(part)
        return Typed(way=Way.KEYS)

    def paste_text(self, text: str) -> Typed:
        """Record a paste."""
        self._check()
        if self.refuse_text and self.refuse_text in text:
            msg = "the focused window did not take the paste; character 0 of the text was not delivered"
            raise InvalidAction(msg)
        self._record("paste", text)
        return Typed(way=Way.PASTE)

    def set_clipboard(self, text: str) -> None:
        """Keep *text*."""
        self._check()
        self.clipboard = text

    def get_clipboard(self) -> str:
        """Text that was kept."""
        self._check()
        return self.clipboard

    def adopt_clipboard(self, max_bytes: int) -> int:  # noqa: ARG002 -- the protocol's
        """There is no other program."""
        self._check()
        return 0

    def release_all(self) -> None:
        """Record the end of everything that is held."""
        self._check()
        if self.held:
            self._buttons.clear()
            self._keys.clear()
            self._record("release_all", None)

    def mark(self) -> None:
        """Forget changes."""
        self._check()
        self._has_changed = False

    def wait_changes(self, timeout_s: float) -> tuple[Rect, ...]:
        """The whole screen once after input, and again and again while ``is_restless``."""
        self._check()
        if self.events[-1:] != [("settle", None)]:
            self._record("settle", None)
        if not self._has_changed:
            self._aborted.wait(min(timeout_s, RESTLESS_S) if self.is_restless else timeout_s)
        has_changed, self._has_changed = self._has_changed or self.is_restless, False
        return (self._whole(),) if has_changed else ()

    def take_changes(self) -> tuple[Rect, ...]:
        """The whole screen, when there was input."""
        self._check()
        changes, self._changes = self._changes, ()
        return changes

    def close(self) -> None:
        """Release and close."""
        if not (self.is_closed or self._aborted.is_set()):
            self.release_all()
        self.is_closed = True

    def abort(self) -> None:
        """End a hanging capture."""
        self._aborted.set()

    def _record(self, kind: str, detail: object) -> None:
        self.events.append((kind, detail))
        if kind != "settle" and not self.is_deaf:
            self._has_changed = True
            self._changes = (self._whole(),)

    def _whole(self) -> Rect:
        return Rect(left=0, top=0, right=self._size.width, bottom=self._size.height)

    def _check(self) -> None:
        if self.is_closed:
            msg = "the display was closed"
            raise DisplayClosed(msg)
        if self._aborted.is_set():
            msg = "the display was aborted"
            raise DisplayLost(msg)
