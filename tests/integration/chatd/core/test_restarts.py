"""The worker stops at any commit; the next one ends the chat as if nothing had happened."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from uuid import UUID

import pytest
import sqlalchemy as sa

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.provider.protocol import ModelRequest, ProviderEvent
from chatd.store import schema
from tests.integration.chatd.core.world import LIMIT_S, Gate, World, call, output, say

WHOLE = [
    "user:hello",
    "assistant:a",
    "tool:a",
    "tool:b",
    "assistant:done",
    "user:more",
    "assistant:bye",
]


ANSWERS = {
    ("user",): call(("a", "tool"), ("b", "tool")),
    ("user", "assistant", "tool"): say("done"),
}


def answer_by_history(world: World) -> None:
    """Let the model answer by what it has seen, not by how often it was asked."""
    stream = world.model.stream

    async def replay(request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        roles = tuple(message.role for message in request.messages)
        world.model.scripts["hello"] = [ANSWERS.get(roles, say("bye"))]
        async for event in stream(request):
            yield event

    world.model.stream = replay  # type: ignore[method-assign]


def hang_at(world: World, number: int) -> asyncio.Event:
    """Let the committer of the *number*-th transaction hang behind it; the event tells that it does."""
    seen, count = asyncio.Event(), itertools.count(1)

    async def after(_: UUID) -> None:
        if next(count) == number:
            seen.set()
            await asyncio.Event().wait()

    world.hooked.after = after
    return seen


async def test_a_shutdown_mid_stream_loses_and_doubles_nothing(world: World) -> None:
    """Spec 6.6: cancelled chats stay runnable; the next worker tries the step again."""
    gate = Gate()
    chat = await world.chat([[say("lost")[0], gate], say("whole")])
    await gate.wait_reached()
    await world.stop()
    assert (await world.row(chat.id))["status"] == "running"
    assert await world.texts(chat.id) == ["user:hello"]
    await world.store.release_all()
    world.start()
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:whole"]


async def test_a_shutdown_during_tools_asks_again_by_the_same_ids(world: World) -> None:
    """Ours: the call's key is the same, so the workspace can tell a repeat."""
    gate = Gate()

    async def tool(params: ToolCallParams) -> ToolResult:
        if not gate.opened.is_set():
            await gate.pass_through()
        return output(params.name)

    world.workspace.handlers = {"tool": tool}
    chat = await world.chat([call(("a", "tool"), ("b", "tool")), say("done")], agent_id=world.agent_id)
    await gate.wait_reached()
    await world.stop()
    gate.opened.set()
    await world.store.release_all()
    world.start()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[1:] == ["assistant:a", "tool:a", "tool:b", "assistant:done"]
    keys = [params.call_id for params in world.workspace.calls]
    message_id = (await world.messages(chat.id))[1].id
    assert set(keys) == {f"{chat.id}/{message_id}/{name}" for name in "ab"}
    assert set(world.workspace.boots) == {"boot"}


# Transactions of a worker in those two turns.
COMMITS = 7


async def test_all_commits_of_two_turns_are_known(world: World) -> None:
    """Ours: the test below stops at each; one more would go untried, one less be waited for in vain."""

    async def tool(params: ToolCallParams) -> ToolResult:
        return output(params.name)

    await world.stop()
    answer_by_history(world)
    world.workspace.handlers = {"tool": tool}
    chat = await world.chat([], agent_id=world.agent_id)
    await world.send(chat.id, "more")
    commits: list[UUID] = []

    async def after(chat_id: UUID) -> None:
        commits.append(chat_id)

    world.hooked.after = after
    world.start()
    await world.until_rest(chat.id)

    assert len(commits) == COMMITS


@pytest.mark.parametrize("number", range(1, COMMITS + 1))
async def test_a_worker_stopped_at_any_commit_is_replaced(world: World, number: int) -> None:
    """Ours: killed after each transaction of two turns in turn, the history comes out the same."""
    await world.stop()

    async def tool(params: ToolCallParams) -> ToolResult:
        return output(params.name)

    answer_by_history(world)
    world.workspace.handlers = {"tool": tool}
    chat = await world.chat([], agent_id=world.agent_id)
    await world.send(chat.id, "more")
    seen = hang_at(world, number)
    world.start()
    async with asyncio.timeout(LIMIT_S):
        await seen.wait()
    world.hooked.after = None
    await world.stop()
    await world.store.release_all()
    world.start()
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == WHOLE


@pytest.mark.past_bug(1)
async def test_leases_of_the_dead_are_taken_over_when_they_run_out(world: World) -> None:
    """Spec 6.1: an expired lease is an acquisition candidate, without any restart."""
    await world.stop()
    chat = await world.chat([say("late")])
    await world.acquire(chat.id)
    world.set(lease_s=0.001, acquire_interval_s=0.01)
    world.start()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[-1] == "assistant:late"


async def test_a_call_that_only_reads_is_not_claimed(world: World) -> None:
    """Ours: what may be asked again needs no row of who was asked; what acts does."""

    async def act(_: ToolCallParams) -> ToolResult:
        return output("done")

    world.workspace.handlers = {"read_it": act, "write_it": act}
    script = [call(("a", "read_it")), call(("b", "write_it")), say("done")]
    chat = await world.chat(script, agent_id=world.agent_id)
    await world.until_rest(chat.id)

    def claimed(connection: sa.Connection) -> list[str]:
        return list(connection.execute(sa.select(schema.tool_calls.c.call_key)).scalars())

    assert [key.rpartition("/")[2] for key in await world.store.read(claimed)] == ["b"]
    assert [one.name for one in world.workspace.calls] == ["read_it", "write_it"]
