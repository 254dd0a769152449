"""
Pins under everything at once: pushes, refreshes, rebinds, new chats, archiving, crashes.

``AGENTD_TEST_PIN_OPERATIONS`` and ``AGENTD_TEST_PIN_KILLS`` set how many (1000 and 20 for the whole proof).
"""

import asyncio
import itertools
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.errors import ChatdError, TransitionNotAllowed
from chatd.store import accounts, schema
from chatd.store.database import Database
from chatd.store.pinning import Pins
from chatd.wire import Chat
from tests.contract.store.bench import START, Bench
from tests.contract.store.context import pin_problems, random_push

OPERATIONS = int(os.environ.get("AGENTD_TEST_PIN_OPERATIONS", "100"))
KILLS = int(os.environ.get("AGENTD_TEST_PIN_KILLS", "1"))
CHATS, WORKERS = 50, 6
VICTIM = Path(__file__).with_name("pin_victim.py")


class Crash(Exception):
    """The transaction ends here, as if the process had."""


class Storm:
    """Random operations on the chats of two agents."""

    def __init__(self, bench: Bench, rng: random.Random) -> None:
        self.bench, self.rng = bench, rng
        self.pins = Pins(bench.store)
        self.agents: list[UUID] = []
        self.chats: list[Chat] = []
        self.versions = itertools.count(1)
        self.fuse = 0
        self.counts: dict[str, int] = {}

    async def prepare(self) -> None:
        """Fifty chats of one agent, and another agent."""
        for name in ("one", "two"):
            self.agents.append(
                await self.bench.store.write(accounts.ensure_agent, self.bench.user_id, name, now=START)
            )
        self.chats = [await self.bench.create(agent_id=self.agents[0]) for _ in range(CHATS)]

    async def step(self) -> None:
        """One operation, which may crash."""
        operations: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (5, self.push), (5, self.refresh), (4, self.rebind), (1, self.create), (1, self.spawn),
            (1, self.archive), (2, self.pin_unpinned), (2, self.crash),
        ]  # fmt: skip
        weights, names = [weight for weight, _ in operations], [run for _, run in operations]
        (run,) = self.rng.choices(names, weights)
        try:
            await run()
            word = run.__name__
        except Crash:
            word = "crashed"
        except TransitionNotAllowed:
            word = "refused"
        self.counts[word] = self.counts.get(word, 0) + 1

    def any_chat(self) -> UUID:
        """One of the chats."""
        return self.rng.choice(self.chats).id

    async def push(self) -> None:
        """A workspace tells something, in this life or in a new one."""
        is_initial = self.rng.random() < 0.3
        agent_id = self.rng.choice([*self.agents, self.agents[0]])
        await self.pins.take_push(agent_id, random_push(self.rng, next(self.versions), initial=is_initial))

    async def refresh(self) -> None:
        """A person takes the changes."""
        await self.pins.refresh(self.any_chat())

    async def rebind(self) -> None:
        """A chat gets an agent or loses it."""
        await self.pins.rebind(self.any_chat(), self.rng.choice([*self.agents, self.agents[0], None]))

    async def create(self) -> None:
        """A new chat."""
        self.chats.append(await self.bench.create(agent_id=self.rng.choice(self.agents)))

    async def spawn(self) -> None:
        """A sub-agent, of whatever its parent has."""
        parent = self.rng.choice(self.chats)
        child = await self.bench.create(
            agent_id=self.rng.choice([parent.agent_id, *self.agents]),
            parent=parent,
            spawn_key=f"{next(self.versions)}",
        )
        self.chats.append(child)

    async def archive(self) -> None:
        """A chat is put away, behind the store's back: a row that changes while pins are written."""
        table = schema.chats
        await self.bench.execute(table.update().where(table.c.id == self.any_chat()).values(archived=True))

    async def pin_unpinned(self) -> None:
        """A first turn."""
        await self.pins.pin_unpinned(self.any_chat())

    async def crash(self) -> None:
        """Some transaction, ours or another's, is about to end in the middle."""
        self.fuse = self.rng.randrange(1, 12)
        await self.push()

    @contextmanager
    def crashing(self, database: Database) -> Iterator[None]:
        """Let the fuse burn with every statement that is written."""
        engine = database._write_engine

        def burn(*_: Any) -> None:
            if self.fuse > 0:
                self.fuse -= 1
                if self.fuse == 0:
                    raise Crash

        sa.event.listen(engine, "before_cursor_execute", burn)
        try:
            yield
        finally:
            sa.event.remove(engine, "before_cursor_execute", burn)


@pytest.mark.timeout(600)
async def test_every_pin_is_true_after_each_of_many_operations_at_once(bench: Bench) -> None:
    """Issue: 50 chats on one agent; what is checked each time is one snapshot of the whole store."""
    storm = Storm(bench, random.Random(20260101))  # noqa: S311 -- the same storm every time
    await storm.prepare()
    left = itertools.count()

    async def work() -> None:
        while next(left) < OPERATIONS:
            await storm.step()
            assert await bench.store.read(pin_problems) == []

    with storm.crashing(bench.database):
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())
        storm.fuse = 0
    for agent_id in storm.agents:
        await storm.pins.take_push(agent_id, random_push(storm.rng, 1, initial=True))

    assert await bench.store.read(pin_problems) == []
    assert await bench.store.read(_unpinned) == 0
    assert sum(storm.counts.values()) >= OPERATIONS
    assert storm.counts["crashed"] > 0


def _unpinned(connection: sa.Connection) -> int:
    """Live chats of an agent that have no pin, though every agent has pushed."""
    chats = schema.chats
    condition = (
        chats.c.agent_id.is_not(None) & chats.c.archived.is_(False) & chats.c.context_aggregate_hash.is_(None)
    )
    return connection.execute(sa.select(sa.func.count()).where(condition)).scalar_one()


@pytest.mark.timeout(600)
async def test_every_pin_is_true_after_the_process_was_killed(bench: Bench, database_url: str) -> None:
    """Issue: SIGKILL amid pushes, refreshes and rebinds; the next process finds everything true."""
    storm = Storm(bench, random.Random(7))  # noqa: S311
    await storm.prepare()
    environment = os.environ | {"PYTHONPATH": str(VICTIM.parents[3])}
    for number in range(KILLS):
        process = await asyncio.create_subprocess_exec(
            sys.executable, VICTIM, database_url, f"{number}", stdout=asyncio.subprocess.PIPE, env=environment
        )
        assert process.stdout is not None
        # It says what it has done; then it is in the middle of the next.
        for _ in range(storm.rng.randrange(3, 20)):
            assert await process.stdout.readline()
        process.kill()
        await process.communicate()

        assert await bench.store.read(pin_problems) == []


async def test_a_push_and_a_refresh_that_cross_leave_no_chat_clean_by_mistake(bench: Bench) -> None:
    """Ours: with repeatable reads alone a refresh could pin the old set and clear the mark after the push."""
    storm = Storm(bench, random.Random(1))  # noqa: S311
    await storm.prepare()
    chat_id = storm.chats[0].id
    for _ in range(15):
        await asyncio.gather(
            storm.push(), storm.pins.refresh(chat_id), storm.push(), storm.pins.refresh(chat_id)
        )

        assert await bench.store.read(pin_problems) == []


def test_an_unexpected_refusal_would_end_the_storm() -> None:
    """Ours: a crash is not one of our errors, so nothing catches it on the way."""
    assert not issubclass(Crash, ChatdError | sa.exc.SQLAlchemyError)
