"""
What a display can do, whoever drives it.

Owns the ``Display`` protocol only. A display is synchronous and belongs to one thread;
``abort`` is the one method that any thread may call.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from computer.geometry import Point, Size
from computer.keys import Chord
from computer.pixels import Framebuffer

__all__ = ["Display", "Patience", "Settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for the screen to settle, in seconds."""

    first_change_s: float
    quiet_s: float
    cap_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the wait saw: whether anything changed, and whether it then came to rest."""

    changed: bool
    is_settled: bool


class Display(Protocol):
    """
    A screen with a pointer and a keyboard, in native pixels.

    Every method raises ``DisplayLost`` when the server is gone and ``DisplayClosed`` after
    ``close``. What is pressed is tracked, and stays down until it is released here.
    """

    def size(self) -> Size:
        """Size of the screen now; it may change between two calls."""

    def capture(self) -> Framebuffer:
        """Copy of the whole screen, pointer included; the caller may change it."""

    def pointer(self) -> Point:
        """Where the pointer is."""

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

    def type_text(self, text: str) -> Iterator[int]:
        """
        Type *text* in bursts; yields the number of characters typed so far after each.

        Closing the iterator early restores Caps Lock and leaves no key down. A line feed
        is Return, a tab is Tab.

        Raises:
            InvalidAction: a character can't be delivered; names its offset. Raised before
                the first burst.
        """

    def release_all(self) -> None:
        """Release every key and button that was pressed here."""

    def mark(self) -> None:
        """Forget the changes seen so far: ``wait_settled`` counts from here."""

    def wait_settled(self, patience: Patience) -> Settled:
        """Block until the screen has come to rest after a change since ``mark``, or time is up."""

    def close(self) -> None:
        """Release what is held and disconnect; harmless when repeated."""

    def abort(self) -> None:
        """Break the connection at once, from any thread: a call in progress ends in ``DisplayLost``."""
