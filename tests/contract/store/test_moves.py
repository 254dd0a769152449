"""Edits, the queue, the client's tools, archives: what they do to the rows beside the state."""

import asyncio
import uuid
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.constants import REQUIRES_ACTION_S
from chatd.errors import BadRequest, NoModel, NotFound, ResultsMismatch, TransitionNotAllowed
from chatd.model_wire import ModelConfig
from chatd.state import ChatState
from chatd.store import catalog_rows, queries, schema
from chatd.store.machine import ChatTx
from chatd.wire import ToolResultPart
from tests.contract.store.bench import CLIENT_TOOL, START, Bench, answer, ask_client, result, text

CLIENT_ID = UUID(int=55)


async def ids(bench: Bench, chat_id: UUID) -> list[int]:
    """Ids of the visible history."""
    return [message.id for message in await bench.messages(chat_id)]


async def test_an_edit_takes_everything_behind_out_of_sight_and_keeps_it(bench: Bench) -> None:
    """Spec 1.2, 2.2: soft delete of the target and all after it, of the queue; the rows stay for billing."""
    chat_id = await bench.chat_in("W")
    await bench.send(chat_id, "second")
    await bench.commit(chat_id, answer("reply", "a"))
    await bench.send(chat_id, "waits")
    first, *rest = await ids(bench, chat_id)
    edited = await bench.store.transition(chat_id, lambda tx: tx.edit(rest[0], text("better")))
    row = await bench.row(chat_id)
    table = schema.messages
    stored = await bench.store.read(
        lambda c: c.execute(
            sa.select(table.c.id, table.c.deleted, table.c.revision).order_by(table.c.id)
        ).all()
    )

    assert await bench.texts(chat_id) == ["user:hello", "user:better"]
    assert edited.deleted_ids == rest
    assert [message.content for message in edited.messages] == [text("better")]
    assert (await bench.queue(chat_id), await bench.state(chat_id)) == ([], ChatState.R0)
    assert [(number, deleted) for number, deleted, _ in stored[:3]] == [
        (first, False),
        *((number, True) for number in rest),
    ]
    assert {revision for _, deleted, revision in stored if deleted} == {row["history_version"]}
    assert (row["worker_id"], row["runner_id"]) == (None, None)


async def test_only_a_visible_user_message_of_the_chat_is_edited(bench: Bench) -> None:
    """Spec 3: 400 for another role, 404 for one of another chat or one that is gone."""
    chat, other = await bench.create(), await bench.create()
    await bench.commit(chat.id, answer())
    first, reply = await ids(bench, chat.id)
    (foreign,) = await ids(bench, other.id)
    before = await bench.dump(chat.id)
    for message_id, error in ((reply, BadRequest), (foreign, NotFound), (10**9, NotFound)):
        with pytest.raises(error):
            await bench.store.transition(chat.id, lambda tx, n=message_id: tx.edit(n, text("x")))
        assert await bench.dump(chat.id) == before
    await bench.store.transition(chat.id, lambda tx: tx.edit(first, text("x")))
    with pytest.raises(NotFound):
        await bench.store.transition(chat.id, lambda tx: tx.edit(first, text("y")))


async def test_a_snapshot_after_an_edit_is_the_whole_history(bench: Bench) -> None:
    """Spec 5.3: a deleted row that the watcher may show asks for a reset."""
    chat = await bench.create()
    await bench.commit(chat.id, answer("old"))
    first, old = await ids(bench, chat.id)
    seen = (await bench.row(chat.id))["history_version"]
    await bench.store.transition(chat.id, lambda tx: tx.edit(first, text("new")))

    async def snapshot(history: int, after_id: int = 0) -> tuple[bool, int]:
        found = await bench.store.read(queries.snapshot_since, chat.id, history, after_id=after_id)
        return found.is_reset, len(found.messages)

    assert await snapshot(seen) == (True, 1)
    assert await snapshot(0, after_id=old) == (True, 1)
    assert await snapshot(0, after_id=first - 1) == (False, 1)
    assert await snapshot(0) == (False, 1)
    assert await snapshot((await bench.row(chat.id))["history_version"]) == (False, 0)
    # Who has what came in its place was told: otherwise each connection of a client with
    # little patience would begin at the beginning, and none would get to the end.
    await bench.commit(chat.id, answer("again"))
    *_, replaced, again = await ids(bench, chat.id)
    assert await snapshot(0, after_id=replaced) == (False, 2)
    assert await snapshot(0, after_id=again) == (False, 2)
    # One that showed both versions' numbers never lived, but nor may it miss the reset.
    assert await snapshot(0, after_id=old) == (True, 2)


@pytest.mark.past_bug(4)
async def test_a_promoted_message_is_next_and_keeps_its_id(bench: Bench) -> None:
    """Spec 1.2, 9.4: reorder and interrupt; the partial answer comes first, ids stay."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    sent = [(await bench.send(chat.id, value)).queued for value in ("a", "b", "c")]
    await bench.store.transition(chat.id, lambda tx: tx.promote_queued(sent[2].id))

    assert await bench.queue(chat.id) == ["c", "a", "b"]
    queued = await bench.store.read(queries.list_queued, chat.id)
    assert [row.id for row in queued] == [sent[2].id, sent[0].id, sent[1].id]
    assert await bench.state(chat.id) is ChatState.I1
    await bench.store.transition(chat.id, lambda tx: tx.finish_interruption([answer("half")]))
    assert await bench.texts(chat.id) == ["user:hello", "assistant:half", "user:c"]


async def test_what_steers_is_taken_in_and_the_rest_waits(bench: Bench) -> None:
    """Issue: in the queue until then, editable like others; in order, the turn goes on."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    steering = (False, True, True, True)
    ids = []
    for number, steer in enumerate(steering):
        send = partial(ChatTx.send, content=text(str(number)), created_by=bench.user_id, steer=steer)
        sent = await bench.store.transition(chat.id, send)
        ids.append(sent.queued.id if sent.queued else 0)
    await bench.store.transition(chat.id, lambda tx: tx.delete_queued(ids[2]))
    queued = await bench.store.read(queries.list_queued, chat.id)
    before = await bench.row(chat.id)
    taken = await bench.store.transition(chat.id, lambda tx: tx.has_steered() and tx.take_steered())
    after = await bench.row(chat.id)

    assert [row.steer for row in queued] == [False, True, True]
    assert len(taken or []) == 2
    assert await bench.texts(chat.id) == ["user:hello", "user:1", "user:3"]
    assert (await bench.queue(chat.id), await bench.state(chat.id)) == (["0"], ChatState.R1)
    assert (after["runner_id"], after["generation_attempt"]) == (before["runner_id"], 0)
    assert not await bench.store.transition(chat.id, lambda tx: tx.has_steered())


async def test_what_steers_waits_like_others_once_the_turn_is_over(bench: Bench) -> None:
    """Issue: it falls back to the queue; an idle chat takes it at once."""
    chat = await bench.create()
    send = partial(ChatTx.send, content=text("x"), created_by=bench.user_id, steer=True)
    await bench.store.transition(chat.id, send)
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    sent = await bench.store.transition(chat.id, send)

    assert sent.queued is None
    assert await bench.texts(chat.id) == ["user:hello", "user:x", "user:x"]


@pytest.mark.parametrize("move", ["delete_queued", "promote_queued"])
async def test_a_message_that_waits_no_more_is_not_found(bench: Bench, move: str) -> None:
    """Spec 3: 404; another chat's neither."""
    chat_id, other = await bench.chat_in("R1"), await bench.chat_in("R1")
    (foreign, *_) = await bench.store.read(queries.list_queued, other)
    before = await bench.dump(chat_id)
    with pytest.raises(NotFound):
        await bench.store.transition(chat_id, lambda tx: getattr(tx, move)(foreign.id))

    assert await bench.dump(chat_id) == before


async def test_a_promoted_message_whose_model_is_gone_gets_the_default(bench: Bench) -> None:
    """Spec 1.2, rule 5: the queued row's model is checked again at promotion."""
    gone = ModelConfig(id=CLIENT_ID, provider="openai", model="g", display_name="G")
    default = ModelConfig(id=bench.config_id, provider="openai", model="m", display_name="M", is_default=True)
    await bench.store.write(catalog_rows.save_configs, [gone, default], now=START)
    chat = await bench.create()

    def send(tx: ChatTx) -> None:
        tx.send(text("next"), created_by=bench.user_id, model_config_id=gone.id)

    await bench.store.transition(chat.id, send)
    await bench.store.write(catalog_rows.save_configs, [default], now=START)
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())

    assert (await bench.row(chat.id))["last_model_config_id"] == default.id
    assert (await bench.messages(chat.id))[-1].model_config_id == default.id


async def waiting_chat(bench: Bench, *calls: str) -> UUID:
    """A chat whose client is to answer *calls*."""
    chat = await bench.create(dynamic_tools=(CLIENT_TOOL,))
    await bench.acquire(chat.id)
    await bench.commit(chat.id, ask_client(*calls))
    await bench.store.transition(chat.id, lambda tx: tx.enter_requires_action())
    return chat.id


async def test_waiting_for_the_client_needs_no_runner_until_the_deadline(bench: Bench) -> None:
    """Spec 1.2, 8: five minutes, by the store's clock."""
    chat_id = await waiting_chat(bench, "a")
    row = await bench.row(chat_id)
    lease, limit = timedelta(seconds=60), timedelta(seconds=REQUIRES_ACTION_S)

    async def runnable(after: timedelta) -> list[object]:
        return list(
            await bench.store.read(queries.runnable_chats, now=bench.time + after, lease=lease, limit=9)
        )

    assert (row["worker_id"], row["requires_action_deadline_at"]) == (None, bench.time + limit)
    assert await runnable(timedelta()) == []
    assert await runnable(limit) == [chat_id]


@pytest.mark.parametrize("given", [[], ["a"], ["a", "b", "c"], ["a", "a"], ["a", "b", "b"], ["b", "x"]])
async def test_the_client_must_answer_exactly_its_calls(bench: Bench, given: list[str]) -> None:
    """Spec 1.2: no duplicate, missing or unexpected id."""
    chat_id = await waiting_chat(bench, "a", "b")
    before = await bench.dump(chat_id)
    results = [result(call).content[0] for call in given]
    with pytest.raises(ResultsMismatch):
        await bench.store.transition(chat_id, lambda tx: tx.complete_requires_action(results))

    assert await bench.dump(chat_id) == before


async def test_the_clients_answers_are_stored_in_call_order_and_the_turn_goes_on(bench: Bench) -> None:
    """Spec 4.4: one row a result, in the order of the calls, named as they were called."""
    chat_id = await waiting_chat(bench, "a", "b")
    results = [ToolResultPart(tool_call_id=name, tool_name="", result={"n": name}) for name in ("b", "a")]
    bench.notices.clear()
    rows = await bench.store.transition(chat_id, lambda tx: tx.complete_requires_action(results))

    assert [message.content[0].tool_name for message in rows] == ["client", "client"]  # type: ignore[union-attr]
    assert await bench.texts(chat_id) == ["user:hello", "assistant:a", "tool:a", "tool:b"]
    assert [notice.is_runnable for notice in bench.notices] == [True]


@pytest.mark.parametrize("how", ["interrupt", "cancel_requires_action", "send", "edit"])
async def test_every_other_way_out_answers_the_clients_calls_by_an_error(bench: Bench, how: str) -> None:
    """Spec 1.2, rule 1: leaving A otherwise inserts a synthetic result for each pending call."""
    chat_id = await waiting_chat(bench, "a", "b")

    def leave(tx: ChatTx) -> None:
        if how == "send":
            tx.send(text("stop"), created_by=bench.user_id, interrupt=True)
        elif how == "edit":
            tx.edit(first, text("anew"))
        else:
            getattr(tx, how)()

    (first, *_) = await ids(bench, chat_id)
    await bench.store.transition(chat_id, leave)
    answered = ["user:hello", "assistant:a", "tool:a!", "tool:b!"]
    row = await bench.row(chat_id)

    assert await bench.texts(chat_id) == (["user:anew"] if how == "edit" else answered)
    assert (row["status"], row["requires_action_deadline_at"]) == ("running", None)


async def test_a_compaction_is_asked_for_once(bench: Bench) -> None:
    """Spec 1.2, rule 4: ownership, archiving and queued sends carry the marker, any other write clears it."""
    chat_id = await bench.chat_in("W")
    await bench.store.transition(chat_id, lambda tx: tx.request_compaction())
    await bench.acquire(chat_id)
    await bench.send(chat_id, "waits")
    kept = (await bench.row(chat_id))["compaction_requested_at"]
    await bench.store.transition(chat_id, lambda tx: tx.record_attempt())

    assert kept is not None
    assert (await bench.row(chat_id))["compaction_requested_at"] is None


async def test_a_cleared_context_hides_the_past_from_the_model_alone(bench: Bench) -> None:
    """Spec 2.2, 4.1: the newest compressed row of the model's is where its prompt begins."""
    chat_id = await bench.chat_in("W")
    await bench.store.transition(chat_id, lambda tx: tx.clear_context())
    await bench.send(chat_id, "after")
    page = await bench.store.read(queries.list_messages, chat_id, limit=50)
    texts = await bench.texts(chat_id)

    assert (len(texts), texts[-1]) == (2, "user:after")
    assert texts[0].startswith("user:The user cleared")
    assert [message.role for message in page.messages] == ["user", "assistant", "tool", "user"]


async def test_a_family_is_archived_whole_or_not_at_all(bench: Bench) -> None:
    """Spec 3: root and descendants in one transaction; one that can't move aborts all."""
    root = await bench.create()
    child = await bench.create(parent=root)

    async def states() -> list[str]:
        return [(await bench.state(chat_id)).value for chat_id in (root.id, child.id)]

    await bench.store.transition(root.id, lambda tx: tx.finish_turn())
    bench.notices.clear()
    with pytest.raises(TransitionNotAllowed):
        await bench.store.transition_family(root.id, lambda tx: tx.archive())
    assert (await states(), bench.notices) == (["W", "R0"], [])
    await bench.store.transition(child.id, lambda tx: tx.finish_turn())
    await bench.store.transition_family(root.id, lambda tx: tx.archive())
    assert await states() == ["XW", "XW"]
    with pytest.raises(TransitionNotAllowed):
        await bench.create(parent=root)
    await bench.store.transition_family(root.id, lambda tx: tx.unarchive())
    assert await states() == ["W", "W"]


async def test_concurrent_writers_of_one_chat_take_turns(bench: Bench) -> None:
    """Ours: row locks; every send is there once, each with a snapshot of its own."""
    chat = await bench.create()
    await asyncio.gather(*(bench.send(chat.id, str(number)) for number in range(20)))
    row = await bench.row(chat.id)

    assert sorted(map(int, await bench.queue(chat.id))) == list(range(20))
    assert row["snapshot_version"] == row["queue_version"] == 21


async def test_each_runnable_chat_is_acquired_once(bench: Bench) -> None:
    """BUGS, database 63: however many workers look at once."""
    chats = [await bench.create() for _ in range(10)]
    taken: list[object] = []

    async def worker() -> None:
        lease = timedelta(seconds=60)
        found = await bench.store.read(queries.runnable_chats, now=bench.time, lease=lease, limit=10)
        taken.extend([chat_id for chat_id in found if await bench.store.transition(chat_id, take)])

    def take(tx: ChatTx) -> bool:
        if tx["runner_id"] is not None:
            return False
        tx.acquire(worker_id=CLIENT_ID, runner_id=uuid.uuid4())
        return True

    await asyncio.gather(*(worker() for _ in range(8)))

    assert sorted(map(str, taken)) == sorted(str(chat.id) for chat in chats)


@pytest.mark.past_bug(3)
async def test_a_promotion_that_fails_loses_nothing(bench: Bench) -> None:
    """Spec 9.3: what leaves the queue enters the history in the same transaction, or stays."""
    chat_id = await bench.chat_in("E1")
    gone = uuid.uuid4()
    configs, queued = schema.model_configs, schema.queued_messages
    await bench.execute(queued.update().where(queued.c.chat_id == chat_id).values(model_config_id=gone))
    await bench.execute(configs.update().values(is_default=False))
    before = await bench.dump(chat_id)
    first, *_ = await bench.store.read(queries.list_queued, chat_id)
    with pytest.raises(NoModel):
        await bench.store.transition(chat_id, lambda tx: tx.promote_queued(first.id))

    assert await bench.dump(chat_id) == before
    await bench.execute(configs.update().values(is_default=True))
    await bench.store.transition(chat_id, lambda tx: tx.promote_queued(first.id))
    assert (await bench.texts(chat_id))[-1] == "user:q0"


@pytest.mark.parametrize("content", [[{"type": "no such part"}], [1], {"a": "b"}])
async def test_a_tool_row_that_cannot_be_read_answers_nothing(bench: Bench, content: object) -> None:
    """Spec 1.2, rule 2: it is skipped, not fatal; the call that it belonged to gets a synthetic result."""
    chat = await bench.create()
    await bench.commit(chat.id, answer("look", "a"), result("a"))
    table = schema.messages
    await bench.execute(table.update().where(table.c.role == "tool").values(content=content))
    rows = await bench.store.transition(chat.id, lambda tx: tx.finish_turn())

    assert [message.content[0].tool_call_id for message in rows] == ["a"]  # type: ignore[union-attr]
    assert await bench.state(chat.id) == "W"
