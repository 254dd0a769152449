"""
What a display can do, whoever drives it.

Owns the ``Display`` protocol only. A display is synchronous and belongs to one thread;
``abort`` is the one method that any thread may call.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from computer.geometry import Point, Rect, Size
from computer.keys import Chord, Way
from computer.pixels import Framebuffer
from computer.wire import Held

__all__ = ["Display", "DisplayInfo", "Patience", "Settled", "Typed", "Way"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for the screen to settle, in seconds; never shorter than *least_s*."""

    first_change_s: float
    quiet_s: float
    cap_s: float
    least_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the wait saw: whether anything changed, whether it then came to rest, and after how long."""

    changed: bool
    is_settled: bool
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayInfo:
    """
    What a display turned out to be able to do, tried when it was opened.

    Attributes:
        driver: ``x11``, ``vnc`` or ``fake``.
        capture: how pixels come: ``shm``, ``get_image``, ``rfb``, ``memory``.
        input: how keys and clicks go: ``xtest``, ``rfb``, ``memory``.
        has_damage: the server tells what changed; else pictures are compared.
        has_cursor: the pointer is drawn into captures.
        warnings: sentences on what is slower or missing, and why.
    """

    driver: str
    capture: str
    input: str
    has_damage: bool
    has_cursor: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What typing or pasting did; *warning* tells what could not be confirmed or put back."""

    way: Way
    warning: str | None = None


class Display(Protocol):
    """
    A screen with a pointer and a keyboard, in native pixels.

    Every method raises ``DisplayLost`` when the server is gone and ``DisplayClosed`` after
    ``close``. What is pressed is tracked, and stays down until it is released here.
    """

    def info(self) -> DisplayInfo:
        """Describe the ways that work here."""

    def size(self) -> Size:
        """Size of the screen now; it may change between two calls."""

    def capture(self) -> Framebuffer:
        """Copy of the whole screen, pointer included; the caller may change it."""

    def is_unchanged(self) -> bool:
        """Whether the screen, pointer included, is known to be as the last capture shows it."""

    def read_pixels(self, region: Rect) -> Framebuffer:
        """
        Copy of a region as it is now, without the pointer.

        Raises:
            OutOfBounds: *region* leaves the screen.
        """

    def active_title(self) -> str | None:
        """Title of the window that has the focus, "" when there is none; None where it can't be known."""

    def pointer(self) -> Point:
        """Where the pointer is."""

    def read_held(self) -> Held:
        """
        Ask the server which keys and buttons are down, whoever pressed them.

        Buttons that the server can't tell of are those that were pressed here.
        """

    def move_pointer(self, point: Point) -> None:
        """
        Move the pointer.

        Raises:
            OutOfBounds: *point* is not on the screen.
        """

    def press_button(self, button: int) -> None:
        """Press a pointer button (X11 number); pressing twice is pressing once."""

    def release_button(self, button: int) -> None:
        """Release a pointer button; nothing happens when it is up."""

    def press_chord(self, chord: Chord) -> None:
        """
        Press the keys of a chord in order, with the Shift or AltGr that its characters need.

        Raises:
            InvalidAction: the keyboard can't produce one of them; nothing was pressed.
        """

    def release_chord(self, chord: Chord) -> None:
        """Release what ``press_chord`` pressed, in reverse; keys that are up stay up."""

    def type_text(self, text: str) -> Generator[int, None, Typed]:
        """
        Type *text* in bursts; yields the number of characters typed so far after each.

        Returns by which way. Closing the generator early restores Caps Lock, modifiers and
        the clipboard, and leaves no key down. A line feed is Return, a tab is Tab.

        Raises:
            InvalidAction: a character can't be delivered; names the offset of the first one.
                Nothing was delivered: whatever can be known beforehand is raised before the first burst.
            NotConfirmed: the same in the middle of a text; tells how many characters were delivered.
        """

    def paste_text(self, text: str) -> Typed:
        """
        Insert *text* in one piece through the clipboard, which is restored afterwards.

        Raises:
            InvalidAction: the focused window did not take it.
        """

    def set_clipboard(self, text: str) -> None:
        """Put *text* on the clipboard."""

    def adopt_clipboard(self, max_bytes: int) -> int:
        """
        Serve another program's long text to readers that can't get it from there.

        Returns the bytes of a text that is too long for that, more than *max_bytes*; else 0.
        """

    def get_clipboard(self) -> str:
        """
        Text on the clipboard; "" when there is nothing on it.

        Raises:
            InvalidAction: it holds something else than text, or too much.
        """

    def release_all(self) -> None:
        """Release every key and button that was pressed here."""

    def mark(self) -> None:
        """Forget the changes seen so far: ``wait_changes`` counts from here."""

    def wait_changes(self, timeout_s: float) -> tuple[Rect, ...]:
        """
        Areas that changed since ``mark`` or the last call of this; blocks while there are none.

        Returns empty when *timeout_s* has passed; may do so sooner.
        """

    def take_changes(self) -> tuple[Rect, ...]:
        """Boxes that changed since the first ``mark`` after the last call of this, few and merged."""

    def close(self) -> None:
        """Release what is held and disconnect; harmless when repeated."""

    def abort(self) -> None:
        """Break the connection at once, from any thread: a call in progress ends in ``DisplayLost``."""
