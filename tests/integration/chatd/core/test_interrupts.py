"""A user's stop, at every moment of a turn: nothing received is lost, nothing is doubled."""

import asyncio
from uuid import UUID

import pytest

from agentd.wire.content import ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams
from chatd.errors import AgentUnavailable
from chatd.provider.protocol import ReasoningDelta, TextDelta, ToolInputDelta
from tests.contract.store.bench import answer
from tests.integration.chatd.core.world import Gate, World, call, output, say


async def test_a_stop_mid_stream_keeps_the_text_and_answers_the_calls(world: World) -> None:
    """Spec 6.5: text, finished and half-streamed calls are kept; each call gets an error."""
    gate = Gate()
    whole = call(("a", "x"))[0]
    half = ToolInputDelta("b", "x", '{"q": "unfin')
    chat = await world.chat([[TextDelta("half of it"), whole, half, gate], say("next")])
    await gate.wait_reached()
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)
    messages = await world.messages(chat.id)

    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool"]
    kinds = [(part.type, getattr(part, "args", None)) for part in messages[1].content]
    assert sorted(kinds) == [("text", None), ("tool-call", {}), ("tool-call", {})]
    assert (await world.texts(chat.id))[2:] == ["tool:a!", "tool:b!"]
    await world.send(chat.id, "go on")
    await world.until_rest(chat.id)
    assert (await world.texts(chat.id))[-1] == "assistant:next"


async def test_a_stop_before_the_first_word_leaves_nothing(world: World) -> None:
    """Spec 6.5: no buffer, no partial."""
    gate = Gate()
    chat = await world.chat([[gate]])
    await gate.wait_reached()
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello"]


async def test_reasoning_under_way_is_kept(world: World) -> None:
    """Spec 6.5: reasoning too."""
    gate = Gate()
    chat = await world.chat([[ReasoningDelta("hm"), gate]])
    await gate.wait_reached()
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)

    assert [part.type for part in (await world.messages(chat.id))[1].content] == ["reasoning"]


async def test_a_stop_during_tools_keeps_what_is_finished_in_call_order(world: World) -> None:
    """Spec 6.5: completed results are kept, the others answered with an error; order is call order."""
    done, cancelled, release = asyncio.Event(), asyncio.Event(), asyncio.Event()
    begun = asyncio.Event()

    async def tool(params: ToolCallParams) -> ToolResult:
        name = params.call_id.rpartition("/")[2]
        if name == "b":
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        if name == "a":
            await release.wait()
            done.set()
        else:
            release.set()
        return output(name)

    world.workspace.handlers = {"tool": tool}
    chat = await world.chat([call(("a", "tool"), ("b", "tool"), ("c", "tool"))], agent_id=world.agent_id)
    await begun.wait()
    await done.wait()
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)

    assert cancelled.is_set()
    assert (await world.texts(chat.id))[1:] == ["assistant:a", "tool:a", "tool:b!", "tool:c"]


@pytest.mark.parametrize(("length", "expected"), [(2, "assistant:a"), (4, "tool:b")])
async def test_a_stop_right_behind_a_commit_doubles_nothing(world: World, length: int, expected: str) -> None:
    """Spec 6.5: between stream and tools, and between tools and the next step."""

    async def tool(params: ToolCallParams) -> ToolResult:
        return output(params.name)

    async def stop(chat_id: UUID) -> None:
        if len(await world.messages(chat_id)) == length:
            world.hooked.after = None
            await world.interrupt(chat_id)

    world.workspace.handlers = {"tool": tool}
    world.hooked.after = stop
    chat = await world.chat([call(("a", "tool"), ("b", "tool"))], agent_id=world.agent_id)
    await world.until_rest(chat.id)

    texts = await world.texts(chat.id)
    assert texts[length - 1] == expected
    assert texts[1:] == ["assistant:a", *(["tool:a!", "tool:b!"] if length == 2 else ["tool:a", "tool:b"])]


@pytest.mark.past_bug(2)
async def test_an_interrupting_message_comes_after_the_partial(world: World) -> None:
    """Spec 9, complaint 2: the partial always precedes the message that cut it off."""
    gate = Gate()
    chat = await world.chat([[TextDelta("half"), gate], say("other"), say("last")])
    await gate.wait_reached()
    await world.send(chat.id, "waits")
    await world.send(chat.id, "do this instead", interrupt=True)
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == [
        "user:hello",
        "assistant:half",
        "user:waits",
        "assistant:other",
        "user:do this instead",
        "assistant:last",
    ]


async def test_a_failure_in_the_moment_of_a_stop_does_not_strand_the_chat(world: World) -> None:
    """Ours: the runner that fails while the user stops still finishes the interruption."""

    async def list_tools(_: UUID) -> tuple[ToolDefinition, ...]:
        await world.interrupt(chat.id)
        raise AgentUnavailable("gone")

    gate = Gate()
    chat = await world.chat([[gate, *call(("a", "x"))]], agent_id=world.agent_id)
    await gate.wait_reached()
    world.workspace.list_tools = list_tools  # type: ignore[method-assign]
    gate.opened.set()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[1:] == ["assistant:a", "tool:a!"]


async def test_a_chat_nobody_runs_can_be_stopped(world: World) -> None:
    """Spec 6.1: an interrupting chat is acquired like a running one."""
    await world.stop()
    chat = await world.chat([])
    await world.commit(chat.id, answer("calls", "a"))
    await world.interrupt(chat.id)
    world.start()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[1:] == ["assistant:calls", "tool:a!"]


async def test_a_stop_whose_hint_was_lost_is_found_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 6.3: a periodic look at the row feeds the same loop; what was received is kept."""
    monkeypatch.setattr("chatd.worker.runner.RUNNER_SYNC_S", 0.05)
    gate = Gate()
    chat = await world.chat([[*say("partial")[:1], gate, *say("never")]])
    await gate.wait_reached()
    publish = world.store._publish
    monkeypatch.setattr(world.store, "_publish", lambda _: None)
    await world.interrupt(chat.id)
    monkeypatch.setattr(world.store, "_publish", publish)
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:partial"]
