"""Control of a desktop: who acts, who is refused, who is told, in which order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentd import control as control_module
from agentd.control import Control, touches
from agentd.desktops import Desktops, Use
from agentd.errors import ControlHeld, NotInControl
from agentd.lease import Party
from agentd.settings import AgentdSettings
from computer.wire import ComputerCall, ComputerResult, DesktopStatus, ScreenshotData

ANN, BOB = Party(seat="ann", name="Ann"), Party(seat="bob", name="Bob")
CLICK = ComputerCall.model_validate({"actions": [{"action": "left_click", "coordinate": [1, 1]}]})
LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}], "model_size": [640, 400]})
LIMIT_S = 10


class FakeSession:
    """A session that writes down what is done to it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate: asyncio.Event | None = None
        self.began = asyncio.Event()

    def status(self) -> DesktopStatus:
        """Running."""
        return DesktopStatus(name="main", state="running", backend="xvnc", geometry="1x1")

    async def release_input(self) -> None:
        """Write it down."""
        self.log.append("released")

    async def stop(self) -> None:
        """Nothing to stop."""

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """Write the first action down; wait at the gate if there is one and this is input."""
        self.log.append(call.actions[0].action)
        if self.gate is not None and touches(call):
            self.began.set()
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.log.append("cancelled")
                raise
        size = call.model_size or (1280, 800)
        picture = ScreenshotData.model_validate(
            {
                "data": "eA==",
                "model_size": size,
                "native_size": (1280, 800),
                "taken_at": "2026-01-01T00:00:00Z",
            }
        )
        return ComputerResult(screenshot=picture)


class World:
    """One desktop and its control, at a time that the test sets."""

    def __init__(self, runtime_dir: Path) -> None:
        self.now = 1000.0
        self.session = FakeSession()
        make: Any = lambda *_: self.session  # noqa: E731
        self.desktops = Desktops(AgentdSettings(runtime_dir=runtime_dir), make=make)
        self.control = Control(self.desktops, idle_s=60.0, clock=lambda: self.now)

    async def act(self, call: ComputerCall, actor: str | None = "chat") -> ComputerResult:
        """As the agent."""
        async with asyncio.timeout(LIMIT_S):
            return await self.control.act("main", call, self.session.perform, actor=actor)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A desktop whose agent has control."""
    world = World(tmp_path)
    world.desktops.get()
    yield world
    await world.control.close()


@pytest.mark.parametrize(
    ("actions", "is_input"),
    [
        ([{"action": "screenshot"}, {"action": "wait", "duration_ms": 1}], False),
        ([{"action": "get_clipboard"}], False),
        ([{"action": "screenshot"}, {"action": "key", "text": "a"}], True),
        ([{"action": "mouse_move", "coordinate": [0, 0]}], True),
        ([{"action": "set_clipboard", "text": "x"}], True),
    ],
)
def test_looking_is_no_input(actions: list[dict[str, Any]], is_input: bool) -> None:
    """Ours: an agent without control may still see what a person does."""
    assert touches(ComputerCall.model_validate({"actions": actions})) is is_input


async def test_while_a_person_has_control_the_agent_s_input_is_answered_with_a_picture(world: World) -> None:
    """The issue: a clear result with a fresh screenshot, in the model's own size; nothing is done."""
    await world.control.take("main", ANN)
    world.session.log.clear()
    result = await world.act(CLICK.model_copy(update={"model_size": (640, 400)}))

    assert world.session.log == ["screenshot"]
    assert result.error_code == "control_held"
    assert "a person has control (Ann)" in (result.error or "")
    assert result.screenshot is not None
    assert result.screenshot.model_size == (640, 400)
    assert result.reports == ()
    assert (await world.act(LOOK)).error is None


async def test_after_hand_back_the_agent_looks_before_it_acts(world: World) -> None:
    """The issue: hand-back gives the agent a fresh picture; the next input goes through."""
    await world.act(LOOK)
    await world.control.take("main", ANN)
    await world.control.give_back("main", ANN.seat)
    world.session.log.clear()
    results = [await world.act(CLICK) for _ in range(2)]

    assert world.session.log == ["screenshot", "left_click"]
    assert [result.error_code for result in results] == ["control_changed", None]
    assert results[0].screenshot is not None


async def test_who_looked_after_hand_back_or_never_looks_acts_at_once(world: World) -> None:
    """Ours: the shell and a chat that has just seen the screen are not refused."""
    await world.act(LOOK)
    await world.control.take("main", ANN)
    await world.control.give_back("main", ANN.seat)

    assert (await world.act(CLICK, actor=None)).error is None
    await world.act(LOOK)
    assert (await world.act(CLICK)).error is None


async def test_taking_control_stops_the_agent_in_the_middle(world: World) -> None:
    """Ours: what it does is ended, then what is held is released, then the person may act."""
    world.session.gate = asyncio.Event()
    acting = asyncio.create_task(world.act(CLICK))
    await world.session.began.wait()
    with world.control.attached("main", ANN.seat, lambda holder: world.session.log.append(f"{holder}")):
        await world.control.take("main", ANN)
        result = await acting

    told = world.session.log
    assert result.error_code == "control_held"
    assert told.index("cancelled") < told.index("released") < told.index(str(ANN))


async def test_cancelled_call_is_not_taken_for_a_change_of_control(world: World) -> None:
    """Ours: the turn was stopped; nobody took anything."""
    world.session.gate = asyncio.Event()
    acting = asyncio.create_task(world.act(CLICK))
    await world.session.began.wait()
    acting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await acting

    assert world.session.log == ["left_click", "cancelled"]


async def test_two_persons_never_share(world: World) -> None:
    """The issue: refusal, not queueing."""
    await world.control.take("main", ANN)
    with pytest.raises(ControlHeld):
        await world.control.take("main", BOB)
    with pytest.raises(NotInControl):
        await world.control.give_back("main", BOB.seat)
    await world.control.give_back("main", ANN.seat)

    state = await world.control.take("main", BOB)
    assert (state.seat, state.name, state.epoch) == ("bob", "Bob", 4)


async def test_unused_control_times_out_and_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issue: time-out; input renews it."""
    heard: asyncio.Queue[Party | None] = asyncio.Queue()
    with world.control.attached("main", ANN.seat, heard.put_nowait):
        await world.control.take("main", ANN)
        world.now += 59
        world.control.touch("main", ANN.seat)
        world.now += 59
        world.control._check_idle("main")
        assert world.control.state("main").seat == "ann"
        world.now += 2
        world.control._check_idle("main")
        async with asyncio.timeout(LIMIT_S):
            told = [await heard.get() for _ in range(3)]

    assert told == [None, ANN, None]
    assert world.control.state("main").seat is None


async def test_control_ends_soon_after_the_last_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a page that reloads keeps control, one that is closed does not."""
    monkeypatch.setattr(control_module, "AWAY_S", 0.05)
    gone = asyncio.Event()
    with ExitStack() as pages:
        pages.enter_context(world.control.attached("main", ANN.seat, lambda _: None))
        await world.control.take("main", ANN)
        with world.control.attached("main", ANN.seat, lambda _: None):
            pages.close()
        with world.control.attached("main", ANN.seat, lambda _: None):
            assert world.control.state("main").seat == "ann"
    with world.control.attached("main", BOB.seat, lambda holder: None if holder else gone.set()):
        gone.clear()
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()

    assert world.control.state("main").seat is None


async def test_who_never_comes_back_loses_control_at_once(world: World) -> None:
    """Ours: a VNC program that disconnects is gone; only a page that reloads is waited for."""
    with world.control.attached("main", "ann", lambda _: None, comes_back=False):
        await world.control.take("main", ANN)
        held = world.control.state("main").seat
    after = world.control.state("main").seat

    assert (held, after) == ("ann", None)
    await world.control.close()


async def test_control_counts_as_use_and_is_shown(world: World) -> None:
    """The issue: holding control keeps a desktop from being stopped as idle."""
    await world.control.take("main", ANN)
    status = world.control.describe(world.desktops.status())

    assert (status.control, status.control_seat) == ("Ann", "ann")
    assert world.desktops._uses["main"][Use.CONTROLLING] == 1
    await world.control.give_back("main", ANN.seat)
    assert world.desktops._uses["main"][Use.CONTROLLING] == 0
    assert world.control.describe(world.desktops.status()).control is None


async def test_after_another_agent_s_turn_an_agent_must_look_first(world: World) -> None:
    """Ours: what it saw last is no ground to click on; looking is enough, and is never refused."""
    perform, act = world.session.perform, world.control.act
    await act("main", LOOK, perform, actor="a", turn=1)
    assert (await act("main", CLICK, perform, actor="b", turn=2)).error is None
    world.session.log.clear()
    refused = await act("main", CLICK, perform, actor="a", turn=3)
    again = await act("main", CLICK, perform, actor="a", turn=3)

    assert refused.error_code == "control_changed"
    assert "another agent worked at this desktop" in (refused.error or "")
    assert refused.screenshot is not None
    assert again.error is None
    assert world.session.log == ["screenshot", "left_click"]
