"""An agent asks a second model for advice."""

from typing import Any
from uuid import UUID

from chatd.faults import FaultKind, make_fault
from chatd.provider.protocol import TextDelta
from chatd.tools.advisor import ADVISOR, CONTRACT, recent_messages
from chatd.wire import Message, TextPart, ToolResultPart
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import Gate, Item, World, call, say


async def results(world: World, script: list[list[Item]], **settings: Any) -> list[ToolResultPart]:
    """The results of a turn that ran by *script* with an advisor."""
    await world.restart(advisor_model="m", **settings)
    chat = await world.chat([*script, say("done")])
    await world.until_rest(chat.id)
    messages = await world.messages(chat.id)
    return [part for one in messages for part in one.content if isinstance(part, ToolResultPart)]


async def test_advice_is_asked_with_the_end_of_the_conversation(world: World) -> None:
    """Spec 8.7: instructions, then the contract; recent messages, then the question; nothing to call."""
    world.model.summaries = [say("do it slowly")]
    ask = call(("a", "advisor"), question="  fast or slow?" + "x" * 3000)
    (result,) = await results(world, [ask], advisor_max_uses=2)
    (asked,) = [request for request in world.model.requests if not request.may_call]

    assert result.result == {
        "type": "advice",
        "advice": "do it slowly",
        "advisor_model": "openai:m",
        "remaining_uses": 1,
    }
    assert asked.system.startswith(world.model.requests[0].system)
    assert asked.system.endswith(CONTRACT)
    assert asked.max_output_tokens == 16_384
    text = "".join(part.text for one in asked.messages for part in one.content if isinstance(part, TextPart))
    assert text.startswith("hello")
    assert text.endswith("fast or slow?" + "x" * (2000 - len("fast or slow?")))


async def test_what_is_said_so_far_is_told(world: World) -> None:
    """Issue: progress for long ones: whom it asks, then the words as they come, in the call's own place."""
    gate = Gate()
    world.model.summaries = [[TextDelta("do it"), gate, *say("do it slowly")[1:]]]
    await world.restart(advisor_model="m")
    told = list[str]()
    report = world.services.buffer.report
    world.services.buffer.report = lambda chat_id, call_id, text: (  # type: ignore[method-assign]
        told.append(f"{call_id}: {text}"),
        report(chat_id, call_id, text),
    )[1]
    chat = await world.chat([call(("a", "advisor"), question="?"), say("done")])
    await gate.wait_reached()
    gate.opened.set()
    await world.until_rest(chat.id)

    assert told == ["a: Asking M", "a: do it"]


async def test_a_failure_gives_the_use_back_and_the_budget_ends(world: World) -> None:
    """Spec 8.7: failed or empty runs refund the use."""
    refused = make_fault(FaultKind.AUTH, "scripted", retryable=False)
    world.model.summaries = [[refused], say(""), say("yes")]
    asks = [call((name, "advisor"), question="?") for name in "abcd"]
    told = await results(world, asks, advisor_max_uses=1)

    assert [one.result["type"] for one in told] == ["error", "error", "advice", "limit_reached"]
    assert [one.result["remaining_uses"] for one in told] == [1, 1, 0, 0]
    assert [one.is_error for one in told] == [True, True, False, False]


async def test_it_must_be_alone_and_may_be_switched_off(world: World) -> None:
    """Spec 8.7: exclusive; a negative budget disables it."""
    pair = call(("a", "advisor"), ("b", "list_agents"), question="?")
    told = await results(world, [pair, call(("c", "advisor"), question=" ")])
    off = await results(world, [call(("a", "advisor"), question="?")], advisor_max_uses=-1)

    assert "must be called alone" in told[0].result["error"]
    assert all(one.is_error for one in told)
    assert "there is no tool 'advisor'" in off[0].result["error"]
    assert ADVISOR.name not in {tool.name for tool in world.model.requests[-1].tools}


def test_what_the_advisor_sees_has_no_gaps() -> None:
    """Spec 8.7: 20 messages, 12,000 bytes, no results without their call."""

    def row(at: int, role: Any, size: int = 10) -> Message:
        content = (TextPart(text="x" * size),)
        return Message(
            id=at, chat_id=UUID(int=1), role=role, content=content, visibility="both", created_at=START
        )

    many = [row(at, "user") for at in range(40)]
    heavy = [row(1, "user"), row(2, "assistant", 13_000), row(3, "tool"), row(4, "user")]

    assert [one.id for one in recent_messages(many, before_id=30)] == list(range(10, 30))
    assert [one.id for one in recent_messages(heavy, before_id=9)] == [4]
