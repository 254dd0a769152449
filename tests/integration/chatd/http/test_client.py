"""The Python client against a running control plane, and against the API's description."""

import ast
import inspect
import re
import textwrap
import uuid
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from chatd.admin_client import AdminClient
from chatd.app import make_web_app
from chatd.client import ApiError, ChatClient
from chatd.routes.openapi import build_openapi
from chatd.scopes import Role
from chatd.store import users
from chatd.store.machine import ChatTx
from chatd.store.rows import NewMessage
from chatd.wire import ToolCallPart, ToolResultPart
from tests.integration.chatd.http.site import API, Site

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


@pytest.fixture
async def client(site: Site) -> AsyncIterator[ChatClient]:
    """A client of ``me``."""
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        yield client


async def test_a_chat_from_start_to_end(site: Site, client: ChatClient) -> None:
    """Issue: what the API gives, as models."""
    file_id = await client.upload(PNG, "image/png", name="plän.png")
    chat = await client.create_chat("say hello", key="k", labels={"a": "b"})
    again = await client.create_chat("say hello", key="k")
    seen = []
    async for event in client.stream(chat.id):
        seen.append(event.type)
        if event.type == "message" and event.message.role == "assistant":
            break
    await site.until(str(chat.id), "waiting")
    page = await client.list_messages(chat.id)
    sent = await client.send(chat.id, "say more", busy_behavior="queue")
    await site.until(str(chat.id), "waiting")
    edited = await client.edit(chat.id, page.messages[0].id, "say other")
    await site.until(str(chat.id), "waiting")
    await client.change_chat(chat.id, title="new", pin_order=1)
    (listed,) = await client.list_chats(q="new")

    assert again.id == chat.id
    assert await client.download(file_id) == PNG
    assert seen[0] == "message"
    assert (sent.queued, edited.deleted_message_ids[0]) == (False, page.messages[0].id)
    assert (listed.title, listed.pin_order, listed.labels) == ("new", 1, {"a": "b"})
    assert await client.prompts(chat.id) == ["say other"]
    assert (await client.cost(chat.id))["total_cost_micros"] == 0
    assert any(model.is_default for model in await client.models())
    assert (await client.clear(chat.id)).status == "waiting"


async def test_a_refusal_is_an_error_with_its_status(client: ChatClient, site: Site) -> None:
    """Ours: and a stream of what is not there ends at once."""
    chat = await client.create_chat("say hello")
    await site.until(str(chat.id), "waiting")
    with pytest.raises(ApiError) as caught:
        await client.interrupt(chat.id)
    with pytest.raises(ApiError) as missing:
        await anext(client.stream(UUID(int=3)))

    assert (caught.value.status, caught.value.body["code"]) == (409, "transition_not_allowed")  # type: ignore[index]
    assert missing.value.status == 404


async def test_accounts_from_the_first_user_to_the_last_entry(site: Site) -> None:
    """Ours: what the API gives of accounts, as models; a name may hold what a URL gives a meaning."""
    await site.store.write(users.set_role, "me", Role.ADMIN)
    async with AdminClient(site.plane.url, site.tokens["me"]) as client:
        made = await client.create_user("ann ?#%2f")
        changed = await client.change_user(made.name, role="admin")
        token = await client.create_token("ci", scopes=["read"], expires_in_s=3600)
        await client.revoke_token(token.id)
        (own,) = [one for one in await client.user_tokens("me") if one.id != token.id]
        await client.revoke_user_token("me", own.id)
        with pytest.raises(ApiError) as ended:
            await client.audit()
    site.tokens["me"] = await site.issue("api", "me")
    async with AdminClient(site.plane.url, site.tokens["me"]) as client:
        entries = await client.audit(limit=2)

    assert (changed.role, token.token.startswith("api_")) == ("admin", True)
    assert ended.value.status == 401
    assert [entry.action for entry in entries] == ["token_revoked", "token_revoked"]


def test_every_request_of_the_client_is_described(site: Site) -> None:
    """Issue: checked against the document, so that neither moves alone."""
    described = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path))
        for path, methods in build_openapi(make_web_app(site.plane.services).router)["paths"].items()
        for method in methods
    }
    asked = requests_of(ChatClient) | requests_of(AdminClient)
    assert asked <= described
    streams = {("GET", f"{API}/chats/{{}}/stream"), ("GET", f"{API}/chats/watch")}
    files = {("GET", f"{API}/chats/files/{{}}")}
    assert described == asked | streams | files


def requests_of(kind: type) -> set[tuple[str, str]]:
    """Method and path of every ``_ask`` in a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "_ask"
    ]
    return {(ast.literal_eval(call.args[0]), API + path_of(call.args[1])) for call in calls}


def path_of(node: ast.expr) -> str:
    """A path with ``{}`` in place of what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return str(ast.literal_eval(node))


async def test_a_question_is_open_until_it_is_answered(site: Site, client: ChatClient) -> None:
    """Issue 7: an answer names its question; another answer, or one to nothing, is refused."""
    chat = await client.create_chat("say hello", client_type="ui")
    await site.until(str(chat.id), "waiting")
    assert await client.questions(chat.id) == []
    question_id = await _ask_question(site, chat.id)
    (asked,) = await client.questions(chat.id)
    sent = await client.answer(chat.id, question_id, "Colour: Red")
    await site.until(str(chat.id), "waiting")

    assert (asked.question_id, asked.questions[0].options[0].label) == (question_id, "Red")
    assert sent.message is not None
    assert sent.message.content[0].model_dump()["question_id"] == question_id
    assert await client.questions(chat.id) == []
    for wrong in (question_id, UUID(int=1)):
        with pytest.raises(ApiError, match="not open") as refused:
            await client.answer(chat.id, wrong, "Blue")
        assert refused.value.status == 400
    await client.edit(chat.id, sent.message.id, "never mind")
    await site.until(str(chat.id), "waiting")
    assert [one.question_id for one in await client.questions(chat.id)] == [question_id]


async def _ask_question(site: Site, chat_id: UUID) -> UUID:
    """Put a question into the history, as a step with it does; its id."""
    question_id = uuid.uuid4()
    question = {
        "header": "Colour",
        "question": "Which?",
        "options": [{"label": name, "description": name} for name in ("Red", "Blue")],
    }
    result = {"questions": [question], "question_id": str(question_id), "status": "go on"}
    call = ToolCallPart(tool_call_id="q", tool_name="ask_user_question", args={})
    part = ToolResultPart(tool_call_id="q", tool_name="ask_user_question", result=result)

    def commit(tx: ChatTx) -> None:
        tx._insert([NewMessage(role="assistant", content=(call,)), NewMessage(role="tool", content=(part,))])

    await site.plane.services.store.transition(chat_id, commit)
    return question_id
