"""Whom the end of a turn is told."""

import asyncio

from chatd.faults import FaultKind, make_fault
from chatd.prompt.notes import NOTE_INSTRUCTION
from chatd.store import push_subscriptions
from chatd.worker.announce import announce_answers
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import LIMIT_S, World, call, say


async def _next(world: World) -> tuple[str, str]:
    """What would be pushed next; nobody sends here."""
    async with asyncio.timeout(LIMIT_S):
        user_id, note = await world.services.push._waiting.get()
    assert user_id == world.user_id
    return note.title, note.body


async def _subscribe(world: World) -> None:
    browser = {"endpoint": "https://push.example/1", "p256dh": "x", "auth": "x"}
    await world.store.write(push_subscriptions.save, world.user_id, **browser, now=START)
    world.services.push.forget_absence(world.user_id)


async def test_answers_and_errors_are_told_and_a_sub_agent_s_are_not(world: World) -> None:
    """The issue: on turn end and error; nothing for children, and nothing where no browser listens."""
    push = world.services.push
    assert not await push.has_browser(world.user_id)
    await _subscribe(world)
    assert await push.has_browser(world.user_id)
    parent = await world.chat([say("the answer")], title="parent")
    first = await _next(world)
    child = await world.chat([say("a report")], value="errand", title="child", parent=parent)
    await world.until_rest(child.id)
    await world.chat([[RuntimeError("out of order")]], value="fail", title="broken")
    title, body = await _next(world)

    assert first == ("parent", "the answer")
    assert (title, bool(body)) == ("broken", True)


async def test_a_long_answer_is_told_in_a_model_s_words(world: World) -> None:
    """Spec 10: within 30 s, by a cheap model; its beginning where the model fails or is not wanted."""
    await _subscribe(world)
    telling = asyncio.create_task(announce_answers(world.services))
    words = "Well, after a long look at all of it " * 10
    name = "Well, after"
    fault = make_fault(FaultKind.AUTH, "scripted")
    world.model.scripts[name] = [say('"All tests pass."'), [fault]]
    told = []
    for value in ("one", "two"):
        await world.chat([say(words)], value=value, title=value)
        told.append(await _next(world))
    world.set(push_summaries=False)
    await world.restart()
    await world.chat([say(words)], value="three", title="three")
    told.append(await _next(world))
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)

    assert told[0] == ("one", "All tests pass.")
    assert [body.startswith(name) for _, body in told] == [False, True, True]
    asked = [request for request in world.model.requests if request.system == NOTE_INSTRUCTION]
    assert [request.max_output_tokens for request in asked] == [256, 256]


async def test_a_question_that_ends_the_turn_is_told_as_one(world: World) -> None:
    """The issue: on questions; the agent's words before it say less than what it asks."""
    await _subscribe(world)
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    asked = [{"header": "Colour", "question": "Which colour?", "options": options}]
    await world.chat(
        [call(("q", "ask_user_question"), text="Let me ask.", questions=asked)], title="t", plan_mode="plan"
    )

    assert await _next(world) == ("t", "Question: Which colour?")
