"""Pins: what each event does to them, and that they are always true."""

import asyncio
import uuid
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.errors import NotFound
from chatd.store import accounts, pins, schema
from chatd.store.pinning import Pins
from chatd.wire import Chat
from context_push.wire.push import ContextPush
from context_push.wire.resources import ResourceStatus
from tests.contract.store.bench import START, Bench
from tests.contract.store.context import config, instruction, pin_problems, push, skill

OLD, NEW = instruction(text="old"), instruction(text="new")


class Pinned:
    """A bench with two agents; every look at the store checks the invariant."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.pins = Pins(bench.store)
        self.agent_id = self.other_id = UUID(int=0)

    async def prepare(self) -> None:
        """Two agents."""
        self.agent_id, self.other_id = [
            await self.bench.store.write(accounts.ensure_agent, self.bench.user_id, name, now=START)
            for name in ("one", "two")
        ]

    async def chat(self, **fields: Any) -> Chat:
        """A chat of the first agent."""
        return await self.bench.create(**({"agent_id": self.agent_id} | fields))

    async def push(self, what: ContextPush, agent_id: UUID | None = None) -> bool:
        """Push; whether it was taken."""
        answer = await self.pins.take_push(agent_id or self.agent_id, what)
        assert await self.bench.store.read(pin_problems) == []
        return answer.accepted

    async def pin(self, chat_id: UUID) -> tuple[list[str], bool]:
        """The pinned texts, and whether the chat is dirty."""
        assert await self.bench.store.read(pin_problems) == []
        pinned = await self.bench.store.read(pins.pinned_resources, chat_id)
        texts = [getattr(resource.body, "text", "") for resource in pinned]
        return texts, (await self.bench.row(chat_id))["context_dirty_since"] is not None

    async def is_pinned(self, chat_id: UUID) -> bool:
        """Whether the chat has a pin."""
        return (await self.bench.row(chat_id))["context_aggregate_hash"] is not None


@pytest.fixture
async def desk(bench: Bench) -> Pinned:
    """Two agents, no pushes."""
    desk = Pinned(bench)
    await desk.prepare()
    return desk


async def test_vector_51_versions_rise_within_one_life_of_the_daemon(desk: Pinned) -> None:
    """Spec 5.6: dropped unless initial or newer."""
    assert await desk.push(push(5, OLD))
    assert not await desk.push(push(5, NEW))
    assert not await desk.push(push(4, NEW))
    chat = await desk.chat()
    assert await desk.pin(chat.id) == (["old"], False)

    assert await desk.push(push(1, NEW, initial=True))
    assert await desk.push(push(2, OLD))
    assert await desk.pin(chat.id) == (["old"], False)


async def test_vector_52_a_change_makes_dirty_and_a_refresh_clean(desk: Pinned) -> None:
    """Spec 5.6: the old bodies stay until the refresh."""
    await desk.push(push(1, OLD))
    chat = await desk.chat()
    before = await desk.bench.row(chat.id)
    await desk.push(push(2, NEW, skill("deploy")))
    assert await desk.pin(chat.id) == (["old"], True)
    dirty_since = (await desk.bench.row(chat.id))["context_dirty_since"]
    await desk.push(push(3, skill("deploy")))
    assert (await desk.bench.row(chat.id))["context_dirty_since"] == dirty_since
    await desk.push(push(4, NEW, skill("deploy")))
    await desk.pins.refresh(chat.id)

    assert await desk.pin(chat.id) == (["new", "---\nname: deploy\n---\n"], False)
    after = await desk.bench.row(chat.id)
    assert {name: after[name] for name in ("updated_at", "snapshot_version", "history_version")} == {
        name: before[name] for name in ("updated_at", "snapshot_version", "history_version")
    }


async def test_vector_53_the_first_push_pins_what_waits_for_it(desk: Pinned) -> None:
    """Spec 5.6: pinned, clean, told after the commit; archived chats and other agents' are left alone."""
    chat, archived = await desk.chat(), await desk.chat()
    stranger = await desk.bench.create(agent_id=desk.other_id)
    await desk.bench.execute(
        schema.chats.update().where(schema.chats.c.id == archived.id).values(archived=True)
    )
    desk.bench.notices.clear()
    await desk.push(push(1, OLD, snapshot_error="half of it"))

    assert await desk.pin(chat.id) == (["old"], False)
    row = await desk.bench.row(chat.id)
    assert (row["context_error"], row["context_environment"]) == (
        "half of it",
        {"os": "Debian", "directory": "/w"},
    )
    assert [await desk.is_pinned(c.id) for c in (archived, stranger)] == [False, False]
    assert [notice.chat_id for notice in desk.bench.notices] == [chat.id]


async def test_vector_54_a_refresh_racing_a_rebind_takes_the_agent_bound_at_the_commit(desk: Pinned) -> None:
    """Spec 5.6: whichever comes last, hash and bodies are one agent's and it is the chat's."""
    await desk.push(push(1, OLD))
    await desk.push(push(1, NEW), desk.other_id)
    for _ in range(10):
        chat = await desk.chat()
        await asyncio.gather(
            desk.pins.refresh(chat.id), desk.pins.rebind(chat.id, desk.other_id), desk.pins.refresh(chat.id)
        )
        assert await desk.pin(chat.id) == (["new"], False)
        assert (await desk.bench.row(chat.id))["agent_id"] == desk.other_id


async def test_a_new_chat_is_pinned_at_once(desk: Pinned) -> None:
    """Spec 5.6: chat create; never to an empty state when nothing was pushed."""
    unpinned = await desk.chat()
    assert not await desk.is_pinned(unpinned.id)
    await desk.push(push(1))
    pinned = await desk.chat()

    assert await desk.is_pinned(pinned.id)
    assert (await desk.pin(pinned.id), await desk.pin(unpinned.id)) == (([], False), ([], False))
    assert not await desk.is_pinned((await desk.bench.create()).id)


async def test_a_sub_agent_is_pinned_as_its_parent(desk: Pinned) -> None:
    """Spec 5.6: on the same agent, be the parent's pin dirty or not; on another agent it is that one's."""
    await desk.push(push(1, OLD))
    parent = await desk.chat()
    await desk.push(push(2, NEW))
    await desk.push(push(1, skill("other")), desk.other_id)
    child = await desk.chat(parent=parent, spawn_key="a")
    stranger = await desk.chat(parent=parent, spawn_key="b", agent_id=desk.other_id)

    assert await desk.pin(child.id) == await desk.pin(parent.id) == (["old"], True)
    assert await desk.pin(stranger.id) == (["---\nname: other\n---\n"], False)


async def test_a_child_of_a_chat_that_was_put_away_knows_that_it_is_dirty(desk: Pinned) -> None:
    """Ours, found by the storm: archived chats are not marked, so the mark can't be copied from one."""
    table = schema.chats
    await desk.push(push(1, OLD))
    parent = await desk.chat()
    mine = table.update().where(table.c.id == parent.id)
    await desk.bench.execute(mine.values(archived=True))
    await desk.push(push(2, NEW))
    await desk.bench.execute(mine.values(archived=False))
    child = await desk.chat(parent=parent, spawn_key="a")

    assert (await desk.bench.row(child.id))["context_dirty_since"] is not None


async def test_a_repeated_spawn_finds_its_child_pinned(desk: Pinned) -> None:
    """Ours: the same spawn key makes nothing new, and pins nothing twice."""
    await desk.push(push(1, OLD))
    parent = await desk.chat()
    children = [await desk.chat(parent=parent, spawn_key="a") for _ in range(2)]

    assert children[0].id == children[1].id
    assert await desk.pin(children[0].id) == (["old"], False)


@pytest.mark.parametrize("agent", ["none", "silent"])
async def test_a_rebind_to_nothing_clears_the_pin(desk: Pinned, agent: str) -> None:
    """Spec 5.6: no agent, or one that never pushed: hash, error, dirty and rows go."""
    await desk.push(push(1, OLD))
    chat = await desk.chat()
    await desk.push(push(2, NEW))
    await desk.pins.rebind(chat.id, None if agent == "none" else desk.other_id)

    assert await desk.pin(chat.id) == ([], False)
    row = await desk.bench.row(chat.id)
    assert (row["context_aggregate_hash"], row["context_error"]) == (None, None)
    assert row["agent_id"] == (None if agent == "none" else desk.other_id)


async def test_a_rebind_takes_the_sub_agents_along(desk: Pinned) -> None:
    """Spec 7: a sub-agent has its parent's workspace, later too."""
    parent = await desk.chat()
    child = await desk.chat(parent=parent, spawn_key="a")
    await desk.pins.rebind(parent.id, desk.other_id)

    assert (await desk.bench.row(child.id))["agent_id"] == desk.other_id


async def test_a_rebind_pins_to_the_new_agent(desk: Pinned) -> None:
    """Requirement 002: it stops using the previous agent's resources; the binding counts as use."""
    await desk.push(push(1, OLD, skill("one")))
    await desk.push(push(7, NEW), desk.other_id)
    chat = await desk.chat()
    await desk.pins.rebind(chat.id, desk.other_id)

    assert await desk.pin(chat.id) == (["new"], False)
    assert (await desk.bench.row(chat.id))["updated_at"] > chat.updated_at
    await desk.push(push(2, NEW))
    assert await desk.pin(chat.id) == (["new"], False)


async def test_a_pin_that_fails_never_fails_the_binding(
    desk: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requirement 002: best effort. What was half written is undone, so the old pin is still whole."""
    await desk.push(push(1, OLD))
    await desk.push(push(1, NEW), desk.other_id)
    chat = await desk.chat()

    def fail(connection: sa.Connection, *_: Any) -> None:
        connection.execute(schema.chats.update().values(context_error="half"))
        connection.execute(sa.text("SELECT * FROM no_such_table"))

    monkeypatch.setattr(pins, "_pin", fail)
    await desk.pins.rebind(chat.id, desk.other_id)
    created = await desk.chat()
    monkeypatch.undo()

    assert (await desk.bench.row(chat.id))["agent_id"] == desk.other_id
    assert not await desk.is_pinned(created.id)
    pinned = await desk.bench.store.read(pins.pinned_resources, chat.id)
    assert [getattr(resource.body, "text", "") for resource in pinned] == ["old"]


async def test_an_agent_that_is_deleted_leaves_the_pin(desk: Pinned) -> None:
    """Spec 2.4: the pin outlives the workspace; a refresh then clears it."""
    await desk.push(push(1, OLD))
    chat = await desk.chat()
    await desk.bench.execute(schema.agents.delete().where(schema.agents.c.id == desk.agent_id))

    assert await desk.pin(chat.id) == (["old"], False)
    await desk.pins.refresh(chat.id)
    assert (await desk.pin(chat.id), await desk.is_pinned(chat.id)) == (([], False), False)


async def test_going_back_makes_clean(desk: Pinned) -> None:
    """Ours: dirty says that the pin differs from what the workspace has; undone, it no longer does."""
    await desk.push(push(1, OLD))
    chat = await desk.chat()
    await desk.push(push(2, NEW))
    desk.bench.notices.clear()
    await desk.push(push(3, OLD))

    assert await desk.pin(chat.id) == (["old"], False)
    assert [notice.chat_id for notice in desk.bench.notices] == [chat.id]


async def test_mcp_configurations_make_nobody_dirty(desk: Pinned) -> None:
    """Spec 5.4: left out of the drift hash; tools are live."""
    await desk.push(push(1, OLD, config("a")))
    chat = await desk.chat()
    await desk.push(push(2, OLD, config("b")))

    assert await desk.pin(chat.id) == (["old", ""] if OLD.source < "/w/." else ["", "old"], False)


async def test_what_was_pushed_is_read_back_as_it_was(desk: Pinned) -> None:
    """Ours: every field, in both tables, on both databases; stale sources go."""
    broken = skill("broken").model_copy(
        update={"status": ResourceStatus.OVERSIZE, "error": "é\ue000", "body": type(skill("x").body)()}
    )
    odd = instruction("/w/\ue000/AGENTS.md", "line\u2028\U0001f600 \ue000\ue001")
    await desk.push(push(1, NEW, skill("gone")))
    resources = sorted([odd, broken, skill("deploy", "run it")], key=lambda r: r.source)
    await desk.push(push(2, *resources))
    chat = await desk.chat()

    def by_source(found: list[Any]) -> list[Any]:
        return sorted(found, key=lambda r: r.source)

    pushed = await desk.bench.store.read(pins.agent_resources, desk.agent_id)
    assert by_source(pushed or []) == resources
    assert by_source(await desk.bench.store.read(pins.pinned_resources, chat.id)) == resources


async def test_a_failure_is_remembered_until_a_push_heals_it(desk: Pinned) -> None:
    """Spec 5.6: first-turn gate; a pin is never overwritten by it."""
    chat = await desk.chat()
    await desk.pins.record_failure(chat.id, "too slow")
    assert (await desk.bench.row(chat.id))["context_error"] == "too slow"
    await desk.push(push(1, OLD))
    await desk.pins.record_failure(chat.id, "too slow")

    assert (await desk.bench.row(chat.id))["context_error"] is None
    assert await desk.pin(chat.id) == (["old"], False)


async def test_a_late_pin_is_made_where_it_is_missing_only(desk: Pinned) -> None:
    """Spec 5.6: first turn; a chat that is pinned keeps its pin."""
    chat = await desk.chat()
    assert not pins.is_pinned(await desk.pins.pin_unpinned(chat.id))
    await desk.push(push(1, OLD))
    await desk.push(push(2, NEW))
    assert pins.is_pinned(await desk.pins.pin_unpinned(chat.id))

    assert await desk.pin(chat.id) == (["old"], True)
    for ask in (desk.pins.pin_unpinned, desk.pins.refresh):
        with pytest.raises(NotFound):
            await ask(uuid.uuid4())


async def test_many_chats_are_pinned_in_batches(desk: Pinned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: databases limit the parameters of a statement."""
    monkeypatch.setattr(pins, "BATCH", 2)
    chats = [await desk.chat() for _ in range(5)]
    desk.bench.notices.clear()
    await desk.push(push(1, OLD))

    assert {notice.chat_id for notice in desk.bench.notices} == {chat.id for chat in chats}
    assert all([await desk.is_pinned(chat.id) for chat in chats])
