"""
What is held down from here, and by which part of a chord.

Pure. A key is pressed once, however often it is asked for, and belongs to the keysym for which it
went down: a Shift that a capital brought goes up with the capital, one that was down stays.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from computer.keys import Keysym

__all__ = ["HeldKeys"]

K = TypeVar("K")


class HeldKeys(Generic[K]):
    """Keys by whatever the server calls them: keycodes of X11, keysyms of RFB."""

    def __init__(self) -> None:
        self._down: dict[K, None] = {}
        self._owned: dict[Keysym, tuple[K, ...]] = {}

    @property
    def down(self) -> tuple[K, ...]:
        """Keys that are down, in the order in which they were pressed."""
        return tuple(self._down)

    def press(self, keysym: Keysym, keys: Iterable[K]) -> tuple[K, ...]:
        """Note that *keysym* wants *keys* down; returns those that are to be pressed, in order."""
        added = tuple(key for key in dict.fromkeys(keys) if key not in self._down)
        if added:
            self._owned[keysym] = added
            self._down |= dict.fromkeys(added)
        return added

    def release(self, keysym: Keysym) -> tuple[K, ...]:
        """Note that *keysym* is let go; returns the keys that are to be released, in order."""
        released = tuple(reversed(self._owned.pop(keysym, ())))
        for key in released:
            self._down.pop(key, None)
        return released

    def release_all(self) -> tuple[K, ...]:
        """Note that all is let go; returns the keys that are to be released, in order."""
        released = tuple(reversed(self._down))
        self._down.clear()
        self._owned.clear()
        return released
