"""Questions that do not end the turn."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from chatd.errors import LeaseLost
from chatd.experiments import ASYNC_QUESTIONS
from chatd.wire import QuestionAnswerPart, TextPart, ToolResultPart
from tests.integration.chatd.core.world import Gate, World, call, say


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A world in which such questions are tried out."""
    world = World(tmp_path, database_url, experiments=(ASYNC_QUESTIONS,))
    await world.prepare()
    world.start()
    try:
        yield world
    finally:
        await world.close()


def questions(*texts: str, label: str = "Red") -> list[dict[str, Any]]:
    """Questions with two options each."""
    options = [{"label": label, "description": "warm"}, {"label": "Blue", "description": "cold"}]
    return [{"header": "Colour", "question": text, "options": options} for text in texts]


async def _results(world: World, chat_id: UUID) -> list[ToolResultPart]:
    messages = await world.messages(chat_id)
    return [part for one in messages for part in one.content if isinstance(part, ToolResultPart)]


def _pushed(world: World) -> list[str]:
    """What would be pushed: nobody sends here."""
    waiting = world.services.push._waiting
    return [waiting.get_nowait()[1].body for _ in range(waiting.qsize())]


async def test_the_agent_goes_on_and_the_last_question_is_pushed(world: World) -> None:
    """Spec 8.6: ids are new though the vendor's are used again; one push for each step."""
    first = call(("q", "ask_user_question"), questions=questions("One?"))
    first[-1:-1] = call(("r", "ask_user_question"), questions=questions("Two?", "Three?"))[:-1]
    script = [first, call(("q", "ask_user_question"), questions=questions("Four?")), say("going on")]
    chat = await world.chat(script, client_type="ui")
    await world.until(chat.id, lambda row: row["status"] == "waiting" and row["runner_id"] is None)
    await world.stop()
    results = await _results(world, chat.id)

    assert (await world.texts(chat.id))[-1] == "assistant:going on"
    assert len({one.result["question_id"] for one in results}) == 3
    assert all("answer comes as their message" in one.result["status"] for one in results)
    assert _pushed(world)[:2] == ["Question: Two?", "Question: Four?"]


async def test_the_model_reads_which_question_is_answered(world: World) -> None:
    """Issue 7: an answer may come long after its question, and beside others."""
    chat = await world.chat([say("one"), say("two")], client_type="ui")
    await world.until_rest(chat.id)
    part = QuestionAnswerPart(question_id=UUID(int=5), text="Colour: Red")
    await world.store.transition(chat.id, lambda tx: tx.send((part,), created_by=world.user_id))
    await world.until_rest(chat.id)

    (read,) = world.model.requests[-1].messages[-1].content
    assert read == TextPart(text=f"[answer to question {UUID(int=5)}]\nColour: Red")


async def test_a_question_that_is_too_long_is_an_error(world: World) -> None:
    """Spec 8.6: no truncation may cut the id off."""
    long = questions(*(["?" * 1900] * 8), label="x" * 1900)
    chat = await world.chat([call(("q", "ask_user_question"), questions=long), say("oh")], client_type="ui")
    await world.until_rest(chat.id)
    (result,) = await _results(world, chat.id)

    assert "too long: at most 16384 bytes" in result.result["error"]
    assert not [body for body in _pushed(world) if body.startswith("Question")]


async def test_a_step_that_is_not_committed_is_not_pushed(world: World) -> None:
    """Spec 8.6: none if the commit fails."""
    reached = Gate()
    transition = world.store.transition

    async def fail(chat_id: UUID, apply: Any) -> Any:
        if any(one.role == "assistant" for one in await world.messages(chat_id)):
            reached.reached.set()
            raise LeaseLost("scripted")
        return await transition(chat_id, apply)

    world.store.transition = fail  # type: ignore[method-assign]
    await world.chat([call(("q", "ask_user_question"), questions=questions("One?"))], client_type="ui")
    await reached.wait_reached()
    await world.stop()

    assert _pushed(world) == []


async def test_children_and_chats_of_the_api_have_no_such_tool(world: World) -> None:
    """Spec 8.6, where it is wired: the kind of a chat is its row's."""
    world.model.scripts["do it"] = [say("done")]
    chat = await world.chat([call(("s", "spawn_agent"), prompt="do it"), say("x")], client_type="ui")
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    await world.until_rest(child.id)
    other = await world.chat([say("x")], value="other", client_type="api")
    await world.until_rest(other.id)

    asks = {
        request.messages[0].content[0].text: "ask_user_question" in {tool.name for tool in request.tools}  # type: ignore[union-attr]
        for request in world.model.requests
    }
    assert asks == {"hello": True, "do it": False, "other": False}
    assert child.client_type == "ui"
