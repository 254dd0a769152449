"""Queries: what is visible to whom, in which order, and which chats want a runner."""

import uuid
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from chatd.errors import NotFound
from chatd.state.why import explain
from chatd.store import queries, schema
from chatd.store.facts import read_facts
from chatd.store.ledger import claim_call
from chatd.store.queries import ChatFilter
from chatd.store.rows import NewMessage
from tests.contract.store.bench import START, Bench, answer, result, text


async def runnable(bench: Bench, lease_s: float = 60.0, limit: int = 10) -> list[UUID]:
    """Chats that want a runner."""
    lease = timedelta(seconds=lease_s)
    return await bench.store.read(queries.runnable_chats, now=bench.time, lease=lease, limit=limit)


async def test_pages_are_ascending_and_say_whether_more_follow(bench: Bench) -> None:
    """Spec 3: after_id gives ascending pages; has_more from limit + 1."""
    chat = await bench.create("0")
    for number in range(1, 5):
        await bench.commit(chat.id, answer(str(number)))
    ids = [message.id for message in await bench.messages(chat.id)]

    async def page(after_id: int, limit: int) -> tuple[list[int], bool]:
        found = await bench.store.read(queries.list_messages, chat.id, after_id=after_id, limit=limit)
        return [message.id for message in found.messages], found.has_more

    assert await page(0, 2) == (ids[:2], True)
    assert await page(ids[1], 3) == (ids[2:], False)
    assert await page(ids[1], 2) == (ids[2:4], True)
    assert await page(ids[-1], 5) == ([], False)


async def test_people_and_models_see_their_own_messages(bench: Bench) -> None:
    """Spec 2.2: visibility model|both for prompts, user|both for clients; deleted rows for nobody."""
    chat = await bench.create("both")
    for visibility in ("user", "model"):
        message = NewMessage(role="assistant", content=text(visibility), visibility=visibility)  # type: ignore[arg-type]
        await bench.commit(chat.id, message)
    await bench.commit(chat.id, answer("deleted"))
    newest = (await bench.messages(chat.id))[-1].id
    gone = schema.messages.update().where(schema.messages.c.id == newest).values(deleted=True)
    await bench.execute(gone)
    page = await bench.store.read(queries.list_messages, chat.id, after_id=0, limit=50)
    snapshot = await bench.store.read(queries.snapshot_since, chat.id, 0)

    assert [message.content for message in page.messages] == [text("both"), text("user")]
    assert page.messages == snapshot.messages
    assert await bench.texts(chat.id) == ["user:both", "assistant:model"]


async def test_a_snapshot_holds_what_was_revised_since(bench: Bench) -> None:
    """Spec 5.3: rows with a revision above the local history, and the whole queue."""
    chat = await bench.create("first")
    await bench.send(chat.id, "waits")
    await bench.commit(chat.id, answer("second"))
    row = await bench.row(chat.id)
    snapshot = await bench.store.read(queries.snapshot_since, chat.id, 1)

    assert [message.content for message in snapshot.messages] == [text("second")]
    assert [queued.content for queued in snapshot.queued] == [text("waits")]
    assert dict(snapshot.row) == row
    nothing = await bench.store.read(queries.snapshot_since, chat.id, row["history_version"])
    assert nothing.messages == []


async def test_chats_are_listed_as_roots_with_children(bench: Bench) -> None:
    """Spec 3: roots only, the most recently used first; archived ones are left out."""
    old, new = await bench.create(), await bench.create()
    child = await bench.create(parent=old)
    archived = await bench.create()
    gone = schema.chats.update().where(schema.chats.c.id == archived.id).values(archived=True)
    await bench.execute(gone)
    await bench.send(old.id, "used again")
    listed = await bench.store.read(queries.list_chats, owner_id=bench.user_id)
    one = await bench.store.read(queries.list_chats, owner_id=bench.user_id, wanted=ChatFilter(limit=1))

    assert [chat.id for chat in listed] == [old.id, new.id]
    assert [[inner.id for inner in chat.children] for chat in listed] == [[child.id], []]
    assert [chat.id for chat in one] == [old.id]
    assert await bench.store.read(queries.list_chats, owner_id=uuid.uuid4()) == []


async def test_another_owner_s_chat_is_not_found(bench: Bench) -> None:
    """Spec 3: an unreadable chat is a missing one."""
    chat = await bench.create()
    child = await bench.create(parent=chat)
    mine = await bench.store.read(queries.get_chat, chat.id, user_id=bench.user_id)

    assert [inner.id for inner in mine.children] == [child.id]
    for chat_id, owner_id in ((chat.id, uuid.uuid4()), (uuid.uuid4(), bench.user_id)):
        with pytest.raises(NotFound):
            await bench.store.read(queries.get_chat, chat_id, user_id=owner_id)


@pytest.mark.parametrize(
    ("state", "is_found"),
    [
        *[("R0", True), ("R1", True), ("I0", True), ("I1", True), ("A0", True)],
        *[("W", False), ("E1", False), ("XW", False), ("XE0", False)],
    ],
)
async def test_runnable_are_the_busy_chats_without_a_live_runner(
    bench: Bench, state: str, *, is_found: bool
) -> None:
    """Spec 6.1: runnable, unarchived, no heartbeat newer than the lease for the current runner."""
    chat_id = await bench.chat_in(state)

    assert await runnable(bench) == ([chat_id] if is_found else [])


async def test_a_heartbeat_of_the_current_runner_holds_the_lease(bench: Bench) -> None:
    """Spec 6.1: another runner's heartbeat does not count, an old one neither."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    assert await runnable(bench, 60) == []
    assert await runnable(bench, 0) == [chat.id]
    other: dict[str, Any] = {"runner_id": uuid.uuid4()}
    await bench.execute(schema.heartbeats.update().values(other))
    assert await runnable(bench, 60) == [chat.id]


async def test_interrupting_chats_come_first_then_the_oldest(bench: Bench) -> None:
    """Spec 6.1: interrupting before running, oldest first, at most a batch."""
    chats = [await bench.create() for _ in range(3)]
    await bench.store.transition(chats[2].id, lambda tx: tx.interrupt())
    ids = [chat.id for chat in chats]

    assert await runnable(bench) == [ids[2], ids[0], ids[1]]
    assert await runnable(bench, limit=2) == [ids[2], ids[0]]


async def test_why_knows_lease_calls_and_children(bench: Bench) -> None:
    """Issue: whose lease, which calls and when they were handed over, which agents, how many wait."""
    chat = await bench.create()
    runner_id = await bench.acquire(chat.id)
    child = await bench.create("do", parent=chat)
    await bench.commit(chat.id, answer("x", "a", "b"))
    last = (await bench.messages(chat.id))[-1].id
    await bench.store.write(claim_call, chat.id, f"{chat.id}/{last}/a", boot_id="boot", now=START)
    await bench.send(chat.id, "next")
    facts = await bench.store.read(read_facts, chat.id)
    found = explain(facts, now=facts.last_at, lease=timedelta(minutes=5))

    assert (found.waits_for, found.state, found.queued) == ("tools", "R1", 1)
    assert [(call.tool_call_id, call.handed_over_at) for call in found.calls] == [("a", START), ("b", None)]
    assert found.lease is not None
    assert (found.lease.runner_id, found.lease.heartbeat_at is None) == (runner_id, False)
    assert [row.chat_id for row in found.children] == [child.id]
    with pytest.raises(NotFound):
        await bench.store.read(read_facts, UUID(int=1))


@pytest.mark.past_bug(19)
async def test_messages_are_in_the_order_of_their_ids_whatever_the_clock_said(bench: Bench) -> None:
    """Spec 2.2, 9.19: a later row may have an earlier time; results stay behind their calls."""
    chat = await bench.create("hello")
    await bench.commit(chat.id, answer("x", "a"), result("a"))
    table = schema.messages
    # Backwards: the first row is the youngest.
    minutes = [(row.id, START - timedelta(minutes=row.id)) for row in await bench.messages(chat.id)]
    for row_id, when in minutes:
        await bench.execute(table.update().where(table.c.id == row_id).values(created_at=when))
    page = await bench.store.read(queries.list_messages, chat.id, limit=10)
    snapshot = await bench.store.read(queries.snapshot_since, chat.id, 0)

    expected = [row_id for row_id, _ in minutes]
    assert [row.id for row in page.messages] == expected == sorted(expected)
    assert [row.id for row in await bench.messages(chat.id)] == expected
    assert [row.id for row in snapshot.messages] == expected
