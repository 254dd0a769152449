"""
From files to pins: a scan, a push, chats pinned, a change until it is stored.

Targets: scan < 100 ms with 100,000 files around the roots, change to push < 400 ms,
1,000 chats x 100 resources pinned < 1 s on both databases.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from pytest_benchmark.fixture import BenchmarkFixture

from chatd.store import accounts, pins, schema
from chatd.store.database import Database
from context_push.discover import discover
from context_push.manager import ContextManager
from context_push.push import Pusher, Send
from context_push.sources import Sources
from context_push.wire.push import ContextPush, PushAnswer
from tests.contract.store.bench import START, Bench
from tests.contract.store.context import instruction, push, skill

FILES, CHATS, RESOURCES, PUSHED = 100_000, 1_000, 100, 500
SIZE = 1024
ROUNDS = 10


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with instructions, 50 skills, and 100,000 files around them, half at its top."""
    root = tmp_path_factory.mktemp("tree")
    for number in range(FILES // 2):
        (root / f"file-{number}").touch()
    for folder in range(50):
        (root / f"src-{folder}").mkdir()
        for number in range(FILES // 100):
            (root / f"src-{folder}" / f"{number}").touch()
    (root / "AGENTS.md").write_text("x" * SIZE)
    for number in range(50):
        path = root / "skills" / f"s{number}"
        path.mkdir(parents=True)
        (path / "SKILL.md").write_text(f"---\nname: s{number}\ndescription: Does it.\n---\n{'x' * SIZE}")
    return root


def test_scan_ours(benchmark: BenchmarkFixture, tree: Path) -> None:
    """One whole pass."""
    benchmark.group = "scan, 100,000 files around the roots"
    found = benchmark.pedantic(discover, args=([str(tree)],), rounds=ROUNDS, warmup_rounds=1)

    assert len(found.resources) == 51


def test_scan_by_walking(benchmark: BenchmarkFixture, tree: Path) -> None:
    """What looking at every file would take: the floor of any tool that walks."""
    benchmark.group = "scan, 100,000 files around the roots"

    def walk() -> int:
        return sum(path.name in {"AGENTS.md", "SKILL.md"} for path in tree.rglob("*"))

    assert benchmark.pedantic(walk, rounds=3) == 51


class Store:
    """A database with an agent and chats, driven from plain code."""

    def __init__(self, url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.bench = Bench(Database(url))
        self.agent_id = UUID(int=0)
        self.run(self.bench.prepare())
        self.agent_id = self.run(
            self.bench.store.write(accounts.ensure_agent, self.bench.user_id, "one", now=START)
        )

    def run(self, work: Any) -> Any:
        """Wait for a coroutine."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        """Let go of the database."""
        self.run(self.bench.database.close())
        self.loop.close()

    def add_chats(self) -> None:
        """A thousand chats that wait for a push."""
        first = self.run(self.bench.create(agent_id=self.agent_id))
        row = self.run(self.bench.row(first.id))

        def insert(connection: sa.Connection) -> None:
            rows = [row | {"id": UUID(int=number + 1), "spawn_key": None} for number in range(CHATS - 1)]
            connection.execute(schema.chats.insert(), rows)

        self.run(self.bench.store.write(insert))

    def forget(self) -> None:
        """No push, no pins."""

        def delete(connection: sa.Connection) -> None:
            chats = schema.chats
            connection.execute(chats.update().values(context_aggregate_hash=None, context_pin_id=None))
            for table in (schema.context_snapshots, schema.agent_context, schema.context_pins):
                connection.execute(table.delete())

        self.run(self.bench.store.write(delete))

    def count(self) -> tuple[int, int]:
        """Chats that have a pin, and chats that are dirty."""
        chats = schema.chats.c
        wanted = sa.select(sa.func.count(chats.context_pin_id), sa.func.count(chats.context_dirty_since))
        pinned, dirty = self.run(self.bench.store.read(lambda connection: connection.execute(wanted).one()))
        return pinned, dirty

    def push(self, what: ContextPush) -> pins.Taken:
        """One push, as a transaction."""
        taken: pins.Taken = self.run(
            self.bench.store.write(pins.take_push, self.agent_id, what, now=self.bench.now())
        )
        return taken


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A database of each kind."""
    store = Store(database_url)
    yield store
    store.close()


def _resources(count: int, text: str) -> ContextPush:
    body = text * (SIZE // len(text))
    rest = [skill(f"s{number}", body) for number in range(count - 1)]
    return push(1, instruction(text=body), *rest, initial=True)


def test_hydrate_ours(benchmark: BenchmarkFixture, store: Store, request: pytest.FixtureRequest) -> None:
    """A first push of 100 resources to 1,000 chats that wait for it."""
    benchmark.group = f"1,000 chats x 100 resources pinned, {request.node.callspec.params['new_database']}"
    store.add_chats()
    what = _resources(RESOURCES, "x")

    taken = benchmark.pedantic(store.push, args=(what,), setup=store.forget, rounds=5)

    assert len(taken.chats) == CHATS


def test_push_ours(benchmark: BenchmarkFixture, store: Store, request: pytest.FixtureRequest) -> None:
    """A push of 500 resources, all of them changed, that makes 1,000 chats dirty."""
    benchmark.group = f"push of 500 resources, {request.node.callspec.params['new_database']}"
    store.add_chats()
    pushes = [_resources(PUSHED, text) for text in "ab"]
    store.push(_resources(1, "c"))
    turns = iter(pushes * ROUNDS)

    benchmark.pedantic(lambda: store.push(next(turns)), rounds=ROUNDS)


class Desk:
    """A workspace whose context is watched and pushed to *send*, in *loop*."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: Path, send: Send) -> None:
        self._loop = loop
        self._file = directory / "AGENTS.md"
        self._file.write_text("0")
        self._manager = ContextManager(Sources(home=directory, working_dir=directory))
        self._pushed: asyncio.Queue[object] = asyncio.Queue()
        self._send = send
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = 0
        loop.run_until_complete(self._start())

    async def _start(self) -> None:
        async def send(what: ContextPush) -> PushAnswer:
            answer = await self._send(what)
            self._pushed.put_nowait(answer)
            return answer

        self._manager.mark_ready()
        self._tasks = [
            asyncio.ensure_future(self._manager.run()),
            asyncio.ensure_future(Pusher(self._manager, send).run()),
        ]
        await self._pushed.get()

    def change(self) -> None:
        """Save the file, and wait until what came of it was pushed; every other time it is as it was."""
        self._turn += 1
        self._file.write_text(str(self._turn % 2))
        self._loop.run_until_complete(self._pushed.get())

    def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))


def test_change_to_push_ours(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """From a save to the moment that the push leaves: 250 ms of it are the wait for quiet."""
    benchmark.group = "change to push"
    loop = asyncio.new_event_loop()

    async def send(_: ContextPush) -> PushAnswer:
        return PushAnswer(accepted=True)

    desk = Desk(loop, tmp_path, send)
    benchmark.pedantic(desk.change, rounds=ROUNDS)
    desk.close()
    loop.close()


@pytest.mark.parametrize("end", ["pinned", "dirty"])
def test_change_to_row_ours(
    benchmark: BenchmarkFixture, store: Store, request: pytest.FixtureRequest, tmp_path: Path, end: str
) -> None:
    """From a save until the rows of 1,000 chats are committed: with a first pin, or dirty and clean again."""
    benchmark.group = f"change until 1,000 chats are {end}, {request.node.callspec.params['new_database']}"
    store.add_chats()

    async def send(what: ContextPush) -> PushAnswer:
        taken = await store.bench.store.write(pins.take_push, store.agent_id, what, now=store.bench.now())
        assert len(taken.chats) == CHATS
        return PushAnswer(accepted=taken.problem is None)

    desk = Desk(store.loop, tmp_path, send)
    benchmark.pedantic(desk.change, setup=store.forget if end == "pinned" else None, rounds=ROUNDS)
    desk.close()

    pinned, dirty = store.count()
    assert (pinned, dirty) == (CHATS, 0)
