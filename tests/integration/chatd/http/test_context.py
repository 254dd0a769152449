"""Context over HTTP: pushed over the link, seen on a chat, compared, refreshed."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ConfigDict

from agentd.wire.link import Empty
from agentd.wire.peer import JsonRpcPeer, RpcError
from chatd.store import pins, schema
from context_push.wire.push import CONTEXT_PUSH, ContextPush, PushAnswer
from tests.contract.store.context import config, instruction, pin_problems, push, skill
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer

OLD, NEW = instruction(text="Be old.\n"), instruction(text="Be new.\n")


async def send(peer: JsonRpcPeer, what: ContextPush) -> PushAnswer:
    """Push as a daemon does."""
    return await peer.call(CONTEXT_PUSH, what, PushAnswer, timeout_s=LIMIT_S)


async def chat(site: Site, chat_id: str, who: str = "owner") -> dict[str, Any]:
    """The chat's context, as clients see it."""
    answer: dict[str, Any] = await site.ask("GET", f"/chats/{chat_id}", who=who)
    return answer.get("context") or {}


async def test_a_chat_shows_what_it_is_pinned_to(site: Site) -> None:
    """Issue: resources as metadata on the single chat, none in the list."""
    async with site.workspace() as peer:
        answer = await send(peer, push(1, OLD, skill("deploy"), config("secret")))
        chat_id = await site.quiet_chat("owner")
    context = await chat(site, chat_id)
    (listed,) = await site.ask("GET", "/chats", who="owner")

    assert answer == PushAnswer(accepted=True)
    assert (context["pinned"], context["dirty"]) == (True, False)
    told = {resource["source"]: resource for resource in context["resources"]}
    assert told["/w/AGENTS.md"]["description"] == "Be old."
    assert told["/w/skills/deploy"]["skill_name"] == "deploy"
    assert told["/w/.mcp.json"]["kind"] == "mcp_config"
    assert "body" not in told["/w/AGENTS.md"]
    assert "resources" not in listed["context"]


async def test_a_change_is_seen_compared_and_taken(site: Site) -> None:
    """Vector 52 through the API: dirty on the list's stream, the diff, then the refresh."""
    async with site.workspace() as peer:
        await send(peer, push(1, OLD, skill("gone")))
        chat_id = await site.quiet_chat("owner")
        path = f"{API}/chats/watch"
        async with site.http.ws_connect(path, headers=bearer(site.tokens["owner"])) as watching:
            await send(peer, push(2, NEW, skill("new")))
            async with asyncio.timeout(LIMIT_S):
                while not _is_dirty(await watching.receive_json()):
                    continue
    difference = await site.ask("GET", f"/chats/{chat_id}/context/diff", who="owner")
    dirty = await chat(site, chat_id)
    refreshed = await site.ask("PUT", f"/chats/{chat_id}/context", who="owner")
    after = await site.ask("GET", f"/chats/{chat_id}/context/diff", who="owner")

    assert dirty["dirty"] is True
    assert dirty["dirty_since"]
    assert [r["source"] for r in difference["added"]] == ["/w/skills/new"]
    assert [r["source"] for r in difference["removed"]] == ["/w/skills/gone"]
    assert "-Be old.\n+Be new.\n" in difference["modified"][0]["diff"]
    assert refreshed["context"]["dirty"] is False
    assert {r["source"] for r in refreshed["context"]["resources"]} == {"/w/AGENTS.md", "/w/skills/new"}
    assert after == {"added": [], "removed": [], "modified": []}
    assert await site.store.read(pin_problems) == []


def _is_dirty(frames: list[dict[str, Any]]) -> bool:
    return any((frame["chat"].get("context") or {}).get("dirty") for frame in frames)


async def test_a_chat_without_a_workspace_has_no_context(site: Site) -> None:
    """Spec 5.6: a refresh of it clears, which changes nothing."""
    chat_id = await site.quiet_chat()
    refreshed = await site.ask("PUT", f"/chats/{chat_id}/context")

    assert await chat(site, chat_id, "me") == {}
    assert "context" not in refreshed
    assert await site.ask("GET", f"/chats/{chat_id}/context/diff") == {
        "added": [],
        "removed": [],
        "modified": [],
    }


@pytest.mark.parametrize("path", ["context", "context/diff"])
async def test_other_people_s_chats_are_not_there(site: Site, path: str) -> None:
    """Ours: 404 for what the caller may not see."""
    chat_id = await site.new_chat(who="owner")
    method = "PUT" if path == "context" else "GET"

    assert (await site.ask(method, f"/chats/{chat_id}/{path}", who="other", status=404))[
        "code"
    ] == "not_found"


async def test_a_push_beyond_the_bounds_is_refused_whole(site: Site) -> None:
    """Spec 5.3: nothing of it is kept; a push that is no push is refused as parameters."""
    good, bad = push(1, OLD), push(2, NEW, aggregate_hash="00" * 32)
    async with site.workspace() as peer:
        await send(peer, good)
        refused = await send(peer, bad)
        old = await send(peer, good)
        with pytest.raises(RpcError) as caught:
            await peer.call(CONTEXT_PUSH, Empty(), PushAnswer, timeout_s=LIMIT_S)
    stored = await site.store.read(pins.agent_resources, site.agent_id)

    assert (refused.accepted, "aggregate" in (refused.reason or "")) == (False, True)
    assert (old.accepted, "not newer" in (old.reason or "")) == (False, True)
    assert caught.value.code == "invalid_params"
    assert stored == [OLD]


async def test_the_kill_switch_answers_as_one_that_knows_no_pushes(site: Site) -> None:
    """Spec 5.5: unimplemented; the daemon then stops for this connection."""
    services = site.plane.services
    object.__setattr__(services, "settings", services.settings.model_copy(update={"context_push": False}))
    async with site.workspace() as peer:
        with pytest.raises(RpcError) as caught:
            await send(peer, push(1, OLD))

    assert caught.value.code == "unknown_method"


async def test_why_there_is_no_context_is_told(site: Site) -> None:
    """Spec 5.6: the gate's reason, on the chat."""
    async with site.workspace():
        chat_id = await site.quiet_chat("owner")
    context = await chat(site, chat_id)

    assert context["pinned"] is False
    assert "does not push" in context["error"]


async def test_secrets_never_reach_the_database(site: Site) -> None:
    """Spec 5.2: a daemon of another make might send them; unknown fields are not kept."""

    class Raw(Empty):
        model_config = ConfigDict(extra="allow")

    raw = push(1, config("x")).model_dump(mode="json")
    raw["resources"][0]["body"]["content"] = "hunter2"
    async with site.workspace() as peer:
        answer = await peer.call(CONTEXT_PUSH, Raw(**raw), PushAnswer, timeout_s=LIMIT_S)

    def bodies(connection: sa.Connection) -> str:
        return str(connection.execute(sa.select(sa.cast(schema.agent_context.c.body, sa.Text))).all())

    assert answer.accepted
    assert await site.store.read(bodies) == '[(\'{"kind": "mcp_config"}\',)]'
