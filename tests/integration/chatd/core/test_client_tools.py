"""Tools that the chat's client runs, and edits of a chat at work."""

from datetime import timedelta

import pytest

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.constants import REQUIRES_ACTION_S
from chatd.provider.protocol import TextDelta
from chatd.wire import ToolResultPart
from tests.contract.store.bench import CLIENT_TOOL, text
from tests.integration.chatd.core.world import Gate, World, call, output, say


async def test_the_turn_waits_for_the_client_and_goes_on_with_its_answer(world: World) -> None:
    """Spec 6.4: our own calls are run first; then nobody owns the chat until the client answers."""

    async def tool(params: ToolCallParams) -> ToolResult:
        return output(params.name)

    world.workspace.handlers = {"tool": tool}
    script = [call(("a", "client"), ("b", "tool")), say("done")]
    chat = await world.chat(script, agent_id=world.agent_id, dynamic_tools=(CLIENT_TOOL,))
    row = await world.until(chat.id, lambda row: row["status"] == "requires_action")
    given = [ToolResultPart(tool_call_id="a", tool_name="client", result={"x": 1})]
    await world.store.transition(chat.id, lambda tx: tx.complete_requires_action(given))
    await world.until_rest(chat.id)

    assert row["worker_id"] is None
    assert await world.texts(chat.id) == ["user:hello", "assistant:a", "tool:b", "tool:a", "assistant:done"]
    assert [tool.name for tool in world.model.requests[0].tools if tool.name == "client"] == ["client"]


async def test_a_client_that_never_answers_is_not_waited_for(world: World) -> None:
    """Spec 8: after five minutes its calls get errors and the model goes on."""
    script = [call(("a", "client")), say("without it")]
    chat = await world.chat(script, dynamic_tools=(CLIENT_TOOL,))
    await world.until(chat.id, lambda row: row["status"] == "requires_action")
    clock = world.hooked._clock
    world.hooked._clock = lambda: clock() + timedelta(seconds=REQUIRES_ACTION_S)
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:a", "tool:a!", "assistant:without it"]


@pytest.mark.past_bug(13)
async def test_an_edit_of_a_chat_at_work_drops_the_answer_under_way(world: World) -> None:
    """Spec 9, complaint 13: what the old step still writes is refused; the new history is answered."""
    gate = Gate()
    chat = await world.chat([[TextDelta("for the old"), gate], say("unused")])
    await gate.wait_reached()
    (first,) = await world.messages(chat.id)
    world.model.scripts["anew"] = [say("for the new")]
    await world.store.transition(chat.id, lambda tx: tx.edit(first.id, text("anew")))
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:anew", "assistant:for the new"]


async def test_an_edit_of_a_stopping_chat_is_answered(world: World) -> None:
    """Ours: the runner that was about to finish the interruption finds the chat taken away."""
    gate = Gate()
    chat = await world.chat([[TextDelta("half"), gate]])
    await gate.wait_reached()
    (first,) = await world.messages(chat.id)
    world.model.scripts["anew"] = [say("new")]

    await world.interrupt(chat.id)
    await world.store.transition(chat.id, lambda tx: tx.edit(first.id, text("anew")))
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:anew", "assistant:new"]
