"""
One user's things from another's hands, on every route of the application.

The table says of each path whose it is; a route that is not in it fails the first test, so nobody adds one
without saying who may use it.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.scopes import Role
from chatd.store import schema, users
from tests.integration.chatd.http.site import API, UPGRADE, Site, bearer, serving, text

pytestmark = pytest.mark.attack
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32
CHAT = f"{API}/chats/{{chat_id}}"

# Names something that belongs to somebody: it does not exist for others.
THEIRS = {
    *(CHAT + path for path in (
        "", "/acl", "/clear", "/compact", "/context", "/context/diff", "/cost", "/desktop",
        "/desktop/control", "/desktop/shares", "/desktop/shares/{share_id}", "/desktop/status",
        "/interrupt", "/mcp", "/messages", "/messages/{message_id}", "/prompts", "/questions",
        "/queue/{queued_id}", "/queue/{queued_id}/promote", "/reconcile-invalid", "/stream",
        "/title/propose", "/tool-results", "/why",
    )),
    f"{API}/agents/{{agent}}/desktop",
    f"{API}/chats/files/{{file_id}}",
    f"{API}/chats/files/{{file_id}}/download-url",
    f"{API}/tokens/{{token_id}}",
    f"{API}/sessions/{{token_id}}",
}  # fmt: skip
# About the caller, who is not named in the path: nothing of others is in the answer.
OWN = {
    *(f"{API}/{path}" for path in (
        "chats", "chats/by-workspace", "chats/config/user-compaction-thresholds",
        "chats/config/user-compaction-thresholds/{model_config_id}", "chats/config/user-prompt",
        "chats/config/user-personal-model-overrides",
        "chats/config/user-personal-model-overrides/{context}",
        "chats/files", "chats/usage-limits/status", "chats/watch", "login-tokens", "logout", "me",
        "push/subscriptions", "push/test", "sessions", "tokens", "workspaces",
    )),
}  # fmt: skip
# The same for everybody; only administrators change it.
COMMON = {
    *(f"{API}/{path}" for path in (
        "chats/config/auto-archive-days", "chats/config/default-model",
        "chats/config/personal-model-overrides",
        "chats/config/plan-mode-instructions", "chats/config/retention-days",
        "chats/config/system-prompt", "chats/models", "groups", "groups/{group}", "mcp-servers",
        "mcp-servers/{server_id}", "push/key",
    )),
    "/metrics",
}  # fmt: skip
# For administrators alone, also to read.
ADMINISTRATION = {
    *(f"{API}/{path}" for path in (
        "audit", "chats/usage-limits", "chats/usage-limits/group-overrides/{group}",
        "chats/usage-limits/overrides/{user}", "users", "users/{user}", "users/{user}/identities",
        "users/{user}/login-tokens", "users/{user}/tokens", "users/{user}/tokens/{token_id}",
    )),
}  # fmt: skip
# For workspaces, by their own token.
AGENTS = {"/api/agent/link", "/api/agent/streams/{stream_id}"}
# A replica's own credential; tests/integration/chatd/replicas/test_registry.py tries all others.
REPLICAS = {
    "/api/replica/whoami", "/api/replica/calls", "/api/replica/parts", "/api/replica/streams/{stream_id}",
}  # fmt: skip
# The token in the path is the credential.
LINKS = {"/share/{token}", "/share/{token}/status", "/share/{token}/desktop", "/download/{token}"}
PUBLIC = {
    "/", "/assets", "/sw.js", "/chats/{chat_id}", "/healthz", "/readyz", "/login", "/api/openapi.json",
    "/api/docs", "/login/methods", "/login/oidc", "/login/oidc/callback",
}  # fmt: skip

BODIES: dict[str, Any] = {
    CHAT: {"title": "stolen"},
    f"{CHAT}/acl": {"users": {"other": "read"}},
    f"{CHAT}/messages": text("stolen"),
    f"{CHAT}/messages/{{message_id}}": text("stolen"),
    f"{CHAT}/desktop/shares": {},
    f"{CHAT}/desktop/control": {"wish": "take", "seat": "x"},
    f"{CHAT}/tool-results": {"results": []},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loot:
    """What ``owner`` has, by the names of paths' variables."""

    ids: dict[str, str]

    def fill(self, path: str, **other: str) -> str:
        """A path to it."""
        return path.format(**(self.ids | other))

    def is_told(self, answer: str) -> list[str]:
        """What of it stands in an answer."""
        names = {name: value for name, value in self.ids.items() if len(value) > 20}
        return [name for name, value in names.items() if value in answer]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """Two strangers: ``owner``, who has things, and ``other``."""
    async with serving(tmp_path / "data") as site:
        yield site


@pytest.fixture
async def loot(site: Site) -> Loot:
    """A chat at work with messages, one of them waiting, a file, a link to its desktop, tokens, a session."""
    headers = bearer(site.tokens["owner"]) | {"Content-Type": "image/png"}
    async with site.http.post(f"{API}/chats/files", data=PNG, headers=headers) as answer:
        file_id = (await answer.json())["id"]
    body = {"content": [{"type": "text", "text": "hello"}, {"type": "file", "file_id": file_id}]}
    chat_id = (await site.ask("POST", "/chats", who="owner", status=201, json=body))["id"]
    queued = await site.ask("POST", f"/chats/{chat_id}/messages", who="owner", json=text("later"), status=200)
    share = await site.ask("POST", f"/chats/{chat_id}/desktop/shares", who="owner", status=201, json={})
    await site.issue("session", "owner")
    (session,) = await site.ask("GET", "/sessions", who="owner")
    tokens = await site.ask("GET", "/tokens", who="owner")
    messages = (await site.ask("GET", f"/chats/{chat_id}/messages", who="owner"))["messages"]
    return Loot(
        ids={
            "chat_id": chat_id,
            "file_id": file_id,
            "share_id": share["id"],
            "session_id": session["id"],
            "token_id": next(token["id"] for token in tokens if token["kind"] == "api"),
            "message_id": str(messages[0]["id"]),
            "queued_id": str(queued["queued_message"]["id"]),
            "agent": "box",
        }
    )


async def state(site: Site) -> str:
    """What a stranger could have changed: all but what a chat at work changes by itself."""

    def read(connection: sa.Connection) -> list[Any]:
        chats, tokens = schema.chats.c, schema.api_tokens.c
        columns = [
            [chats.title, chats.labels, chats.archived, chats.pin_order, chats.agent_id, chats.plan_mode],
            [chats.last_read_message_id, chats.mcp_server_ids, chats.compaction_requested_at],
            [tokens.id, tokens.revoked_at],
            [schema.messages.c.id, schema.messages.c.deleted, schema.messages.c.content],
            [
                schema.queued_messages.c.id,
                schema.queued_messages.c.position,
                schema.queued_messages.c.content,
            ],
            [schema.files.c.id, schema.files.c.chat_id],
            [schema.desktop_shares.c.id, schema.desktop_shares.c.revoked_at],
            [schema.chat_readers.c.chat_id, schema.chat_readers.c.user_id],
        ]
        return [sorted(map(repr, connection.execute(sa.select(*some)))) for some in columns]

    return json.dumps(await site.store.read(read))


def routes(site: Site, paths: set[str]) -> list[tuple[str, str]]:
    """Method and path of the routes below *paths*."""
    return [(method, path) for method, path in site.routes() if path in paths]


def test_no_path_is_of_two_kinds() -> None:
    """Ours: the table is one."""
    kinds = [THEIRS, OWN, COMMON, ADMINISTRATION, AGENTS, REPLICAS, LINKS, PUBLIC]

    assert sum(map(len, kinds)) == len(set().union(*kinds))


async def test_every_route_is_somebody_s(site: Site) -> None:
    """DESIGN 8: a route that is not in the table here has no rule, and is not to be."""
    known = THEIRS | OWN | COMMON | ADMINISTRATION | AGENTS | REPLICAS | LINKS | PUBLIC
    found = {path for _, path in site.routes()}

    assert found - known == set(), "say in the table of this file who may use it"
    assert known - found <= {"/assets"}


@pytest.mark.parametrize("how", ["token", "session", "upgrade"])
async def test_what_is_another_s_does_not_exist(site: Site, loot: Loot, how: str) -> None:
    """DESIGN 8: 404 with every method, by token, by cookie and for upgrades; nothing is told or changed."""
    headers = bearer(site.tokens["other"])
    if how == "session":
        cookie = f"agentd_session={await site.issue('session', 'other')}"
        headers = {"Cookie": cookie, "Origin": site.plane.url}
    elif how == "upgrade":
        headers |= UPGRADE
    before, wrong = await state(site), []
    for method, path in routes(site, THEIRS):
        token_id = loot.ids["session_id" if "/sessions/" in path else "token_id"]
        url = loot.fill(path, token_id=token_id)
        async with site.http.request(method, url, headers=headers, json=BODIES.get(path)) as answer:
            told = await answer.text()
        if answer.status != 404 or loot.is_told(told):
            wrong.append((method, path, answer.status, told[:200]))

    assert wrong == []
    assert await state(site) == before


async def test_another_s_rows_are_not_reached_through_one_s_own_chat(site: Site, loot: Loot) -> None:
    """Ours: the id in the middle of the path is one's own, the one at its end is not."""
    own = await site.quiet_chat("other")
    before = await state(site)
    paths = {path for path in THEIRS if path.startswith(CHAT) and path.count("{") == 2}
    found = {
        (method, path): await site.status(
            method, loot.fill(path, chat_id=own), bearer(site.tokens["other"]), json=BODIES.get(path)
        )
        for method, path in routes(site, paths)
    }

    assert len(found) == 4
    assert set(found.values()) <= {400, 404, 409}, found
    assert await state(site) == before


async def test_ids_in_bodies_and_queries_are_one_s_own(site: Site, loot: Loot) -> None:
    """Ours: another's file, workspace, chat or reader can't be named either."""
    own = await site.quiet_chat("other")
    file = {"content": [{"type": "file", "file_id": loot.ids["file_id"]}]}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/chats", {"json": file}),
        ("POST", f"/chats/{own}/messages", {"json": file}),
        ("POST", "/chats", {"json": text("x", workspace_id=str(site.agent_id))}),
        ("PATCH", f"/chats/{own}", {"json": {"workspace_id": str(site.agent_id)}}),
        ("GET", "/chats", {"params": {"after_id": loot.ids["chat_id"]}}),
        ("PATCH", f"/chats/{own}/acl", {"json": {"users": {"other": "read"}}}),
    ]
    before = await state(site)
    found = [
        await site.status(method, API + path, bearer(site.tokens["other"]), **request)
        for method, path, request in cases
    ]

    assert set(found) <= {400, 404}, found
    assert await state(site) == before


async def test_what_is_about_the_caller_tells_of_nobody_else(site: Site, loot: Loot) -> None:
    """DESIGN 8: a user sees only what is hers, whatever she asks about."""
    for method, path in routes(site, OWN | COMMON):
        if method != "GET" or "{" in path or path.endswith("/watch"):
            continue
        for query in ("", "?q=source:shared_with_me", "?q=archived:true", "?limit=200"):
            async with site.http.get(path + query, headers=bearer(site.tokens["other"])) as answer:
                told = await answer.text()
            assert loot.is_told(told) == [], (path, told)
            assert str(site.agent_id) not in told, path


async def test_the_list_s_stream_tells_of_one_s_own_chats_only(site: Site, loot: Loot) -> None:
    """Ours: while another's chats change, hers is what comes."""
    async with site.http.ws_connect(f"{API}/chats/watch", headers=bearer(site.tokens["other"])) as socket:
        await site.ask(
            "POST", f"/chats/{loot.ids['chat_id']}/messages", who="owner", json=text("still there")
        )
        own = await site.new_chat(who="other")
        seen = ""
        while own not in seen:
            seen += await socket.receive_str(timeout=30)

    assert loot.is_told(seen) == []


async def test_a_reader_reads_and_no_more(site: Site, loot: Loot) -> None:
    """Spec 3: of a chat that was shared, every route that changes something is 403, and so is its desktop."""
    patch = loot.fill(f"{CHAT}/acl")
    await site.status("PATCH", patch, bearer(site.tokens["owner"]), json={"users": {"other": "read"}})
    before, found = await state(site), {}
    for method, path in routes(site, {path for path in THEIRS if path.startswith(CHAT)}):
        headers = bearer(site.tokens["other"]) | (UPGRADE if path.endswith("/desktop") else {})
        if method in {"GET", "HEAD"} and not path.endswith(("/desktop", "/shares", "/acl")):
            continue
        found[method, path] = await site.status(method, loot.fill(path), headers, json=BODIES.get(path))

    assert set(found.values()) == {403}, found
    assert await state(site) == before


async def test_an_administrator_reads_no_chat_of_others(site: Site, loot: Loot) -> None:
    """Ours: to administer is not to read along: chats, files and desktops stay their owner's."""
    await site.store.write(users.set_role, "other", Role.ADMIN)
    found = {
        (method, path): await site.status(
            method, loot.fill(path), bearer(site.tokens["other"]), json=BODIES.get(path)
        )
        for method, path in routes(site, THEIRS - {f"{API}/sessions/{{token_id}}"})
    }

    assert set(found.values()) == {404}, found


async def test_nobody_but_a_replica_gets_in_where_replicas_talk(site: Site) -> None:
    """Ours: not an administrator, not a workspace, not by a guess at a credential or another scheme."""
    await site.store.write(users.set_role, "other", Role.ADMIN)
    cookie = f"agentd_session={await site.issue('session', 'other')}"
    tried: list[dict[str, str]] = [
        {},
        bearer(site.tokens["other"]),
        bearer(site.tokens["agent"]),
        {"Cookie": cookie, "Origin": site.plane.url},
        {"Authorization": f"Replica {site.ids['other']}.{site.tokens['other']}"},
        {"Authorization": f"Replica {UUID(int=0)}."},
        {"Authorization": "Replica x.y"},
        {"Authorization": f"Bearer {UUID(int=0)}.x"},
    ]
    found = {
        (method, path, number): await site.status(method, path.format(stream_id="s"), headers | UPGRADE)
        for method, path in routes(site, REPLICAS)
        for number, headers in enumerate(tried)
    }

    assert len(found) >= 4 * len(tried)
    assert set(found.values()) == {401}, found
