"""Calls that the vendor wants a person to allow first."""

import pytest

from agentd.wire.content import ImageContent, ToolResult
from agentd.wire.link import ToolCallParams
from chatd.provider.openai_responses_prompt import build_input
from chatd.provider.protocol import Finished, PartDone
from chatd.store import queries
from chatd.wire import ToolCallPart, ToolResultPart
from tests.integration.chatd.core.world import Item, World, say

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
CHECK = {"id": "sc_1", "code": "sensitive_domain", "message": "A bank"}
ITEM = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "actions": [{"type": "click", "button": "left", "x": 0, "y": 0}],
    "pending_safety_checks": [CHECK],
    "status": "completed",
}
CALL = ToolCallPart(
    tool_call_id="c1",
    tool_name="computer",
    args={"actions": [{"action": "left_click", "coordinate": [0, 0]}], "model_size": [1280, 800]},
    needs_approval=("A bank",),
    provider_metadata={"openai": ITEM},
)
SCRIPT: list[Item] = [PartDone(CALL), Finished(reason="tool-calls")]


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_call_waits_until_a_person_allows_it(world: World, *, is_allowed: bool) -> None:
    """Issue: paused for the person; allowed it runs and is acknowledged, refused it never runs."""

    async def act(_: ToolCallParams) -> ToolResult:
        return ToolResult(content=(ImageContent(data=PNG, mime_type="image/png"),))

    world.workspace.handlers = {"computer": act}
    chat = await world.chat([list(SCRIPT), say("done")], agent_id=world.agent_id, mode="computer_use")
    await world.until(chat.id, lambda row: row["status"] == "requires_action")
    assert world.workspace.calls == []
    snapshot = await world.store.read(queries.snapshot_since, chat.id, 0)
    assert [call.needs_approval for call in snapshot.pending] == [("A bank",)]
    given = [ToolResultPart(tool_call_id="c1", tool_name="", result={"approved": is_allowed})]
    await world.store.transition(chat.id, lambda tx: tx.complete_requires_action(given))
    await world.until_rest(chat.id)

    assert len(world.workspace.calls) == is_allowed
    items = build_input(world.model.requests[-1])
    kinds = [item["type"] for item in items]
    if is_allowed:
        assert kinds == ["message", "computer_call", "computer_call_output"]
        assert items[2]["acknowledged_safety_checks"] == [CHECK]
    else:
        assert kinds == ["message", "message", "message"]
        assert "did not allow" in str(items[2])


async def test_a_stop_ends_the_wait_for_a_person(world: World) -> None:
    """Ours: as it ends the wait for a client."""
    chat = await world.chat([list(SCRIPT), say("done")], agent_id=world.agent_id, mode="computer_use")
    await world.until(chat.id, lambda row: row["status"] == "requires_action")
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:c1", "tool:c1!", "assistant:done"]
