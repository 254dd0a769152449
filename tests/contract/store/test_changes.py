"""What a message changes of its chat: when its turn begins, not before."""

from typing import Any
from uuid import UUID

import pytest

from chatd.store import queries, schema
from chatd.store.machine import ChatTx
from chatd.wire import TurnChanges
from tests.contract.store.bench import CLIENT_TOOL, Bench, answer, ask_client, text

SERVER = UUID(int=5)
ALL = TurnChanges(plan_mode="plan", reasoning_effort="high", mcp_server_ids=(SERVER,))
CHANGED = ("plan", "high", [str(SERVER)])
PLAIN = (None, None, None)


async def settings(bench: Bench, chat_id: UUID) -> tuple[Any, ...]:
    """Plan, effort and servers of the chat."""
    row = await bench.row(chat_id)
    return row["plan_mode"], row["last_reasoning_effort"], row["mcp_server_ids"]


async def send(bench: Bench, chat_id: UUID, changes: TurnChanges, **how: bool) -> None:
    """A message with changes."""

    def apply(tx: ChatTx) -> None:
        tx.send(text("new"), created_by=bench.user_id, changes=changes, **how)

    await bench.store.transition(chat_id, apply)


async def finish(bench: Bench, chat_id: UUID) -> None:
    """End the turn."""
    await bench.store.transition(chat_id, lambda tx: tx.finish_turn())


@pytest.mark.parametrize("state", ["W", "E0"])
async def test_a_message_at_rest_changes_its_chat_at_once(bench: Bench, state: str) -> None:
    """Spec 3: plan_mode, reasoning_effort and mcp_server_ids of a send."""
    chat_id = await bench.chat_in(state)
    await send(bench, chat_id, ALL)

    assert await settings(bench, chat_id) == CHANGED
    assert (await bench.messages(chat_id))[-1].reasoning_effort == "high"


@pytest.mark.parametrize("state", ["R0", "I0", "A0"])
async def test_a_queued_message_changes_nothing_until_its_turn(bench: Bench, state: str) -> None:
    """Brief: the turn under way keeps its mode, model and effort; the next one has the message's."""
    chat_id = await bench.chat_in(state)
    await send(bench, chat_id, ALL)
    during = await settings(bench, chat_id)
    (waiting,) = await bench.store.read(queries.list_queued, chat_id)

    def end(tx: ChatTx) -> None:
        if state == "A0":
            tx.cancel_requires_action()
        if state == "I0":
            tx.finish_interruption([])
        else:
            tx.finish_turn()

    await bench.store.transition(chat_id, end)

    assert (during, waiting.changes) == (PLAIN, ALL)
    assert await settings(bench, chat_id) == CHANGED
    assert (await bench.messages(chat_id))[-1].reasoning_effort == "high"


async def test_a_message_that_interrupts_changes_the_turn_that_it_begins(bench: Bench) -> None:
    """Brief: also while the partial answer is still committed."""
    chat_id = await bench.chat_in("R0")
    await send(bench, chat_id, ALL, interrupt=True)
    during = await settings(bench, chat_id)
    await bench.store.transition(chat_id, lambda tx: tx.finish_interruption([answer("partial")]))

    assert (during, await settings(bench, chat_id)) == (PLAIN, CHANGED)


async def test_a_steering_message_changes_the_turn_from_its_next_model_call_on(bench: Bench) -> None:
    """Ours: it is taken in by the turn under way, and so is what it changes."""
    chat_id = await bench.chat_in("R0")
    await send(bench, chat_id, ALL, steer=True)
    during = await settings(bench, chat_id)
    await bench.store.transition(chat_id, lambda tx: tx.take_steered())

    assert (during, await settings(bench, chat_id)) == (PLAIN, CHANGED)


async def test_each_queued_message_has_its_own_changes(bench: Bench) -> None:
    """Ours: absent stays, null goes back; a message let go first comes with its own."""
    chat = await bench.create()
    for changes in (ALL, TurnChanges(), TurnChanges(plan_mode=None, reasoning_effort=None)):
        await send(bench, chat.id, changes)
    found = []
    for _ in range(3):
        await finish(bench, chat.id)
        found.append(await settings(bench, chat.id))

    assert found == [CHANGED, CHANGED, (None, None, [str(SERVER)])]


async def test_a_promoted_message_changes_an_errors_next_turn(bench: Bench) -> None:
    """Spec 1.2: from an error with a backlog it enters history at once."""
    chat_id = await bench.chat_in("R0")
    for changes in (TurnChanges(reasoning_effort="low"), ALL):
        await send(bench, chat_id, changes)
    queued = await bench.store.read(queries.list_queued, chat_id)
    await bench.execute(_failed(chat_id))
    await bench.store.transition(chat_id, lambda tx: tx.promote_queued(queued[1].id))

    assert await settings(bench, chat_id) == CHANGED


def _failed(chat_id: UUID) -> Any:
    values = {"status": "error", "last_error": {"message": "x"}, "worker_id": None, "runner_id": None}
    return schema.chats.update().where(schema.chats.c.id == chat_id).values(values)


async def test_a_message_deleted_from_the_queue_changes_nothing(bench: Bench) -> None:
    """Ours: what was taken back was never asked for."""
    chat = await bench.create()
    await send(bench, chat.id, ALL)
    (waiting,) = await bench.store.read(queries.list_queued, chat.id)
    await bench.store.transition(chat.id, lambda tx: tx.delete_queued(waiting.id))
    await finish(bench, chat.id)

    assert await settings(bench, chat.id) == PLAIN


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (TurnChanges(), "low"),
        (TurnChanges(reasoning_effort="max"), "max"),
        (TurnChanges(reasoning_effort=None), None),
    ],
    ids=["kept", "another", "the model's own"],
)
async def test_an_edit_keeps_the_messages_effort_unless_it_gives_another(
    bench: Bench, changes: TurnChanges, expected: str | None
) -> None:
    """Spec 1.2: EditMessage keeps the target's model and effort unless overridden."""
    chat = await bench.create(reasoning_effort="low")
    (first,) = await bench.messages(chat.id)
    await finish(bench, chat.id)
    await send(bench, chat.id, TurnChanges(reasoning_effort="high"))
    await bench.store.transition(chat.id, lambda tx: tx.edit(first.id, text("anew"), changes=changes))
    (edited,) = await bench.messages(chat.id)
    row = await bench.row(chat.id)

    assert (chat.last_reasoning_effort, first.reasoning_effort) == ("low", "low")
    assert (edited.reasoning_effort, row["last_reasoning_effort"]) == (expected, expected)
    assert edited.model_config_id == bench.config_id


async def test_the_clients_answers_change_nothing(bench: Bench) -> None:
    """Ours: only messages of people do."""
    chat = await bench.create(dynamic_tools=(CLIENT_TOOL,), reasoning_effort="low")
    await bench.acquire(chat.id)
    await bench.commit(chat.id, ask_client("a"))
    await bench.store.transition(chat.id, lambda tx: tx.enter_requires_action())
    await send(bench, chat.id, ALL)
    await bench.store.transition(chat.id, lambda tx: tx.cancel_requires_action())

    assert (await settings(bench, chat.id))[1] == "low"
