"""
A small X client that writes down every event it receives.

Run as a program: ``event_log.py FILE`` covers the screen of ``$DISPLAY`` with a window that has the
focus, and appends one JSON object a line to FILE. Shift+Insert makes it paste; it reads the clipboard,
and copies a text, when it is told to. Imported by tests for ``EventLog``, which reads that file. Knows
nothing of the code under test.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from Xlib import XK, X, Xatom, display
from Xlib.protocol import event as xevent

Event = dict[str, Any]

MASK = (
    X.KeyPressMask
    | X.KeyReleaseMask
    | X.ButtonPressMask
    | X.ButtonReleaseMask
    | X.PointerMotionMask
    | X.PropertyChangeMask
)
KINDS = {
    X.KeyPress: "key_press",
    X.KeyRelease: "key_release",
    X.ButtonPress: "press",
    X.ButtonRelease: "release",
    X.MotionNotify: "motion",
}
# Modifier bits that tests ask about; Num Lock (Mod2) is left out.
STATE = {
    "shift": X.ShiftMask,
    "lock": X.LockMask,
    "ctrl": X.ControlMask,
    "alt": X.Mod1Mask,
    "super": X.Mod4Mask,
}

# What the window writes for the log itself, not of what it received.
ASIDE = {"mark", "ready", "clipboard", "copied"}
LIGHT, DARK = 0xE0E0E0, 0xD0D0D0


class EventLog:
    """
    The test's side: what the window has received.

    Attributes:
        path: what the window writes.
        connection: the test's own, independent of the code under test.
    """

    def __init__(self, path: Path, connection: display.Display) -> None:
        self.path = path
        self.connection = connection
        self._marks = 0
        self._seen = 0

    async def ready(self) -> int:
        """Wait until the window has the focus; returns its number."""
        return int((await self._wait(lambda event: event["type"] == "ready"))[-1]["window"])

    async def take(self) -> list[Event]:
        """Events since the last take: all that the server had sent before this was called."""
        self._marks += 1
        number = (await self._all())[0]["window"]
        window = self.connection.create_resource_object("window", number)
        atom = self.connection.intern_atom("EVENT_LOG_MARK")
        window.change_property(atom, Xatom.CARDINAL, 32, [self._marks])
        self.connection.sync()
        events = await self._wait(lambda event: event["type"] == "mark" and event["mark"] == self._marks)
        new, self._seen = events[self._seen :], len(events)
        return [event for event in new if event["type"] not in ASIDE]

    async def read_clipboard(self) -> str | None:
        """What the window gets that asks for the clipboard's text; None when nobody hands one over."""
        answer = await self._order({"do": "read"})
        return answer["text"]  # type: ignore[no-any-return]

    async def copy(self, text: str) -> None:
        """Have the window own the clipboard with *text*."""
        await self._order({"do": "copy", "text": text})

    async def _order(self, order: Event) -> Event:
        self._marks += 1
        number = (await self._all())[0]["window"]
        window = self.connection.create_resource_object("window", number)
        value = json.dumps({**order, "order": self._marks}).encode()
        window.change_property(self.connection.intern_atom("EVENT_LOG_ORDER"), Xatom.STRING, 8, value)
        self.connection.sync()
        return (await self._wait(lambda event: event.get("order") == self._marks))[-1]

    async def wait_for(self, kind: str) -> None:
        """Wait until an event of this kind has come since the last take."""
        await self._wait(lambda event: event["type"] == kind, skip=self._seen)

    async def _all(self) -> list[Event]:
        text = await asyncio.to_thread(self.path.read_text) if self.path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    async def _wait(self, is_it: Callable[[Event], bool], *, skip: int = 0) -> list[Event]:
        async with asyncio.timeout(30):
            while True:
                events = await self._all()
                if any(is_it(event) for event in events[skip:]):
                    return events
                await asyncio.sleep(0.005)


class Window:
    """The program's side: a window over the whole screen."""

    def __init__(self, connection: display.Display, log: TextIO) -> None:
        self._connection = connection
        self._log = log
        self._order: Event = {}
        self._copied = b""
        self._is_dark = False
        self._root = connection.screen().root
        size = self._root.get_geometry()
        self._window = self._root.create_window(
            0, 0, size.width, size.height, 0, X.CopyFromParent,
            background_pixel=LIGHT, override_redirect=True, event_mask=MASK | X.ExposureMask,
        )  # fmt: skip
        self._window.map()
        while connection.next_event().type != X.Expose:
            pass
        self._window.set_input_focus(X.RevertToParent, X.CurrentTime)
        connection.sync()
        self._write({"type": "ready", "window": self._window.id})

    def serve(self) -> None:
        """Log until killed."""
        while True:
            event = self._connection.next_event()
            if event.type == X.MappingNotify:
                self._connection.refresh_keyboard_mapping(event)
            elif event.type == X.PropertyNotify:
                self._obey(event.atom)
            elif event.type == X.SelectionNotify:
                self._take_text(event)
            elif event.type == X.SelectionRequest:
                self._hand_over(event)
            elif event.type in KINDS:
                told = _describe(self._connection, event)
                self._write(told)
                if (told["type"], told.get("key")) == ("key_press", "Insert") and "shift" in told["state"]:
                    self._ask("UTF8_STRING")

    def _write(self, event: Event) -> None:
        self._log.write(json.dumps(event) + "\n")

    def _atom(self, name: str) -> int:
        return int(self._connection.intern_atom(name))

    def _obey(self, atom: int) -> None:
        if atom == self._atom("EVENT_LOG_MARK"):
            value = self._window.get_full_property(atom, X.AnyPropertyType).value[0]
            self._write({"type": "mark", "mark": value})
        elif atom == self._atom("EVENT_LOG_ORDER"):
            self._order = json.loads(bytes(self._window.get_full_property(atom, X.AnyPropertyType).value))
            if self._order["do"] == "read":
                self._ask("UTF8_STRING")
            else:
                self._copied = self._order["text"].encode()
                self._window.set_selection_owner(self._atom("CLIPBOARD"), X.CurrentTime)
                self._answer({"type": "copied"})

    def _answer(self, event: Event) -> None:
        self._write({**event, "order": self._order["order"]})
        self._order = {}

    def _ask(self, target: str) -> None:
        clipboard, place = self._atom("CLIPBOARD"), self._atom("EVENT_LOG_TEXT")
        self._window.convert_selection(clipboard, self._atom(target), place, X.CurrentTime)
        self._connection.flush()

    def _take_text(self, event: Any) -> None:
        if event.property == X.NONE and event.target != Xatom.STRING:
            # Old programs have text in Latin-1 only.
            self._ask("STRING")
            return
        # What is on no selection may be where programs of old leave it.
        cut = self._root.get_full_property(self._atom("CUT_BUFFER0"), Xatom.STRING)
        text = None if cut is None else bytes(cut.value).decode("latin-1")
        if event.property != X.NONE:
            found = self._window.get_full_property(event.property, X.AnyPropertyType, 1 << 20)
            # The deletion tells its owner that it was read.
            self._window.delete_property(event.property)
            text = bytes(found.value).decode("latin-1" if event.target == Xatom.STRING else "utf-8")
        if self._order:
            self._answer({"type": "clipboard", "text": text})
        else:
            self._write({"type": "paste", "text": text})
            self._show()

    def _show(self) -> None:
        """Look otherwise than before, as a program does that was pasted into."""
        self._is_dark = not self._is_dark
        self._window.change_attributes(background_pixel=DARK if self._is_dark else LIGHT)
        self._window.clear_area()
        self._connection.flush()

    def _hand_over(self, event: Any) -> None:
        place = event.property or event.target
        if event.target == self._atom("TARGETS"):
            known = [event.target, self._atom("UTF8_STRING"), Xatom.STRING]
            event.requestor.change_property(place, Xatom.ATOM, 32, known)
        elif event.target in {self._atom("UTF8_STRING"), Xatom.STRING}:
            event.requestor.change_property(place, event.target, 8, self._copied)
        else:
            place = X.NONE
        event.requestor.send_event(
            xevent.SelectionNotify(
                time=event.time, requestor=event.requestor, selection=event.selection,
                target=event.target, property=place,
            )
        )  # fmt: skip
        self._connection.flush()


def main(path: Path) -> None:
    """Log until killed."""
    with path.open("a", buffering=1) as log:
        Window(display.Display(), log).serve()


def _describe(connection: display.Display, event: Any) -> Event:
    told: Event = {
        "type": KINDS[event.type],
        "x": event.root_x,
        "y": event.root_y,
        "state": [name for name, bit in STATE.items() if event.state & bit],
        "buttons": [number for number in range(1, 6) if event.state & (X.Button1Mask << (number - 1))],
        "time": event.time,
    }
    if event.type in {X.KeyPress, X.KeyRelease}:
        keysym = connection.keycode_to_keysym(event.detail, event.state & X.ShiftMask)
        told["key"] = _name(keysym or connection.keycode_to_keysym(event.detail, 0))
    elif event.type != X.MotionNotify:
        told["button"] = event.detail
    return told


def _name(keysym: int) -> str:
    names = [name[3:] for name in dir(XK) if name.startswith("XK_") and getattr(XK, name) == keysym]
    return min(names, key=len) if names else f"{keysym:#x}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
