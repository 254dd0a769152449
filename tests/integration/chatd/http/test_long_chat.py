"""A chat of two hundred steps through the whole control plane: its history is summarised as it goes."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.client import ApiError, ChatClient
from chatd.store import schema
from chatd.wire import ToolCallPart, ToolResultPart
from tests.integration.chatd.http.site import API, Site, bearer, serving

STEPS = int(os.environ.get("CHATD_LONG_CHAT_STEPS", "200"))
WINDOW = 2_000
# The model asks for an agent that is not there, and is told so, again and again.
SCENARIO = """{"turns": [
  {"when": {"may_call": false}, "times": null, "reply": {"text": ["Asked for agents; none was there."]}},
  {"when": {"contains": "anything?"}, "reply": {"text": ["Nothing."]}},
  {"times": %d, "reply": {"calls": [{"name": "wait_agent", "arguments": {"chat_id": "%s"}}]}},
  {"reply": {"text": ["All asked."]}}
]}"""


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane whose model has a small window and works by a scenario."""
    scenario = tmp_path / "scenario.json"
    scenario.write_text(SCENARIO % (STEPS - 1, UUID(int=1)))
    async with serving(tmp_path / "data", rehearsal_scenario=scenario, context_window=WINDOW) as site:
        yield site


def read_rows(connection: sa.Connection, chat_id: UUID) -> list[sa.RowMapping]:
    """The chat's messages."""
    table = schema.messages
    statement = sa.select(table).where(table.c.chat_id == chat_id).order_by(table.c.id)
    return list(connection.execute(statement).mappings())


async def test_two_hundred_steps_never_fill_the_window(site: Site) -> None:
    """Requirement 000, bug 1: the production wiring, no callback set by a test."""
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        chat = await client.create_chat("Ask for the agent until it comes.")
        seen: set[str] = set()
        async for event in client.stream(chat.id):
            if event.type == "message_part" and isinstance(event.part, ToolCallPart):
                seen.add(event.part.tool_name)
            if event.type == "status" and event.status in {"waiting", "error"}:
                break
    rows = await site.store.read(read_rows, chat.id)
    steps = [row for row in rows if row["role"] == "assistant" and not row["compressed"]]
    summaries = [row for row in rows if row["role"] == "user" and row["compressed"]]

    assert (await site.store.read(read_rows, chat.id))[-1]["content"][0]["text"] == "All asked."
    assert len(steps) == STEPS
    assert len(summaries) >= STEPS // 100
    assert max(row["input_tokens"] for row in steps) < WINDOW
    assert {"wait_agent", "chat_summarized"} <= seen
    assert len({row["content"][0]["text"] for row in summaries}) == 1

    answer = await site.http.get("/metrics", headers=bearer(site.tokens["me"]))
    lines = (await answer.text()).splitlines()
    model = 'model="rehearsal",provider="anthropic"'
    assert f'chatd_compaction_total{{{model},result="success"}} {float(len(summaries))}' in lines
    assert f"chatd_steps_total{{{model}}} {float(STEPS)}" in lines
    assert f'chatd_tool_errors_total{{{model},tool_name="wait_agent"}} {float(STEPS - 1)}' in lines


async def test_a_person_asks_for_a_summary_over_the_api(site: Site) -> None:
    """Issue: manual compaction; 409 while there is nothing to summarise."""
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        chat = await client.create_chat("Anything?")
        await site.until(str(chat.id), "waiting")
        assert (await client.compact(chat.id)).last_error is None
        await site.until(str(chat.id), "waiting")
        *_, asked, told = (await client.list_messages(chat.id, limit=200)).messages
        with pytest.raises(ApiError) as refused:
            await client.compact(chat.id)

    assert [part.type for part in (*asked.content, *told.content)] == ["tool-call", "tool-result"]
    (part,) = told.content
    assert isinstance(part, ToolResultPart)
    assert part.result["source"] == "manual"
    assert refused.value.status == 409


async def test_thresholds_belong_to_a_user_and_a_model(site: Site) -> None:
    """Spec 3.1: 0 to 100; another's are not seen; none is the model's own again."""
    model = site.plane.services.catalog.default_id
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        await client.set_threshold(model, 40)
        await client.set_threshold(model, 50)
        with pytest.raises(ApiError):
            await client.set_threshold(model, 101)
        with pytest.raises(ApiError):
            await client.set_threshold(UUID(int=1), 50)
        assert (await client.thresholds()).thresholds == {model: 50}
        assert await site.ask("GET", "/chats/config/user-compaction-thresholds", who="other") == {
            "thresholds": {}
        }
        await client.set_threshold(model, None)
        assert (await client.thresholds()).thresholds == {}


async def test_metrics_want_a_token(site: Site) -> None:
    """Security: they tell which models are used, and how much."""
    assert await site.status("GET", "/metrics", {}) == 401
    assert await site.status("GET", "/metrics", bearer(site.tokens["agent"])) == 401
    assert await site.status("GET", f"{API}/me", bearer(site.tokens["me"])) == 200
