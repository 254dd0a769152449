"""Tools that want to be alone, tools that end a turn, calls cut off, and what counts over takeovers."""

import asyncio
import contextlib
from dataclasses import replace
from uuid import UUID

import pytest

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.loop.answer import judge_answer
from chatd.provider.protocol import Finished, PartDone
from chatd.store import queries
from chatd.store.boundaries import TurnProgress, turn_progress
from chatd.stream.sync import chat_events
from chatd.tools.toolset import Toolset
from chatd.wire import Chat, DynamicTool, Message, ReasoningPart, TextPart, ToolCallPart
from chatd.worker.services import Services
from tests.integration.chatd.core.world import LIMIT_S, Gate, World, call, output, say


@pytest.fixture
def traits(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Traits of the workspace's tools by name; ``look`` and ``ask`` are there."""
    chosen: dict[str, str] = {}
    made = Services._tools

    async def tools(services: Services, chat: Chat) -> Toolset:
        toolset = await made(services, chat)
        marked = {
            name: replace(tool, **{chosen[name]: True}) if name in chosen else tool
            for name, tool in toolset.tools.items()
        }
        return replace(toolset, tools=marked)

    async def answer(params: ToolCallParams) -> ToolResult:
        return output(params.name)

    monkeypatch.setattr(Services, "_tools", tools)
    world.workspace.handlers = {"look": answer, "ask": answer}
    return chosen


async def shown(world: World, chat_id: UUID) -> list[Message]:
    """What people see, newest first."""
    page = await world.store.read(queries.list_messages, chat_id, before_id=2**62, limit=9)
    return list(page.messages)


async def test_nothing_runs_beside_a_tool_that_must_be_alone(world: World, traits: dict[str, str]) -> None:
    """Spec 1.5: policy errors for all, the client's calls included; the turn goes on."""
    traits["ask"] = "is_exclusive"
    chat = await world.chat(
        [call(("a", "ask"), ("b", "look"), ("c", "mine")), say("alone then")],
        agent_id=world.agent_id,
        dynamic_tools=(DynamicTool(name="mine"),),
    )
    await world.until_rest(chat.id)

    expected = ["user:hello", "assistant:a", "tool:a!", "tool:b!", "tool:c!", "assistant:alone then"]
    assert await world.texts(chat.id) == expected
    assert world.workspace.calls == []


async def test_a_tool_may_end_the_turn(world: World, traits: dict[str, str]) -> None:
    """Spec 1.2, 11: its result is committed and the model not asked again."""
    traits["ask"] = "stops_turn"
    chat = await world.chat([call(("a", "ask"), ("b", "look"))], agent_id=world.agent_id)
    row = await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:a", "tool:a", "tool:b"]
    assert row["last_error"] is None


async def test_calls_cut_off_twice_end_the_turn(world: World) -> None:
    """BUGS 15: told once with the limit, never run, then stopped."""
    torn = ToolCallPart(tool_call_id="a", tool_name="look", args={}, invalid="no JSON")
    cut = [PartDone(torn), Finished(reason="length")]
    chat = await world.chat([list(cut), list(cut), say("never")])
    row = await world.until_rest(chat.id, "error")

    assert "twice" in row["last_error"]["message"]
    assert len(world.model.requests) == 2


async def test_an_answer_that_was_cut_off_is_kept_and_people_read_so(world: World) -> None:
    """Issue, BUGS 16: no silent success; the model goes on behind its own words and never sees the notice."""
    finished = Finished(reason="length")
    chat = await world.chat([[PartDone(TextPart(text="half")), finished], say("rest")])
    await world.until_rest(chat.id)
    notice, answer, _ = await shown(world, chat.id)
    await world.send(chat.id, "go on")
    await world.until_rest(chat.id)

    assert (answer.visibility, notice.visibility, notice.role) == ("both", "user", "assistant")
    assert notice.content == (TextPart(text=judge_answer(answer.content, finished).notice or ""),)
    (_, asked) = world.model.requests
    assert [message.role for message in asked.messages] == ["user", "assistant", "user"]
    assert await world.store.read(turn_progress, chat.id) == TurnProgress(steps=1, reentries=0)


async def test_a_notice_is_no_step_of_a_turn(world: World) -> None:
    """Ours: what people are told counts against no limit."""
    chat = await world.chat([[PartDone(TextPart(text="half")), Finished(reason="other")]])
    await world.until_rest(chat.id)

    assert len(await shown(world, chat.id)) == 3
    assert await world.store.read(turn_progress, chat.id) == TurnProgress(steps=1, reentries=0)


async def test_what_a_filter_let_through_is_kept_but_nothing_runs(world: World) -> None:
    """BUGS 16: a refusal is a visible end, without a retry."""
    asked = ToolCallPart(tool_call_id="a", tool_name="look", args={})
    script = [PartDone(TextPart(text="so far")), PartDone(asked), Finished(reason="content-filter")]
    chat = await world.chat([script, say("after")])
    row = await world.until_rest(chat.id, "error")

    assert row["last_error"]["kind"] == "content_filter"
    await world.send(chat.id, "go on")
    await world.until_rest(chat.id)
    assert (await world.texts(chat.id))[1:3] == ["assistant:so far", "tool:a!"]


async def test_steps_count_over_takeovers(world: World) -> None:
    """Spec 1.1: a limit that a restart resets is none."""

    async def look(_: ToolCallParams) -> ToolResult:
        return output("x")

    gate = Gate()
    world.workspace.handlers = {"look": look}
    await world.restart(max_steps=2)
    script = [call(("a", "look")), [gate, *say("lost")], say("second")]
    chat = await world.chat([*script], agent_id=world.agent_id)
    await gate.wait_reached()
    await world.restart(max_steps=1)
    row = await world.until_rest(chat.id, "error")

    assert "after 1 steps" in row["last_error"]["message"]


async def test_signed_and_redacted_reasoning_goes_back_as_it_came(world: World) -> None:
    """Vector 64: in its place, signature and data intact, empty or not."""
    signed = ReasoningPart(text="hm", provider_metadata={"anthropic": {"signature": "s"}})
    hidden = ReasoningPart(provider_metadata={"anthropic": {"data": "d"}})
    script = [PartDone(part) for part in (signed, hidden, TextPart(text="x"))]
    chat = await world.chat([[*script, Finished(reason="stop")], say("more")])
    await world.until_rest(chat.id)
    await world.send(chat.id, "and?")
    await world.until_rest(chat.id)

    first, second, third = world.model.requests[-1].messages[1].content
    untimed = {"created_at": None, "completed_at": None}
    assert isinstance(first, ReasoningPart)
    assert first.created_at is not None
    assert first.completed_at is not None
    assert first.created_at <= first.completed_at
    assert [part.model_copy(update=untimed) for part in (first, second)] == [signed, hidden]
    assert third == TextPart(text="x")


async def test_people_see_how_a_call_goes(world: World) -> None:
    """The issue: progress for long ones; ephemeral, the newest word of each call."""
    gate = Gate()

    async def dig(_: ToolCallParams) -> ToolResult:
        await gate.pass_through()
        return output("dug")

    world.workspace.handlers["dig"] = dig
    chat = await world.chat([call(("a", "dig")), say("done")], agent_id=world.agent_id)
    await gate.wait_reached()
    (tell,) = world.workspace.on_progress.values()
    buffer, heard = world.services.buffer, []
    async with asyncio.timeout(LIMIT_S):
        async with contextlib.aclosing(chat_events(world.store, world.hub, buffer, chat.id)) as batches:
            tell("1 of 3")
            tell("2 of 3")
            async for events in batches:
                heard += [event for event in events if event.type == "tool_progress"]
                if heard:
                    break
    gate.opened.set()
    await world.until_rest(chat.id)

    assert [(word.tool_call_id, word.text) for word in heard] == [("a", "2 of 3")]
    assert "2 of 3" not in str(await world.messages(chat.id))
