"""The worker stops at any commit; the next one ends the chat as if nothing had happened."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from uuid import UUID

import pytest

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.provider.protocol import ModelRequest, ProviderEvent
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


@pytest.mark.parametrize("number", range(1, 9))
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


async def test_leases_of_the_dead_are_taken_over_when_they_run_out(world: World) -> None:
    """Spec 6.1: an expired lease is an acquisition candidate, without any restart."""
    await world.stop()
    chat = await world.chat([say("late")])
    await world.acquire(chat.id)
    world.set(lease_s=0.001, acquire_interval_s=0.01)
    world.start()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[-1] == "assistant:late"
