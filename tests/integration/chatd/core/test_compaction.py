"""Histories that are summarised: between steps, behind the last, by a person, and when a vendor refuses."""

from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.faults import FaultKind, make_fault
from chatd.provider.protocol import Finished, ModelRequest, PartDone, TextDelta
from chatd.store import schema, thresholds
from chatd.store.rows import message_from_row
from chatd.wire import Message, TextPart, ToolCallPart, ToolResultPart, Usage
from tests.integration.chatd.core.world import Gate, Item, World, call, output, say

TOO_LONG = make_fault(FaultKind.CONFIG, "scripted", status_code=400, detail="prompt is too long: 300 tokens")


@pytest.fixture
def small(world: World) -> World:
    """A model with a window of 100 tokens, summarised at 70, and a tool."""

    async def look(params: ToolCallParams) -> ToolResult:
        return output(params.call_id.rpartition("/")[2])

    world.model.window = 100
    world.workspace.handlers = {"look": look}
    return world


def first_text(request: ModelRequest) -> str:
    """How a prompt begins."""
    part = request.messages[0].content[0]
    assert isinstance(part, TextPart)
    return part.text


async def rows(world: World, chat_id: UUID) -> list[Message]:
    """Every row that there is, by id."""

    def read(connection: sa.Connection) -> list[Message]:
        table = schema.messages
        mine = sa.select(table).where(table.c.chat_id == chat_id).order_by(table.c.id)
        return [message_from_row(row) for row in connection.execute(mine).mappings()]

    return await world.store.read(read)


async def texts(world: World, chat_id: UUID) -> list[str]:
    """What people read: the user's and the model's words."""
    return [
        f"{message.role}:{part.text}"
        for message in await rows(world, chat_id)
        for part in message.content
        if isinstance(part, TextPart) and message.visibility != "model"
    ]


async def count(world: World, chat_id: UUID) -> int:
    """Summaries in the history."""
    parts = [part for message in await rows(world, chat_id) for part in message.content]
    return sum(isinstance(part, ToolResultPart) and part.tool_name == "chat_summarized" for part in parts)


def outcomes(world: World) -> dict[str, float]:
    """``compaction_total`` by result."""
    families = world.services.metrics.registry.collect()
    samples = [s for family in families for s in family.samples if s.name == "chatd_compaction_total"]
    return {sample.labels["result"]: sample.value for sample in samples}


@pytest.mark.past_bug(14)
async def test_a_full_history_is_summarised_between_steps(small: World) -> None:
    """Vector 78, requirement 000 bug 1: once, before the next step, which sees the summary alone."""
    small.model.summaries = [say("LOOKED")]
    chat = await small.chat([call(("a", "look"), tokens=80), say("done", tokens=20)], agent_id=small.agent_id)
    await small.until_rest(chat.id)

    assert await count(small, chat.id) == 1
    step, summary, behind = small.model.requests
    assert (step.may_call, summary.may_call, behind.may_call) == (True, False, True)
    assert summary.messages[:-1] == (*step.messages, *summary.messages[1:-1])
    assert [message.role for message in summary.messages] == ["user", "assistant", "tool", "user"]
    assert summary.tools == behind.tools == step.tools
    assert [message.role for message in behind.messages] == ["user"]
    assert "LOOKED" in first_text(behind)
    assert "hello" in first_text(behind)
    assert outcomes(small) == {"success": 1}


async def test_the_boundary_is_three_rows_of_one_commit(small: World) -> None:
    """Spec 3.2: hidden summary, the call that people see, its result; numbers included."""
    small.model.summaries = [say("S")]
    chat = await small.chat([call(("a", "look"), tokens=80), say("done")], agent_id=small.agent_id)
    await small.until_rest(chat.id)

    messages = await rows(small, chat.id)
    revisions = await small.revisions(chat.id)
    (at,) = [i for i, m in enumerate(messages) if m.role == "user" and m.visibility == "model"]
    assert [(m.role, m.visibility) for m in messages[at : at + 3]] == [
        ("user", "model"),
        ("assistant", "user"),
        ("tool", "both"),
    ]
    assert len(set(revisions[at : at + 3])) == 1
    (asked,), (told,) = messages[at + 1].content, messages[at + 2].content
    assert isinstance(asked, ToolCallPart)
    assert isinstance(told, ToolResultPart)
    assert (asked.tool_name, asked.tool_call_id) == ("chat_summarized", told.tool_call_id)
    assert told.result == {
        "summary": "S",
        "source": "automatic",
        "threshold_percent": 70,
        "usage_percent": 80.0,
        "context_tokens": 80,
        "context_limit_tokens": 100,
    }


async def test_progress_is_shown_before_the_model_is_asked(small: World) -> None:
    """Vector 75: call, generate, persist, result."""
    gate = Gate()
    small.model.summaries = [[gate, *say("S")]]
    chat = await small.chat([call(("a", "look"), tokens=80), say("done")], agent_id=small.agent_id)
    await gate.wait_reached()
    episode = small.services.buffer.get(chat.id)
    assert episode is not None
    row = await small.row(chat.id)
    assert (episode.history_version, episode.attempt) == (row["history_version"], row["generation_attempt"])
    assert [(f.part.type, f.role) for f in episode.fragments] == [("tool-call", "assistant")]
    assert await count(small, chat.id) == 0
    gate.opened.set()
    await small.until_rest(chat.id)

    assert await count(small, chat.id) == 1


async def test_below_the_threshold_nothing_happens(small: World) -> None:
    """Vector 76."""
    chat = await small.chat([say("done", tokens=10)])
    await small.until_rest(chat.id)

    assert await count(small, chat.id) == 0
    assert outcomes(small) == {}


async def test_a_summary_behind_the_last_answer_lets_the_model_go_on(small: World) -> None:
    """Vector 79, requirement 000 bug 3: asked again, with the summary as a user's message."""
    small.model.summaries = [say("S")]
    chat = await small.chat([say("one", tokens=80), say("two", tokens=20)])
    await small.until_rest(chat.id)

    assert await texts(small, chat.id) == ["user:hello", "assistant:one", "assistant:two"]
    assert [message.role for message in small.model.requests[-1].messages] == ["user"]


async def test_re_entry_is_bounded(small: World) -> None:
    """Vector 81: an answer that always fills the window is followed by three more, not for ever."""
    small.model.summaries = [say("S")] * 9
    chat = await small.chat([say("again", tokens=80)] * 9)
    await small.until_rest(chat.id)

    assert sum(request.may_call for request in small.model.requests) == 4
    assert await count(small, chat.id) == 4


async def test_re_entry_ends_at_the_step_limit(world: World) -> None:
    """Vector 74, spec 3.3: steps count across re-entries; the turn ends well."""
    world.model.window = 100
    world.model.summaries = [say("S")]
    await world.restart(max_steps=1)
    chat = await world.chat([say("one", tokens=80)])
    await world.until_rest(chat.id)

    assert await count(world, chat.id) == 1


async def test_a_failed_summary_ends_nothing(small: World) -> None:
    """Vector 80: told, counted; the turn goes on with the whole history."""
    small.model.summaries = [[make_fault(FaultKind.AUTH, "scripted")]]
    chat = await small.chat([call(("a", "look"), tokens=80), say("done", tokens=20)], agent_id=small.agent_id)
    await small.until_rest(chat.id)

    assert await texts(small, chat.id) == ["user:hello", "assistant:done"]
    assert outcomes(small) == {"error": 1}


async def test_a_summary_is_tried_again_in_its_time(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 5: every model call; a wait that would outlast the summary's time is not begun."""
    monkeypatch.setattr("chatd.worker.retrying.effective_delay_s", lambda _, hint: hint)
    busy = make_fault(FaultKind.OVERLOADED, "scripted", retryable=True)
    patient = make_fault(FaultKind.OVERLOADED, "scripted", retryable=True, retry_after_s=3_600)
    small.model.summaries = [[busy], [busy], say("of hello"), [patient]]
    chat = await small.chat([say("done", tokens=80), say("more", tokens=20)])
    await small.until_rest(chat.id)
    other = await small.chat([say("done", tokens=80)], value="other")
    await small.until_rest(other.id)

    assert outcomes(small) == {"success": 1, "error": 1}


async def test_a_summary_that_takes_too_long_is_given_up(small: World) -> None:
    """Spec 3.1: 90 s by default; counted apart."""
    small.model.summaries = [[Gate()]]
    await small.restart(compaction_timeout_s=0.01)
    chat = await small.chat([say("done", tokens=80)])
    await small.until_rest(chat.id)

    assert await texts(small, chat.id) == ["user:hello", "assistant:done"]
    assert outcomes(small) == {"timeout": 1}


async def test_an_interrupt_stops_a_summary(small: World) -> None:
    """Ours: nothing is written or counted; the next turn begins with it, and keeps the question."""
    gate = Gate()
    small.model.summaries = [[gate], say("of hello")]
    chat = await small.chat([say("done", tokens=80), say("next")])
    await gate.wait_reached()
    await small.interrupt(chat.id)
    await small.until_rest(chat.id)
    assert (outcomes(small), await count(small, chat.id)) == ({}, 0)
    await small.send(chat.id, "and?")
    await small.until_rest(chat.id)

    assert await texts(small, chat.id) == ["user:hello", "assistant:done", "user:and?", "assistant:next"]
    (last,) = small.model.requests[-1].messages
    assert last.content[-1] == TextPart(text="and?")


@pytest.mark.parametrize("tokens", [10, None, 80])
async def test_a_person_may_ask_for_a_summary(world: World, tokens: int | None) -> None:
    """Vector 82: below the threshold, without usage, switched off: one call, source manual; then rest."""
    world.model.window = 100
    world.model.summaries = [say("S")]
    await world.store.write(thresholds.save_threshold, world.user_id, world.config_id, 100)
    chat = await world.chat([say("done", tokens=tokens), say("next")])
    await world.until_rest(chat.id)
    assert len(world.model.requests) == 1
    await world.store.transition(chat.id, lambda tx: tx.request_compaction())
    await world.until_rest(chat.id)

    assert [request.may_call for request in world.model.requests] == [True, False]
    (told,) = (await rows(world, chat.id))[-1].content
    assert isinstance(told, ToolResultPart)
    assert told.result["source"] == "manual"
    await world.send(chat.id, "go on")
    await world.until_rest(chat.id)
    assert [m.role for m in world.model.requests[-1].messages] == ["user", "user"]


async def test_a_failed_manual_summary_is_an_error_that_people_see(world: World) -> None:
    """Ours: who asked must learn that it did not work; the history is whole."""
    world.model.summaries = [say("")]
    chat = await world.chat([say("done")])
    await world.until_rest(chat.id)
    await world.store.transition(chat.id, lambda tx: tx.request_compaction())
    row = await world.until_rest(chat.id, "error")

    assert "no summary" in row["last_error"]["message"]
    assert await texts(world, chat.id) == ["user:hello", "assistant:done"]


@pytest.mark.parametrize(("own", "expected"), [(90, 0), (100, 0), (40, 1), (None, 1)])
async def test_a_user_s_own_threshold_decides(small: World, own: int | None, expected: int) -> None:
    """Spec 3.1: her percentage for this model, else the model's."""
    if own is not None:
        await small.store.write(thresholds.save_threshold, small.user_id, small.config_id, own)
    small.model.summaries = [say("S")]
    chat = await small.chat([say("done", tokens=80), say("then", tokens=5)])
    await small.until_rest(chat.id)

    assert await count(small, chat.id) == expected


async def test_a_window_that_the_server_tells_counts(world: World) -> None:
    """Spec 3.2: it knows better than any table."""
    world.model.window = 1_000
    world.model.summaries = [say("S")]
    *spoken, _ = say("done")
    end = Finished(reason="stop", usage=Usage(input_tokens=80), context_limit=100)
    chat = await world.chat([[*spoken, end], say("then", tokens=5)])
    await world.until_rest(chat.id)

    assert await count(world, chat.id) == 1


async def test_a_prompt_that_the_vendor_finds_too_long_is_summarised(world: World) -> None:
    """BUGS 16, 28: no usage told of it; what the user just asked stays, word for word, whole."""
    world.model.summaries = [say("of hello")]
    chat = await world.chat([say("one"), [TOO_LONG], say("two")])
    await world.until_rest(chat.id)
    await world.send(chat.id, "what now?")
    await world.until_rest(chat.id)

    assert await texts(world, chat.id) == ["user:hello", "assistant:one", "user:what now?", "assistant:two"]
    (last,) = world.model.requests[-1].messages
    assert [part.text for part in last.content if isinstance(part, TextPart)][1:] == ["what now?"]


async def test_one_that_is_too_long_even_then_ends_the_turn(world: World) -> None:
    """BUGS 28: explicit final failure, no endless summaries."""
    world.model.summaries = [say("of hello")] * 3
    chat = await world.chat([[TOO_LONG]] * 5)
    row = await world.until_rest(chat.id, "error")

    assert row["last_error"]["kind"] == "config"
    assert [request.may_call for request in world.model.requests] == [True, False, True]


async def test_ten_summaries_stay_small_and_keep_the_task(small: World) -> None:
    """BUGS 30, 32: what the user asked is in every one; sizes don't add up."""
    small.model.summaries = [say(f"S{n} " + "x" * 5_000) for n in range(10)]
    script: list[Any] = [call((f"c{n}", "look"), tokens=80) for n in range(10)]
    chat = await small.chat([*script, say("done", tokens=5)], agent_id=small.agent_id)
    await small.until_rest(chat.id)

    behind = [first_text(request) for request in small.model.requests if request.may_call][1:]
    assert len(behind) == 10
    assert all("hello" in text for text in behind)
    assert len({len(text) for text in behind}) == 1
    assert all(text.count("word for word") == 1 for text in behind)


FULL: list[Item] = [TextDelta("half"), PartDone(TextPart(text="half")), Finished(reason="context-exceeded")]


async def test_an_answer_that_fills_the_window_has_the_history_summarised(small: World) -> None:
    """BUGS 16: the road of a prompt that is refused as too long; the half answer is given anew."""
    small.model.summaries = [say("S of hello")]
    chat = await small.chat([list(FULL), say("whole", tokens=20)])
    row = await small.until_rest(chat.id)

    assert await texts(small, chat.id) == ["user:hello", "assistant:whole"]
    assert (row["last_error"], await count(small, chat.id)) == (None, 1)
    (_, summary, behind) = small.model.requests
    assert not summary.may_call
    assert "S of hello" in first_text(behind)


async def test_an_answer_that_fills_the_window_again_is_kept_with_an_error(small: World) -> None:
    """Ours: one summary; what came is the person's, who reads why it ends."""
    small.model.summaries = [say("S of hello")]
    chat = await small.chat([list(FULL), list(FULL)])
    row = await small.until_rest(chat.id, "error")

    assert await texts(small, chat.id) == ["user:hello", "assistant:half"]
    assert row["last_error"]["kind"] == "config"
    assert "context window" in row["last_error"]["message"]


async def test_without_a_summary_a_full_window_ends_the_turn(small: World) -> None:
    """Ours: never again and again with the same history."""
    small.model.summaries = [[make_fault(FaultKind.AUTH, "scripted", status_code=401)]]
    chat = await small.chat([list(FULL)])
    row = await small.until_rest(chat.id, "error")

    assert "context window" in row["last_error"]["message"]
    assert len(small.model.requests) == 2
