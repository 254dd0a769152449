"""
Who sees what a display really did: an X client with a log of its own, or what the fake wrote down.

Both tell it in the same words, so that one suite judges all displays, and never by their own answer.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from Xlib import XK, X

from computer.display import Display
from computer.display.x11 import connect
from computer.display.x11.connection import disconnect
from computer.keys import Keysym, character_keysym, keysym_name, parse_chord
from computer.testing import FakeDisplay
from tests.contract.computer.kinds import Kind
from tests.integration.computer import event_log
from tests.integration.computer.event_log import Event, EventLog

__all__ = ["Seen", "Witness", "looking_on", "spelled"]

# What happened, and to what: a motion to (x, y); a press or release of a button's number; a key_press
# or key_release of a keysym's name; a paste of a text.
Seen = tuple[str, object]
# Seconds in which what was sent must have arrived. Generous: other tests share the machine.
LIMIT_S = 5.0
CONTROLS = {"Return": "\n", "Tab": "\t"}


class Witness(Protocol):
    """Looks on from outside."""

    async def take(self, at_least: int = 0) -> list[Seen]:
        """What came since the last take; waits a while until there is so much of it, motion aside."""

    async def down(self) -> tuple[int, int]:
        """How many keys and how many buttons are down."""

    async def copy(self, text: str) -> None:
        """Put a text on the clipboard, as another program."""

    async def read_clipboard(self) -> str | None:
        """Text on the clipboard, as another program gets it."""


class LogWitness:
    """Believes the event log of a window, and the X server."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def take(self, at_least: int = 0) -> list[Seen]:
        """Read the log."""
        seen: list[Seen] = []
        deadline = time.monotonic() + LIMIT_S
        while True:
            seen += map(_in_words, await self._log.take())
            if len(without_motion(seen)) >= at_least or time.monotonic() > deadline:
                return seen
            await asyncio.sleep(0.01)

    async def down(self) -> tuple[int, int]:
        """Ask the X server."""
        connection = self._log.connection
        mask = connection.screen().root.query_pointer().mask
        keys = sum(byte.bit_count() for byte in connection.query_keymap())
        return keys, (mask >> 8 & 0x1F).bit_count()

    async def copy(self, text: str) -> None:
        """Have the window own the clipboard."""
        await self._log.copy(text)

    async def read_clipboard(self) -> str | None:
        """Have the window ask for it."""
        return await self._log.read_clipboard()


class FakeWitness:
    """Believes what a ``FakeDisplay`` wrote down."""

    def __init__(self, display: FakeDisplay) -> None:
        self._display = display
        self._told = 0
        self._keys: dict[str, None] = {}
        self._buttons: dict[int, None] = {}

    async def take(self, at_least: int = 0) -> list[Seen]:
        """Read the fake's events, in an X client's words; nothing is on its way."""
        events, self._told = self._display.events[self._told :], len(self._display.events)
        return [seen for kind, detail in events for seen in self._translate(kind, detail)]

    async def down(self) -> tuple[int, int]:
        """Count what was pressed and not released."""
        return len(self._keys), len(self._buttons)

    async def copy(self, text: str) -> None:
        """Set the fake's."""
        self._display.clipboard = text

    async def read_clipboard(self) -> str | None:
        """Read the fake's."""
        return self._display.clipboard

    def _translate(self, kind: str, detail: object) -> list[Seen]:
        seen: list[Seen] = []
        match kind, detail:
            case "press", int():
                self._buttons[detail] = None
                seen = [(kind, detail)]
            case "release", int():
                self._buttons.pop(detail, None)
                seen = [(kind, detail)]
            case "key_down", str():
                seen = self._press(parse_chord(detail).keysyms)
            case "key_up", str():
                seen = self._release(parse_chord(detail).keysyms)
            case "release_all", None:
                seen = self._release_all()
            case "type", str():
                seen = _typed(detail)
            case "move", place:
                seen = [("motion", place)]
            case "paste", text:
                seen = [(kind, text)]
        return seen

    def _release_all(self) -> list[Seen]:
        released: list[Seen] = [("key_release", name) for name in reversed(self._keys)]
        released += [("release", button) for button in self._buttons]
        self._keys.clear()
        self._buttons.clear()
        return released

    def _press(self, keysyms: tuple[Keysym, ...]) -> list[Seen]:
        pressed: list[Seen] = []
        for name in map(keysym_name, keysyms):
            if name not in self._keys:
                pressed.append(("key_press", self._cased(name)))
                self._keys[name] = None
        return pressed

    def _release(self, keysyms: tuple[Keysym, ...]) -> list[Seen]:
        released: list[Seen] = []
        for name in map(keysym_name, reversed(keysyms)):
            if name in self._keys:
                released.append(("key_release", self._cased(name)))
                del self._keys[name]
        return released

    def _cased(self, name: str) -> str:
        """The letter that an X client makes of a key while Shift is down."""
        return name.upper() if "Shift_L" in self._keys and len(name) == 1 else name


@asynccontextmanager
async def looking_on(kind: Kind, display: Display) -> AsyncIterator[Witness]:
    """A witness of what *display* does; of a real one by a window over the whole screen."""
    if isinstance(display, FakeDisplay):
        yield FakeWitness(display)
        return
    assert kind.x_display is not None
    path = kind.directory / f"events-{time.monotonic_ns()}.jsonl"
    environment = {"PATH": os.environ["PATH"], "DISPLAY": kind.x_display}
    argv = [sys.executable, event_log.__file__, str(path)]
    window = await asyncio.create_subprocess_exec(*argv, env=environment)
    probe = connect(kind.x_display, None)
    log = EventLog(path, probe)
    # A key that a busy machine holds for long must not repeat itself.
    probe.change_keyboard_control(auto_repeat_mode=X.AutoRepeatModeOff)
    await log.ready()
    yield LogWitness(log)
    disconnect(probe)
    window.kill()
    await window.wait()


def without_motion(seen: list[Seen]) -> list[Seen]:
    """Everything but motion."""
    return [(kind, detail) for kind, detail in seen if kind != "motion"]


def spelled(seen: list[Seen]) -> str:
    """The text that key presses make; modifiers make none."""
    names = [str(detail) for kind, detail in seen if kind == "key_press"]
    return "".join(_character(name) for name in names)


def _character(name: str) -> str:
    keysym = XK.string_to_keysym(name)
    return CONTROLS.get(name) or (chr(keysym) if 0x20 <= keysym < 0x100 else "")


def _typed(text: str) -> list[Seen]:
    controls = {character: name for name, character in CONTROLS.items()}
    names = [controls.get(character) or keysym_name(character_keysym(character)) for character in text]
    return [(edge, name) for name in names for edge in ("key_press", "key_release")]


def _in_words(event: Event) -> Seen:
    if event["type"] == "motion":
        return "motion", (event["x"], event["y"])
    return event["type"], event.get("button", event.get("key", event.get("text")))
