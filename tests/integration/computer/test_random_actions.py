"""
Thousands of random actions with random cancels and disconnects leave nothing behind.

``AGENTD_RANDOM_ACTIONS`` in the environment says how many (500 otherwise).
"""

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Coroutine
from typing import Any, NamedTuple

import psutil
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from Xlib.ext import xinput

from computer.display.shm import MAX_SEGMENTS
from computer.display.x11 import X11Display
from computer.driver import ComputerDriver
from computer.errors import ComputerError
from computer.session import DesktopSession
from computer.settling import SettleSettings
from computer.wire import ComputerCall
from tests.integration.computer.event_log import EventLog
from tests.support.descriptors import count_descriptors

ACTIONS = int(os.environ.get("AGENTD_RANDOM_ACTIONS", "500"))
# Actions after which every cache is warm.
WARM_UP = 60
# Steps of one example, and examples between two looks at the number of actions.
STEPS, EXAMPLES = 25, 2
SETTLE = SettleSettings(
    quiet_ms=5, first_change_ms=5, start_first_change_ms=5, between_first_change_ms=5, cap_ms=50
)
# Bytes that the process may grow by, whatever the number of actions: caches, arenas.
GROWTH_BYTES = 40_000_000
# Seconds for one step; generous, since others share the machine.
LIMIT_S = 60

# Chords that the window manager leaves alone, and one that does not exist.
CHORDS = st.sampled_from(
    ["a", "Z", "ctrl+shift+b", "shift", "alt", "Return", "F5", "ctrl", "é", "nosuchkey", "plus", "Caps_Lock"]
)
BUTTONS = st.sampled_from(["left", "middle", "right", "back", "forward"])
CLICKS = st.sampled_from(
    [
        "left_click", "right_click", "middle_click", "back_click", "forward_click", "double_click",
        "triple_click",
    ]
)  # fmt: skip
TEXTS = st.sampled_from(["Hello_World-42 (a>b)", "line\nline\t", "naïve Größe", "x" * 450])
MISHAPS = st.sampled_from([*["none"] * 18, "cut", "begin anew"])
# Errors of a connection that broke: what it held is let go by the next one.
LOST = {"display_lost", "capture_timeout"}
# XInput's number of the pointer that all devices move: its buttons are not only the core's five.
CORE_POINTER = 2
# A little beyond every edge, too.
PLACES = st.tuples(st.integers(-2, 1_289), st.integers(-2, 805))


def _an(action: str | st.SearchStrategy[str], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.just(action) if isinstance(action, str) else action
    return st.fixed_dictionaries({"action": names, **fields})


A_CALL = st.lists(
    st.one_of(
        _an("mouse_move", coordinate=PLACES),
        _an(CLICKS, coordinate=PLACES, modifiers=st.sampled_from([None, "ctrl+shift"])),
        _an("click", button=BUTTONS, count=st.integers(1, 3)),
        _an(st.sampled_from(["button_down", "button_up"]), button=BUTTONS),
        _an(st.sampled_from(["left_mouse_down", "left_mouse_up"]), coordinate=PLACES),
        _an("left_click_drag", start_coordinate=PLACES, coordinate=PLACES),
        _an("drag", path=st.lists(PLACES, min_size=3, max_size=3), button=BUTTONS),
        _an(
            "scroll", scroll_direction=st.sampled_from(["up", "left"]), scroll_amount=st.sampled_from([0, 9])
        ),
        _an("key", text=CHORDS),
        _an("key_sequence", keys=st.lists(CHORDS, min_size=1, max_size=3)),
        _an(st.sampled_from(["key_down", "key_up"]), text=CHORDS),
        _an("hold_key", text=CHORDS, duration_ms=st.integers(0, 30)),
        _an("type", text=TEXTS),
        _an(st.sampled_from(["paste", "set_clipboard"]), text=TEXTS),
        _an("get_clipboard"),
        _an("wait", duration_ms=st.integers(0, 30)),
        _an("wait_settled", quiet_ms=st.just(10), timeout_ms=st.just(30)),
        _an("zoom", region=st.just((0, 0, 200, 100))),
        _an("cursor_position"),
    ),
    min_size=1,
    max_size=3,
)


class Counts(NamedTuple):
    """What must not grow."""

    clients: int
    descriptors: int
    threads: int


class World:
    """A driver on a display, the loop it lives in, and an independent connection that looks on."""

    def __init__(self, session: DesktopSession, log: EventLog) -> None:
        assert session._live is not None
        self._desktop = session._live.desktop
        self._loop = asyncio.get_running_loop()
        self._display: X11Display | None = None
        self.log = log
        self.driver = self._make()
        self.actions = 0
        self.checks = 0
        # Of tests before this one in the same process: a failed one keeps its pictures to be looked at.
        self._others = count_descriptors()[0]

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do *work* in the loop, from the thread of a state machine."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    async def perform(self, actions: list[dict[str, Any]], screenshot: bool, cancel_s: float | None) -> None:
        """One call: finished, or cancelled after *cancel_s*."""
        self.actions += len(actions)
        call = ComputerCall.model_validate({"actions": actions, "screenshot": screenshot})
        task = asyncio.create_task(self.driver.perform(call))
        if cancel_s is not None:
            await asyncio.wait({task}, timeout=cancel_s)
            if self.driver._turn.locked():
                task.cancel()
        await asyncio.wait({task})
        if task.cancelled():
            self._check_nothing_down()
        elif (error := task.exception()) is not None:
            # A connection that was cut in the middle of a call; the next call opens a new one.
            assert isinstance(error, ComputerError), error
        elif task.result().error is not None and task.result().error_code not in LOST:
            self._check_nothing_down()

    def _check_nothing_down(self) -> None:
        """Ask the server, before anybody releases anything."""
        self.checks += 1
        assert not any(self.log.connection.query_keymap())
        assert self._buttons_down() == []

    def _buttons_down(self) -> list[int]:
        devices = self.log.connection.xinput_query_device(CORE_POINTER).devices
        [buttons] = [each for each in devices[0].classes if each.type == xinput.ButtonClass]
        # Not to be iterated over: it has no end.
        return [index + 1 for index in range(len(buttons.state)) if buttons.state[index]]

    async def cut(self) -> None:
        """Break the connection without a word."""
        assert self._display is not None
        self._display._connection.display.socket.shutdown(socket.SHUT_RDWR)

    async def begin_anew(self) -> None:
        """Close the driver and open another."""
        await self.driver.close()
        self.driver = self._make()
        await self.driver.open()

    async def check_nothing_held(self) -> None:
        """Ask driver and server, after a release."""
        assert not any((await self.driver.release_all()).model_dump().values())
        self._check_nothing_down()

    async def count(self) -> Counts:
        """What there is now, with a driver that has just taken a picture and used the clipboard."""
        copy = {"action": "set_clipboard", "text": "counted"}
        await self.perform([copy], screenshot=False, cancel_s=None)
        await self.driver.screenshot()
        gc.collect()
        clients = len(self.log.connection.res_query_clients().clients)
        pool, others = count_descriptors()
        assert pool - self._others <= 2 * MAX_SEGMENTS  # the session has a driver as well
        return Counts(clients, others, threading.active_count())

    def _make(self) -> ComputerDriver:
        def open_display() -> X11Display:
            self._display = X11Display(self._desktop.display, self._desktop.cookie)
            return self._display

        return ComputerDriver(open_display, settle=SETTLE)


class Chaos(RuleBasedStateMachine):
    """Calls that end, calls that are cancelled, connections that break, drivers that are replaced."""

    world: World

    @rule(actions=A_CALL, screenshot=st.booleans())
    def perform(self, actions: list[dict[str, Any]], screenshot: bool) -> None:
        """A call that is left in peace."""
        self.world.run(self.world.perform(actions, screenshot, None))

    @rule(actions=A_CALL, cancel_s=st.floats(0, 0.03))
    def cancel(self, actions: list[dict[str, Any]], cancel_s: float) -> None:
        """A call that is cancelled somewhere."""
        self.world.run(self.world.perform(actions, False, cancel_s))

    @rule(actions=A_CALL, mishap=MISHAPS)
    def suffer(self, actions: list[dict[str, Any]], mishap: str) -> None:
        """A call after the server has hung up, or on a new driver; each costs as much as many calls."""
        if mishap == "cut":
            self.world.run(self.world.cut())
        elif mishap == "begin anew":
            self.world.run(self.world.begin_anew())
        self.world.run(self.world.perform(actions, False, None))

    def teardown(self) -> None:
        """After each example nothing is down."""
        self.world.run(self.world.check_nothing_held())


def _run_until(world: World, actions: int) -> None:
    """Examples until so many actions are done. Without shrinking: what failed is printed as it was."""
    few = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    while world.actions < actions:
        run_state_machine_as_test(Chaos, settings=few)


@pytest.mark.slow
@pytest.mark.timeout(120 + ACTIONS)
async def test_random_actions_leave_nothing_behind(session: DesktopSession, log: EventLog) -> None:
    """Required: nothing held at the end, no growth in X clients, descriptors, threads or memory."""
    world = Chaos.world = World(session, log)
    await world.driver.open()
    await asyncio.to_thread(_run_until, world, WARM_UP)
    before, memory = await world.count(), psutil.Process().memory_info().rss
    await asyncio.to_thread(_run_until, world, ACTIONS)
    after, growth = await world.count(), psutil.Process().memory_info().rss - memory
    await world.driver.close()

    last = {event["button"]: event["type"] for event in await log.take() if "button" in event}
    assert set(last.values()) == {"release"}
    assert world.actions >= ACTIONS
    assert world.checks > ACTIONS // 25
    assert before.clients > 3
    assert after == before
    assert growth < GROWTH_BYTES
