"""
What a call does to its display in no time, and what the server says of it.

Synchronous; belongs to the thread of its display.
"""

from dataclasses import dataclass

from computer.actions import KeyDown, KeyUp, MoveTo, Press, Release, Step
from computer.display import Display
from computer.errors import InvalidAction, OutOfBounds
from computer.geometry import Point, Rect, Size
from computer.wire import Held

__all__ = ["Observation", "begin", "observe", "perform_instant", "require_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the server says at the end of a call."""

    pointer: Point
    held: Held
    changed: tuple[Rect, ...]


def perform_instant(
    display: Display, steps: tuple[Step, ...], *, observes: bool
) -> tuple[str | None, Observation | None]:
    """
    Perform steps that take no time.

    Returns a warning when the pointer did not go where it should, and where *observes* asks for
    it what the server says after them.

    Raises:
        OutOfBounds: the screen shrank meanwhile, and the pointer could not go there.
    """
    for step in steps:
        _perform_step(display, step)
    # Asking is the proof as well that the server has taken all of this.
    seen = observe(display) if observes else None
    found = seen.pointer if seen is not None else display.pointer()
    target = next((step.point for step in reversed(steps) if isinstance(step, MoveTo)), found)
    if found == target:
        return None, seen
    size = display.size()
    if not size.holds(target):
        msg = f"({target.x}, {target.y}) is outside the screen, which has just become {size}; look again"
        raise OutOfBounds(msg)
    warning = (
        f"the pointer was sent to native ({target.x}, {target.y}) and is at ({found.x}, {found.y}): "
        "a person or a program moves it"
    )
    return warning, seen


def _perform_step(display: Display, step: Step) -> None:
    match step:
        case MoveTo():
            display.move_pointer(step.point)
        case Press():
            display.press_button(step.button)
        case Release():
            display.release_button(step.button)
        case KeyDown():
            display.press_chord(step.chord)
        case KeyUp():
            display.release_chord(step.chord)
        case _:
            msg = f"{type(step).__name__} takes time"
            raise InvalidAction(msg)


def require_size(display: Display, expected: Size) -> None:
    """Raise OutOfBounds where the screen has another size than a call was planned for."""
    size = display.size()
    if size != expected:
        msg = f"the screen has changed from {expected} to {size} during the call; look again"
        raise OutOfBounds(msg)


def begin(display: Display) -> Size:
    """Forget what a call that was cancelled has left unread; returns the size of the screen."""
    display.take_changes()
    return display.size()


def observe(display: Display) -> Observation:
    """Ask the server where the pointer is, what is held, and what has changed."""
    return Observation(pointer=display.pointer(), held=display.read_held(), changed=display.take_changes())
