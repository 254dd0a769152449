"""What transitions do to messages, the queue, errors and ownership."""

import asyncio
import threading
import uuid

import pytest
import sqlalchemy as sa

from chatd.errors import LeaseLost, NotFound, QueueFull, TransitionNotAllowed
from chatd.state import ChatState
from chatd.store import queries, schema
from chatd.store.machine import MAX_QUEUED, ChatTx
from chatd.store.rows import NewFile, NewMessage
from chatd.wire import ToolCallPart, ToolResultPart, Usage
from tests.contract.store.bench import ERROR, RUNNER, WORKER, Bench, answer, fence, result, retry, text


async def test_a_send_over_open_calls_answers_them_first(bench: Bench) -> None:
    """Spec 1.2, rule 2: synthetic error results, one a row, before the user's row."""
    chat_id = await bench.chat_in("R0")
    await bench.commit(chat_id, answer("thinking", "a", "b", "c"), result("b"))
    await bench.store.transition(chat_id, lambda tx: tx.finish_error(ERROR))
    sent = await bench.send(chat_id, "next")

    expected = ["user:hello", "assistant:thinking", "tool:b", "tool:a!", "tool:c!", "user:next"]
    assert await bench.texts(chat_id) == expected
    assert [message.id for message in sent.messages] == [m.id for m in await bench.messages(chat_id)][3:]
    assert sent.queued is None


async def test_calls_of_the_vendor_get_no_synthetic_result(bench: Bench) -> None:
    """Spec 1.2, rule 2: provider-executed calls are never answered by us."""
    chat_id = await bench.chat_in("R0")
    search = ToolCallPart(tool_call_id="s", tool_name="web_search", provider_executed=True)
    await bench.commit(chat_id, NewMessage(role="assistant", content=(search, *text("found"))))
    await bench.store.transition(chat_id, lambda tx: tx.finish_turn())
    await bench.send(chat_id, "next")

    assert await bench.texts(chat_id) == ["user:hello", "assistant:s", "user:next"]


async def test_the_queue_is_first_in_first_out_over_turns(bench: Bench) -> None:
    """Spec 1.2: a turn that ends with a backlog promotes its head at once."""
    chat = await bench.create()
    runner_id = await bench.acquire(chat.id)
    for value in ("one", "two", "three"):
        sent = await bench.send(chat.id, value)
        assert (sent.messages, sent.queued.content) == ([], text(value))
    promoted = []
    for _ in range(3):
        await bench.commit(chat.id, answer())
        promoted += await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
        assert (await bench.row(chat.id))["runner_id"] == runner_id

    assert [message.content for message in promoted] == [text("one"), text("two"), text("three")]
    assert (await bench.queue(chat.id), await bench.state(chat.id)) == ([], ChatState.R0)
    await bench.commit(chat.id, answer())
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    assert await bench.state(chat.id) is ChatState.W


async def test_a_send_from_an_error_with_a_backlog_keeps_the_order(bench: Bench) -> None:
    """Spec 1.2: append to the tail, pop the old head into history; both are returned."""
    chat_id = await bench.chat_in("E1")
    sent = await bench.send(chat_id, "new")

    assert [message.content for message in sent.messages] == [text("q0")]
    assert sent.queued.content == text("new")
    assert await bench.queue(chat_id) == ["q1", "new"]
    assert (await bench.row(chat_id))["last_error"] is None


@pytest.mark.parametrize("interrupt", [False, True])
async def test_a_full_queue_refuses_and_changes_nothing(bench: Bench, *, interrupt: bool) -> None:
    """Spec 8: 20 messages wait; one more is refused."""
    chat = await bench.create()
    for number in range(MAX_QUEUED):
        await bench.send(chat.id, str(number))
    before = await bench.dump(chat.id)
    with pytest.raises(QueueFull):
        await bench.send(chat.id, "one too many", interrupt=interrupt)

    assert await bench.dump(chat.id) == before


async def test_a_chat_in_error_with_a_full_queue_can_go_on(bench: Bench) -> None:
    """Ours: the send itself makes room, so it must not be refused: nothing else leads out of E1."""
    chat = await bench.create()
    for number in range(MAX_QUEUED):
        await bench.send(chat.id, str(number))
    await bench.store.transition(chat.id, lambda tx: tx.finish_error(ERROR))
    sent = await bench.send(chat.id, "again")

    assert [message.content for message in sent.messages] == [text("0")]
    assert sent.queued.content == text("again")
    assert await bench.queue(chat.id) == [*map(str, range(1, MAX_QUEUED)), "again"]


async def test_an_interruption_keeps_the_partial_before_the_promoted_message(bench: Bench) -> None:
    """Spec 6.5, 9.2: partial, cancelled calls, then the queued message, in one transaction."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    await bench.send(chat.id, "stop that", interrupt=True)
    assert await bench.state(chat.id) is ChatState.I1
    partial = [answer("half", "a", "b"), result("b")]
    rows = await bench.store.transition(chat.id, lambda tx: tx.finish_interruption(partial))

    assert await bench.texts(chat.id) == [
        "user:hello",
        "assistant:half",
        "tool:b",
        "tool:a!",
        "user:stop that",
    ]
    assert [row.id for row in rows] == [m.id for m in await bench.messages(chat.id)][1:]
    assert await bench.state(chat.id) is ChatState.R0


async def test_an_interruption_without_partial_closes_committed_calls(bench: Bench) -> None:
    """Spec 6.5: no buffer, no partial; committed but unanswered calls are cancelled."""
    chat_id = await bench.chat_in("R0")
    await bench.commit(chat_id, answer("calls", "a"))
    await bench.store.transition(chat_id, lambda tx: tx.interrupt())
    await bench.store.transition(chat_id, lambda tx: tx.finish_interruption([]))

    assert await bench.texts(chat_id) == ["user:hello", "assistant:calls", "tool:a!"]
    assert await bench.state(chat_id) is ChatState.W


@pytest.mark.parametrize("end", ["finish_turn", "finish_error", "finish_interruption"])
async def test_a_chat_that_comes_to_rest_is_nobody_s(bench: Bench, end: str) -> None:
    """Ours: ownership and heartbeats end with the turn, and a stale retry is not announced for ever."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    await bench.store.transition(chat.id, lambda tx: tx.record_attempt())
    await bench.store.transition(chat.id, lambda tx: tx.record_retry(retry()))
    ends = {
        "finish_turn": lambda tx: tx.finish_turn(),
        "finish_error": lambda tx: tx.finish_error(ERROR),
        "finish_interruption": lambda tx: tx.finish_interruption([]),
    }
    if end == "finish_interruption":
        await bench.store.transition(chat.id, lambda tx: tx.interrupt())
    await bench.store.transition(chat.id, ends[end])
    row = await bench.row(chat.id)
    beats = await bench.store.read(lambda c: c.execute(sa.select(schema.heartbeats)).all())

    assert (row["worker_id"], row["runner_id"], row["retry_state"], beats) == (None, None, None, [])
    assert row["retry_state_version"] == row["snapshot_version"]
    assert row["last_error"] == (ERROR.model_dump(exclude_none=True) if end == "finish_error" else None)


async def test_attempts_count_within_a_step_and_clear_the_retry(bench: Bench) -> None:
    """Spec 2.2, 2.3: an attempt nulls the retry; a change of history sets attempts to 0."""
    chat_id = await bench.chat_in("R0")
    first = await bench.store.transition(chat_id, lambda tx: tx.record_attempt())
    await bench.store.transition(chat_id, lambda tx: tx.record_retry(retry()))
    waiting = await bench.row(chat_id)
    second = await bench.store.transition(chat_id, lambda tx: tx.record_attempt())
    trying = await bench.row(chat_id)
    await bench.commit(chat_id, answer())

    assert (first, second) == (1, 2)
    assert waiting["retry_state"] == retry().model_dump(mode="json")
    assert (trying["retry_state"], trying["retry_state_version"]) == (None, trying["snapshot_version"])
    assert (await bench.row(chat_id))["generation_attempt"] == 0


@pytest.mark.parametrize(
    "changes",
    [{"runner_id": uuid.UUID(int=5)}, {"history_version": 99}, {"status": "interrupting"}],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_fence_that_does_not_fit_writes_nothing(bench: Bench, changes: dict[str, object]) -> None:
    """Spec 6.2: runner, status and history are re-checked under the lock."""
    chat_id = await bench.chat_in("R0")
    before = await bench.dump(chat_id)

    def fenced(tx: ChatTx) -> None:
        tx.commit_step([answer()])
        tx.require(fence(before[0], **changes))  # type: ignore[arg-type]

    with pytest.raises(LeaseLost):
        await bench.store.transition(chat_id, fenced)

    assert await bench.dump(chat_id) == before
    await bench.store.transition(chat_id, lambda tx: tx.require(fence(before[0])))  # type: ignore[arg-type]


async def test_acquire_and_abandon_change_no_execution_state(bench: Bench) -> None:
    """Spec 1.1: ownership is orthogonal; acquire overwrites blindly and beats once."""
    chat = await bench.create()
    await bench.acquire(chat.id)
    second = await bench.acquire(chat.id)
    owned = await bench.row(chat.id)
    await bench.store.transition(chat.id, lambda tx: tx.abandon())
    free = await bench.row(chat.id)

    assert (owned["worker_id"], owned["runner_id"]) == (WORKER, second)
    assert (free["worker_id"], free["runner_id"]) == (None, None)
    assert await bench.state(chat.id) is ChatState.R0
    assert [owned["history_version"], free["history_version"]] == [1, 1]
    assert [notice.is_runnable for notice in bench.notices] == [True, False, False, True]


async def test_release_all_takes_every_lease(bench: Bench) -> None:
    """Ours: the sole owner of a database makes every busy chat acquirable at its start."""
    busy = [await bench.chat_in(state) for state in ("R0", "I1")]
    await bench.chat_in("W")
    released = await bench.store.release_all()
    limits = {"now": bench.now(), "lease": bench.now() - bench.time, "limit": 10}
    found = await bench.store.read(queries.runnable_chats, **limits)

    assert released == 2
    assert set(found) == set(busy)
    assert found[0] == busy[1]
    assert (await bench.row(busy[0]))["runner_id"] is None != RUNNER


async def test_a_spawn_key_gives_the_same_chat(bench: Bench) -> None:
    """Ours: a repeated spawn finds its child; nothing is created, not even concurrently."""
    parent = await bench.create()
    spawns = [bench.create(f"task {n}", parent=parent, spawn_key="p/1/c") for n in range(5)]
    children = await asyncio.gather(*spawns)

    (child_id,) = {child.id for child in children}
    # Whichever came first.
    (text,) = await bench.texts(child_id)
    assert text in {f"user:task {n}" for n in range(5)}
    assert {(child.parent_chat_id, child.root_chat_id) for child in children} == {(parent.id, parent.id)}


async def test_a_chat_that_was_stopped_starts_no_other(bench: Bench) -> None:
    """
    Ours: a stop takes all children with it, so none may come after it looked for them.

    Found by the storm of agents: a spawn that overtook the stop left an agent at work for ever.
    """
    parent = await bench.create()
    await bench.acquire(parent.id)
    early = await bench.create("early", parent=parent, spawn_key="p/1/a")
    await bench.store.transition(parent.id, lambda tx: tx.interrupt())
    with pytest.raises(TransitionNotAllowed, match="was stopped"):
        await bench.create("late", parent=parent, spawn_key="p/1/b")
    with pytest.raises(TransitionNotAllowed, match="was stopped"):
        await bench.create("early", parent=parent, spawn_key="p/1/a")

    told = await bench.store.read(queries.get_chat, parent.id, user_id=bench.user_id)
    assert [child.id for child in told.children] == [early.id]


async def test_files_are_stored_with_their_message_or_not_at_all(bench: Bench) -> None:
    """Ours: one transaction; a file belongs to the chat's owner."""
    chat = await bench.create()
    file = NewFile(id=uuid.uuid4(), media_type="image/png", data=b"\x00png", name="s.png")
    lost = NewFile(id=uuid.uuid4(), media_type="image/png", data=b"x")
    part = ToolResultPart(tool_call_id="c", tool_name="t", result={"file_id": str(file.id)}, is_media=True)
    await bench.commit(chat.id, NewMessage(role="tool", content=(part,), files=(file,)))

    def fails(tx: ChatTx) -> None:
        tx.commit_step([NewMessage(role="tool", content=(part,), files=(lost,))])
        raise LeaseLost

    with pytest.raises(LeaseLost):
        await bench.store.transition(chat.id, fails)
    row = await bench.store.read(queries.get_file, file.id, user_id=bench.user_id)

    assert (row["bytes"], row["chat_id"], row["media_type"]) == (b"\x00png", chat.id, "image/png")
    stored = await bench.store.read(queries.files_by_id, [file.id, lost.id])
    assert stored == {file.id: (file.media_type, b"\x00png")}
    for file_id, owner_id in ((file.id, uuid.uuid4()), (lost.id, bench.user_id)):
        with pytest.raises(NotFound):
            await bench.store.read(queries.get_file, file_id, user_id=owner_id)


async def test_the_last_model_and_the_tokens_are_kept(bench: Bench) -> None:
    """Spec 2.2: the batch sets the chat's model; zero is read as not reported."""
    chat = await bench.create()
    usage = Usage(input_tokens=3, output_tokens=0)
    message = NewMessage(role="assistant", content=text("x"), usage=usage, model_config_id=bench.config_id)
    await bench.commit(chat.id, message)
    stored = (await bench.messages(chat.id))[-1]

    assert stored.usage == Usage(input_tokens=3)
    assert (stored.model_config_id, (await bench.row(chat.id))["last_model_config_id"]) == (
        bench.config_id,
        bench.config_id,
    )


async def test_a_cancelled_transition_is_whole_and_published(bench: Bench) -> None:
    """Ours: the transaction ends one way before the cancellation goes on; what is committed is told."""
    chat = await bench.create()
    bench.notices.clear()
    entered, gate = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(tx: ChatTx) -> None:
        loop.call_soon_threadsafe(entered.set)
        assert gate.wait(5)
        tx.interrupt()

    task = asyncio.ensure_future(bench.store.transition(chat.id, slow))
    await entered.wait()
    task.cancel()
    loop.call_soon(gate.set)
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await bench.state(chat.id) is ChatState.I0
    assert [notice.snapshot_version for notice in bench.notices] == [2]


async def test_an_unknown_chat_is_not_found(bench: Bench) -> None:
    """Ours: and nobody is told."""
    with pytest.raises(NotFound):
        await bench.store.transition(uuid.uuid4(), lambda tx: tx.interrupt())

    assert bench.notices == []


@pytest.mark.parametrize("value", ["\x00", "a\x00b", "😀", "\ufffe\U0010ffff", "\u2028\x1b"])
async def test_odd_characters_survive_storage(bench: Bench, value: str) -> None:
    """Spec 4.1: NUL and astral characters come back as they went in, in history, queue and title."""
    chat = await bench.create(value)
    await bench.send(chat.id, value)
    await bench.execute(schema.chats.update().values(title=value))

    assert await bench.texts(chat.id) == [f"user:{value}"]
    assert await bench.queue(chat.id) == [value]
    assert (await bench.row(chat.id))["title"] == value
