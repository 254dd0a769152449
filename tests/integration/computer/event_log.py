"""
A small X client that writes down every event it receives.

Run as a program: ``event_log.py FILE`` covers the screen of ``$DISPLAY`` with a window that has the
focus, and appends one JSON object a line to FILE. Imported by tests for ``EventLog``, which reads
that file. Knows nothing of the code under test.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from Xlib import XK, X, Xatom, display

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
        return [event for event in new if event["type"] not in {"mark", "ready"}]

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


def main(path: Path) -> None:
    """Log until killed."""
    connection = display.Display()
    screen = connection.screen()
    size = screen.root.get_geometry()
    window = screen.root.create_window(
        0, 0, size.width, size.height, 0, X.CopyFromParent,
        background_pixel=0xE0E0E0, override_redirect=True, event_mask=MASK | X.ExposureMask,
    )  # fmt: skip
    window.map()
    while connection.next_event().type != X.Expose:
        pass
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    connection.sync()
    mark = connection.intern_atom("EVENT_LOG_MARK")
    with path.open("a", buffering=1) as log:
        log.write(json.dumps({"type": "ready", "window": window.id}) + "\n")
        while True:
            event = connection.next_event()
            if event.type == X.MappingNotify:
                connection.refresh_keyboard_mapping(event)
            elif event.type == X.PropertyNotify and event.atom == mark:
                value = window.get_full_property(mark, X.AnyPropertyType).value[0]
                log.write(json.dumps({"type": "mark", "mark": value}) + "\n")
            elif event.type in KINDS:
                log.write(json.dumps(_describe(connection, event)) + "\n")


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
