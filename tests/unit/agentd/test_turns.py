"""Agents that share a desktop work one after another."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd import turns as turns_module
from agentd.errors import DesktopBusy
from agentd.turns import Turns

LIMIT_S = 30
# Seconds that nobody lives to see.
LONG = 10_000.0


class Agents:
    """Agents at one desktop, whose calls last until the test ends them; *log*: who got it, in which turn."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.turns = Turns(clock=lambda: self.now, **({"idle_s": LONG, "wait_s": LONG} | settings))
        self.log: list[tuple[str, int]] = []
        self.came = asyncio.Event()

    async def call(self, agent: str, until: asyncio.Event | None = None) -> None:
        """One call."""
        async with self.turns.taken("main", agent) as number:
            self.log.append((agent, number))
            self.came.set()
            if until is not None:
                await until.wait()

    def begin(self, agent: str, until: asyncio.Event | None = None) -> "asyncio.Task[None]":
        """One call, in the background."""
        return asyncio.create_task(self.call(agent, until))

    async def until(self, count: int) -> None:
        """Wait for that many calls to have begun."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.log) < count:
                self.came.clear()
                await self.came.wait()


async def _idle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_agent_keeps_the_desktop_between_its_calls_until_it_leaves() -> None:
    """The issue: one lease in turn; the next one gets it at once, in the order of coming."""
    agents = Agents()
    await agents.call("a")
    waiting = [agents.begin(name) for name in ("b", "c", "b")]
    await _idle()
    await agents.call("a")
    assert agents.log == [("a", 1), ("a", 1)]
    agents.turns.leave("a")
    await agents.until(4)
    await waiting[0]
    assert agents.log[2:] == [("b", 2), ("b", 2)]
    agents.turns.leave("b")
    await asyncio.gather(*waiting)

    assert agents.log[4:] == [("c", 3)]


async def test_a_call_under_way_is_ended_by_nobody() -> None:
    """Ours: who leaves in the middle of a call, as a stopped chat does, goes on having it until that ends."""
    agents, end = Agents(idle_s=0.0), asyncio.Event()
    first = agents.begin("a", end)
    await agents.until(1)
    second = agents.begin("b")
    agents.turns.leave("a")
    await _idle()
    assert agents.log == [("a", 1)]
    end.set()
    await asyncio.gather(first, second)

    assert agents.log == [("a", 1), ("b", 2)]


async def test_an_agent_that_does_nothing_loses_its_turn() -> None:
    """Ours: its chatd may have died; the time is looked at when somebody waits."""
    agents = Agents(idle_s=60.0)
    await agents.call("a")
    agents.now = 59.99
    waiting = agents.begin("b")
    await _idle()
    assert agents.log == [("a", 1)]
    agents.now = 60.0
    async with asyncio.timeout(LIMIT_S):
        await waiting

    assert agents.log == [("a", 1), ("b", 2)]


async def test_waiting_has_an_end_and_leaves_nothing() -> None:
    """Ours: a result that says what to do; the place in the queue is given up."""
    agents, end = Agents(wait_s=0.01), asyncio.Event()
    first = agents.begin("a", end)
    await agents.until(1)
    with pytest.raises(DesktopBusy, match="another agent works at this desktop"):
        await agents.call("b")
    end.set()
    await first
    agents.turns.leave("a")
    await agents.call("c")

    assert agents.log == [("a", 1), ("c", 2)]


async def test_those_who_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: every queue is."""
    monkeypatch.setattr(turns_module, "MAX_WAITING", 2)
    agents = Agents()
    await agents.call("a")
    waiting = [agents.begin("b"), agents.begin("c")]
    await _idle()
    with pytest.raises(DesktopBusy, match="2 calls wait"):
        await agents.call("d")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_desktops_do_not_know_each_other() -> None:
    """The issue: where each agent has its own, nobody waits."""
    agents = Agents()
    async with AsyncExitStack() as stack:
        for name in ("a", "b"):
            assert await stack.enter_async_context(agents.turns.taken(f"chat-{name}", name)) == 1


MOVES = st.lists(
    st.tuples(st.sampled_from(["begin", "end", "cancel", "leave"]), st.sampled_from("abc")), max_size=40
)


class Crowd:
    """Calls of several agents; *inside* counts those that have the desktop, *seen* who had it together."""

    def __init__(self) -> None:
        self.turns = Turns(idle_s=LONG, wait_s=LONG)
        self.inside: Counter[str] = Counter()
        self.seen: set[frozenset[str]] = set()
        self.calls: dict[str, list[tuple[asyncio.Task[None], asyncio.Event]]] = {"a": [], "b": [], "c": []}

    async def call(self, agent: str, end: asyncio.Event) -> None:
        """One call, until *end*."""
        async with self.turns.taken("main", agent):
            self.inside[agent] += 1
            self.seen.add(frozenset(+self.inside))
            try:
                await end.wait()
            finally:
                self.inside[agent] -= 1

    def move(self, move: str, agent: str) -> None:
        """One move of an agent; ends and cancels are of its oldest call."""
        mine = self.calls[agent]
        if move == "begin":
            end = asyncio.Event()
            mine.append((asyncio.create_task(self.call(agent, end)), end))
        elif move == "leave":
            self.turns.leave(agent)
        elif mine:
            task, end = mine.pop(0) if move == "cancel" else mine[0]
            (end.set if move == "end" else task.cancel)()


@given(moves=MOVES)
async def test_never_two_agents_at_once_and_nobody_waits_for_ever(moves: list[tuple[str, str]]) -> None:
    """Ours: whatever begins, ends, is cancelled or leaves, in any order."""
    crowd = Crowd()
    for move, agent in moves:
        crowd.move(move, agent)
        await _idle()
    left = [call for calls in crowd.calls.values() for call in calls]
    for _, end in left:
        end.set()
    async with asyncio.timeout(LIMIT_S):
        while not all(task.done() for task, _ in left):
            for agent in crowd.calls:
                crowd.turns.leave(agent)
            await _idle()

    assert {len(together) for together in crowd.seen} <= {1}
