"""
Thousands of random actions with random cancels and disconnects leave nothing behind.

``RANDOM_ACTIONS`` in the environment says how many (500 otherwise), ``RANDOM_SEED`` with which seed.
"""

import asyncio
import gc
import os
import random
import socket
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from Xlib import display as xdisplay

from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.driver import ComputerDriver
from computer.errors import ComputerError
from computer.session import DesktopSession
from computer.settling import SettleSettings
from computer.wire import ComputerCall
from tests.integration.computer import event_log
from tests.integration.computer.event_log import EventLog

ACTIONS = int(os.environ.get("RANDOM_ACTIONS", "500"))
SEED = int(os.environ.get("RANDOM_SEED", "20"))
WARM_UP = 60
SETTLE = SettleSettings(
    quiet_ms=5, first_change_ms=5, start_first_change_ms=5, between_first_change_ms=5, cap_ms=50
)
# Chords that the window manager leaves alone.
CHORDS = (
    "a",
    "Z",
    "ctrl+shift+b",
    "shift",
    "alt",
    "Return",
    "F5",
    "ctrl",
    "é",
    "nosuchkey",
    "plus",
    "Caps_Lock",
)
BUTTONS = ("left", "middle", "right", "back", "forward")
CLICKS = ("left_click", "right_click", "middle_click", "back_click", "double_click", "triple_click")
# Bytes that the process may grow by, whatever the number of actions: caches, arenas.
GROWTH_BYTES = 40_000_000


class Chaos:
    """A driver on a display, and a generator that mistreats it."""

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._name, self._cookie = name, cookie
        self._random = random.Random(SEED)  # noqa: S311  reproducible
        self._display: X11Display | None = None
        self.driver = self._make()

    def _make(self) -> ComputerDriver:
        def open_display() -> X11Display:
            self._display = X11Display(self._name, self._cookie)
            return self._display

        return ComputerDriver(open_display, settle=SETTLE)

    async def act(self) -> None:
        """One call of one to three actions: finished, cancelled, or cut off from the server."""
        draw = self._random.random()
        if draw < 0.01:
            await self.driver.close()
            self.driver = self._make()
            await self.driver.open()
        elif draw < 0.03:
            self._cut()
        call = ComputerCall.model_validate(
            {
                "actions": [self._action() for _ in range(self._random.choice((1, 1, 1, 2, 3)))],
                "screenshot": self._random.random() < 0.1,
            }
        )
        task = asyncio.create_task(self.driver.perform(call))
        if self._random.random() < 0.25:
            await asyncio.wait({task}, timeout=self._random.random() * 0.03)
            task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            # A connection that was cut in the middle of a call; the next call opens a new one.
            assert isinstance(error, ComputerError), error

    def _cut(self) -> None:
        assert self._display is not None
        self._display._connection.display.socket.shutdown(socket.SHUT_RDWR)

    def _place(self) -> list[int]:
        return [self._random.randrange(-2, 1_290), self._random.randrange(-2, 806)]

    def _action(self) -> dict[str, object]:
        pick, key = self._random.choice, self._random.choice(CHORDS)
        return pick(
            (
                {"action": "mouse_move", "coordinate": self._place()},
                {
                    "action": pick(CLICKS),
                    "coordinate": self._place(),
                    "modifiers": pick((None, "ctrl+shift")),
                },
                {"action": pick(("button_down", "button_up")), "button": pick(BUTTONS)},
                {"action": pick(("left_mouse_down", "left_mouse_up")), "coordinate": self._place()},
                {"action": "drag", "path": [self._place() for _ in range(3)], "button": pick(BUTTONS)},
                {"action": "scroll", "scroll_direction": pick(("up", "left")), "scroll_amount": pick((0, 9))},
                {"action": "key", "text": key},
                {"action": pick(("key_down", "key_up")), "text": key},
                {"action": "hold_key", "text": key, "duration_ms": self._random.randrange(30)},
                {
                    "action": "type",
                    "text": pick(("Hello_World-42 (a>b)", "line\nline\t", "naïve Größe", "x" * 450)),
                },
                {"action": "wait_settled", "quiet_ms": 10, "timeout_ms": 30},
                {"action": "zoom", "region": [0, 0, 200, 100]},
                {"action": "cursor_position"},
            )
        )


@pytest.fixture
async def log(session: DesktopSession, runtime_dir: Path) -> AsyncIterator[EventLog]:
    """An independent connection, and a window that takes all input and covers the screen."""
    await session.ensure_running()
    assert session._live is not None
    path = runtime_dir / "events.jsonl"
    await session.open([sys.executable, event_log.__file__, str(path)])
    probe = connect(session._live.desktop.display, session._live.desktop.cookie)
    log = EventLog(path, probe)
    await log.ready()
    yield log
    disconnect(probe)


def _counts(probe: xdisplay.Display) -> tuple[int, int, int]:
    gc.collect()
    return len(probe.res_query_clients().clients), psutil.Process().num_fds(), threading.active_count()


@pytest.mark.slow
@pytest.mark.timeout(60 + ACTIONS)
async def test_random_actions_leave_nothing_behind(session: DesktopSession, log: EventLog) -> None:
    """Required: nothing held at the end, no growth in X clients, descriptors, threads or memory."""
    assert session._live is not None
    probe = log.connection
    chaos = Chaos(session._live.desktop.display, session._live.desktop.cookie)
    await chaos.driver.open()
    for _ in range(WARM_UP):
        await chaos.act()
    await chaos.driver.screenshot()
    before, memory = _counts(probe), psutil.Process().memory_info().rss
    for _ in range(ACTIONS - WARM_UP):
        await chaos.act()
    await chaos.driver.screenshot()
    after, growth = _counts(probe), psutil.Process().memory_info().rss - memory

    assert not any((await chaos.driver.release_all()).model_dump().values())
    await chaos.driver.close()
    assert probe.screen().root.query_pointer().mask & 0x1F00 == 0
    assert not any(probe.query_keymap())
    last = {event["button"]: event["type"] for event in await log.take() if "button" in event}
    assert set(last.values()) == {"release"}
    assert before[0] > 3
    assert after == before
    assert growth < GROWTH_BYTES
