"""Reasoning efforts, personal models and warnings through the API; what is chosen reaches the vendor."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from chatd.client import ApiError, ChatClient
from chatd.constants import MAX_FILES
from chatd.model_wire import ModelConfig, ModelOverride
from chatd.rehearsal.conversation import Chunk, Conversation, Reply
from chatd.wire import ToolCallPart
from tests.integration.chatd.http.site import Site, serving, text
from tests.support.model_server import model_server

OFFERED = ["low", "medium", "high"]
OPTIONS = {
    name: {"reasoning_efforts": OFFERED, "max_reasoning_effort": "high"}
    for name in ("anthropic", "google", "openai")
} | {"openai-compat": {}}
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane whose models may be asked to think, but for one."""
    async with serving(tmp_path / "data", model_options=OPTIONS, admins=("me",)) as site:
        yield site


@pytest.fixture
async def me(site: Site) -> AsyncIterator[ChatClient]:
    """A client of ``me``, an administrator."""
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        yield client


async def by_vendor(client: ChatClient) -> dict[str, ModelConfig]:
    """The models, by vendor."""
    return {model.provider: model for model in await client.models()}


async def test_models_tell_what_they_offer(me: ChatClient) -> None:
    """Ours: whoever chooses sees what there is."""
    models = await by_vendor(me)

    assert {name: list(model.reasoning_efforts) for name, model in models.items()} == {
        "anthropic": OFFERED, "google": OFFERED, "openai": OFFERED, "openai-compat": [],
    }  # fmt: skip


async def test_an_effort_is_taken_kept_and_told(site: Site, me: ChatClient) -> None:
    """Spec 3: create, send and edit take reasoning_effort; chat and messages tell it."""
    chat = await me.create_chat("say hello", reasoning_effort="low")
    await site.until(str(chat.id), "waiting")
    sent = await me.send(chat.id, "say more", reasoning_effort="high")
    await site.until(str(chat.id), "waiting")
    after_send = await me.get_chat(chat.id)
    assert sent.message is not None
    edited = await me.edit(chat.id, sent.message.id, "say less", reasoning_effort="medium")
    await site.until(str(chat.id), "waiting")
    kept = await me.edit(chat.id, edited.message.id, "say nothing")
    await site.until(str(chat.id), "waiting")
    reset = await me.send(chat.id, "as you like", reasoning_effort=None)
    await site.until(str(chat.id), "waiting")

    assert (chat.last_reasoning_effort, after_send.last_reasoning_effort) == ("low", "high")
    told = [one.message.reasoning_effort if one.message else "?" for one in (sent, edited, kept, reset)]
    assert told == ["high", "medium", "medium", None]
    assert (await me.get_chat(chat.id)).last_reasoning_effort is None
    first = (await me.list_messages(chat.id)).messages[0]
    assert (first.reasoning_effort, first.model_config_id) == ("low", chat.last_model_config_id)


async def test_what_the_model_does_not_offer_is_refused_and_nothing_is_sent(
    site: Site, me: ChatClient
) -> None:
    """Brief: a clear error, on all three routes."""
    models = await by_vendor(me)
    chat = await me.create_chat("say hello")
    await site.until(str(chat.id), "waiting")
    (first, *_) = (await me.list_messages(chat.id)).messages
    plain = str(models["openai-compat"].id)
    tried: list[tuple[Any, dict[str, Any], str]] = [
        (me.create_chat("x", reasoning_effort="max"), {}, "there are: low, medium, high"),
        (me.create_chat("x", reasoning_effort="low", model_config_id=plain), {}, "offers no choice"),
        (me.send(chat.id, "x", reasoning_effort="xhigh"), {}, "there are: low, medium, high"),
        (me.send(chat.id, "x", reasoning_effort="low", model_config_id=plain), {}, "offers no choice"),
        (me.edit(chat.id, first.id, "x", reasoning_effort="max"), {}, "there are: low, medium, high"),
        (me.send(chat.id, "x", reasoning_effort="hard"), {}, "reasoning_effort"),
    ]
    for request, _, expected in tried:
        with pytest.raises(ApiError, match="reasoning_effort") as refused:
            await request
        assert refused.value.status == 400
        assert expected in str(refused.value)
    page = await me.list_messages(chat.id)

    assert [message.role for message in page.messages] == ["user", "assistant"]
    assert len(await me.list_chats()) == 1


async def test_an_effort_that_the_new_model_lacks_is_warned_of(site: Site, me: ChatClient) -> None:
    """Spec 3: warnings; what was chosen before is no reason to refuse."""
    models = await by_vendor(me)
    chat = await me.create_chat("say hello", reasoning_effort="high")
    await site.until(str(chat.id), "waiting")
    plain = await me.send(chat.id, "say more")
    await site.until(str(chat.id), "waiting")
    other = await me.send(chat.id, "say more", model_config_id=str(models["openai-compat"].id))
    await site.until(str(chat.id), "waiting")

    assert plain.warnings == []
    assert other.warnings == [
        "Rehearsal (Chat Completions protocol) does not offer the effort high: its own is used"
    ]


async def _files(me: ChatClient, count: int) -> list[dict[str, str]]:
    return [{"type": "file", "file_id": str(await me.upload(PNG, "image/png"))} for _ in range(count)]


async def test_files_past_the_limit_are_warned_of(site: Site, me: ChatClient) -> None:
    """Spec 3: file link caps are told where they take effect: at creation, sending and editing."""
    body = {"content": [{"type": "text", "text": "say hello"}, *await _files(me, MAX_FILES + 2)]}
    made = await site.ask("POST", "/chats", status=201, json=body)
    path = f"/chats/{made['id']}"
    await site.until(made["id"], "waiting")
    again = await site.ask("GET", path)
    body["content"][1:] = await _files(me, 1)
    sent = await site.ask("POST", path + "/messages", json=body)
    await site.until(made["id"], "waiting")
    body["content"][1:] = await _files(me, 2)
    edited = await site.ask("PATCH", f"{path}/messages/{sent['message']['id']}", json=body)
    await site.until(made["id"], "waiting")

    assert made["warnings"] == ["2 older files were dropped: a chat keeps its newest 50"]
    assert "warnings" not in again
    assert sent["warnings"] == ["1 older file was dropped: a chat keeps its newest 50"]
    assert edited["warnings"] == ["2 older files were dropped: a chat keeps its newest 50"]


async def test_a_queued_message_tells_what_it_will_change(tmp_path: Path) -> None:
    """Brief: nothing of it holds before its turn."""
    scenario = tmp_path / "scenario.json"
    ask = {"calls": [{"name": "ask", "arguments": {}}]}
    turns = [{"when": {"tool": "ask"}, "reply": ask}, {"when": {}, "times": None, "reply": {"text": ["ok"]}}]
    scenario.write_text(json.dumps({"turns": turns}))
    async with (
        serving(tmp_path / "data", model_options=OPTIONS, rehearsal_scenario=scenario) as site,
        ChatClient(site.plane.url, site.tokens["me"]) as client,
    ):
        chat = await client.create_chat("first", unsafe_dynamic_tools=[{"name": "ask"}])
        await site.until(str(chat.id), "requires_action")
        sent = await client.send(chat.id, "second", reasoning_effort="low", plan_mode="plan")
        during = await client.get_chat(chat.id)
        page = await client.list_messages(chat.id)
        call = next(part for part in page.messages[-1].content if isinstance(part, ToolCallPart))
        await client.answer_tools(chat.id, [{"tool_call_id": call.tool_call_id, "output": 1}])
        await site.until(str(chat.id), "waiting")
        after = await client.get_chat(chat.id)

    assert sent.queued_message is not None
    assert sent.queued_message.changes.plan_mode == "plan"
    assert page.queued_messages[0].changes.reasoning_effort == "low"
    assert (during.plan_mode, during.last_reasoning_effort) == (None, None)
    assert (after.plan_mode, after.last_reasoning_effort) == ("plan", "low")


async def test_the_request_that_leaves_has_it(tmp_path: Path) -> None:
    """Brief: from the API's field to the bytes of the vendor's protocol, through the SDK."""

    def reply(_: Conversation) -> Reply:
        return Reply(chunks=(Chunk(text="done"),))

    options = {"openai-compat": {"reasoning_efforts": ["low", "high"], "default_reasoning_effort": "high"}}
    async with (
        model_server(reply) as (url, bodies),
        serving(tmp_path / "data", compat_base_url=url, model_options=options, auto_titles=False) as site,
    ):
        for fields in ({"reasoning_effort": "low"}, {}):
            chat = await site.ask("POST", "/chats", status=201, json=text("x", **fields))
            await site.until(chat["id"], "waiting")

    assert [body["reasoning_effort"] for body in bodies] == ["low", "high"]


async def test_a_persons_model_is_the_default_of_their_chats(site: Site, me: ChatClient) -> None:
    """Spec 3: personal-model-overrides; argument, then personal, then the deployment's."""
    models = await by_vendor(me)
    wish = ModelOverride(model_config_id=models["google"].id, reasoning_effort="low")
    await me.set_model_override("root", wish)
    mine = await me.create_chat("say hello")
    named = await me.create_chat("say hello", model_config_id=str(models["openai"].id))
    hard = await me.create_chat("say hello", reasoning_effort="high")
    theirs = await site.ask("POST", "/chats", who="other", status=201, json=text("say hello"))
    told = await me.model_overrides()
    who = await site.ask("GET", "/me")
    await me.set_model_override("root", None)
    again = await me.create_chat("say hello")
    default = str(await me.default_model())

    def choice(chat: Any) -> tuple[UUID, str | None]:
        return chat.last_model_config_id, chat.last_reasoning_effort

    assert choice(mine) == (models["google"].id, "low")
    assert choice(named) == (models["openai"].id, None)
    assert choice(hard) == (models["google"].id, "high")
    assert theirs["last_model_config_id"] == str(again.last_model_config_id) == default
    assert (told.allowed, told.overrides) == (True, {"root": wish})
    assert (who["default_model_config_id"], who["default_reasoning_effort"]) == (
        str(models["google"].id), "low",
    )  # fmt: skip


async def test_an_administrator_may_switch_personal_models_off(site: Site, me: ChatClient) -> None:
    """Spec 3: GET 200, PUT 204; others 403; what was preferred is kept and does not count meanwhile."""
    models = await by_vendor(me)
    wish = ModelOverride(model_config_id=models["google"].id)
    await me.set_model_override("root", wish)
    async with ChatClient(site.plane.url, site.tokens["other"]) as other:
        with pytest.raises(ApiError) as not_admin:
            await other.set_may_override(allow_users=False)
        before = await other.may_override()
    await me.set_may_override(allow_users=False)
    with pytest.raises(ApiError, match="switched personal model overrides off") as off:
        await me.set_model_override("general", wish)
    chat = await me.create_chat("say hello")
    told = await me.model_overrides()
    await me.set_may_override(allow_users=True)
    later = await me.create_chat("say hello")

    assert (not_admin.value.status, off.value.status, before) == (403, 403, True)
    assert chat.last_model_config_id == await me.default_model()
    assert (told.allowed, told.overrides) == (False, {"root": wish})
    assert later.last_model_config_id == models["google"].id


@pytest.mark.parametrize(
    ("context", "override", "status"),
    [
        ("nowhere", {"model_config_id": "GOOGLE"}, 404),
        ("computer_use", {"model_config_id": "GOOGLE"}, 404),
        ("root", {"model_config_id": str(UUID(int=3))}, 400),
        ("root", {"model_config_id": "GOOGLE", "reasoning_effort": "max"}, 400),
        ("root", {"model_config_id": "GOOGLE", "surprise": 1}, 400),
        ("root", {}, 400),
    ],
)
async def test_a_preference_that_makes_no_sense_is_refused(
    site: Site, me: ChatClient, context: str, override: dict[str, Any], status: int
) -> None:
    """Spec 3: strict bodies; a model and effort that there are."""
    google = str((await by_vendor(me))["google"].id)
    body = {name: google if value == "GOOGLE" else value for name, value in override.items()}
    await site.ask("PUT", f"/chats/config/user-personal-model-overrides/{context}", status=status, json=body)

    assert (await me.model_overrides()).overrides == {}
