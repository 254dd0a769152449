"""Users, tokens, sessions, logging in and out, how often one may ask, and the audit log of it all."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import Empty
from agentd.wire.peer import RpcError
from chatd.routes import permission
from chatd.scopes import Role, Scope, needed_scope
from chatd.store import schema, tokens, users
from tests.integration.chatd.http.site import API, LIMIT_S, UPGRADE, Site, bearer, serving
from tests.integration.chatd.http.test_auth import BODIES, fill, user_routes


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane that ``me`` administers by CHATD_ADMINS and ``owner`` by role."""
    async with serving(tmp_path / "data", admins=("me",)) as site:
        await site.store.write(users.set_role, "owner", Role.ADMIN)
        yield site


async def make_token(site: Site, *, who: str = "me", **fields: Any) -> dict[str, Any]:
    """A token made through the API."""
    made: dict[str, Any] = await site.ask("POST", "/tokens", who=who, status=201, json={"name": "x"} | fields)
    return made


async def log_in(site: Site, who: str = "me", **headers: str) -> dict[str, str]:
    """The headers of a browser that just followed a login link."""
    link = (await site.ask("POST", "/login-tokens", who=who, status=201))["path"]
    async with site.http.get(link, allow_redirects=False, headers=headers) as answer:
        assert answer.status == 303
        cookie = answer.cookies["agentd_session"].value
    return {"Cookie": f"agentd_session={cookie}", "Origin": site.plane.url}


async def trail(site: Site, **query: str) -> list[tuple[str, str, str | None]]:
    """Action, actor and target of the audit log, the oldest first."""
    rows = await site.ask("GET", "/audit", params=query)
    return [(row["action"], row["actor"], row.get("target")) for row in reversed(rows)]


async def test_administrators_make_and_change_users(site: Site) -> None:
    """Ours: by role or by CHATD_ADMINS; everything is in the audit log."""
    made = await site.ask("POST", "/users", status=201, json={"name": "ann", "role": "member"})
    await site.ask("POST", "/users", status=400, json={"name": "ann"})
    await site.ask("PATCH", "/users/ann", who="owner", json={"role": "admin"})
    await site.ask("PATCH", "/users/ann", json={"disabled": True})
    await site.ask("POST", "/users/ann/login-tokens", status=404)
    await site.ask("PATCH", "/users/ann", json={"disabled": False})
    await site.ask("PATCH", "/users/ann", status=400, json={})
    await site.ask("PATCH", "/users/nobody", status=404, json={"role": "admin"})
    await site.ask("PATCH", "/users/ann", json={"role": "member"})
    await site.ask("PATCH", "/users/owner", status=409, json={"role": "member"})
    login = await site.ask("POST", "/users/ann/login-tokens", status=201)
    listed = {user["name"]: user["role"] for user in await site.ask("GET", "/users")}

    assert (made["role"], login["path"].startswith("/login?token=login_")) == ("member", True)
    assert listed == {"ann": "member", "me": "member", "other": "member", "owner": "admin"}
    assert await trail(site) == [
        ("user_made", "me", "ann"),
        ("role_changed", "owner", "ann"),
        ("user_disabled", "me", "ann"),
        ("user_enabled", "me", "ann"),
        ("role_changed", "me", "ann"),
        ("login_url_made", "me", "ann"),
    ]


@pytest.mark.attack
async def test_a_member_administers_nothing(site: Site) -> None:
    """Ours: every route of administrators is 403 for a member, and that is written down."""
    paths = [
        (method, path)
        for method, path in user_routes(site)
        if path.startswith((f"{API}/users", f"{API}/audit"))
        or (method not in {"GET", "HEAD"} and path.startswith((f"{API}/groups", f"{API}/mcp-servers")))
    ]
    found = {
        (method, path): await site.status(method, fill(path), bearer(site.tokens["other"]), json={})
        for method, path in paths
    }

    assert len(paths) >= 12
    assert set(found.values()) == {403}
    assert len(await trail(site, action="admin_refused")) == len(paths)


@pytest.mark.attack
async def test_a_narrow_token_opens_nothing_else(site: Site) -> None:
    """Ours: of all routes, a token opens those of its scope; generated from the route table."""
    await site.store.write(users.set_role, "me", Role.ADMIN)
    narrow = {scope: await make_token(site, scopes=[scope]) for scope in Scope}
    wrong = []
    for scope, token in narrow.items():
        for method, path in user_routes(site):
            status = await site.status(method, fill(path), bearer(token["token"]), json=BODIES.get(path))
            if (status == 403) != (needed_scope(method, fill(path)) is not scope):
                wrong.append((scope.value, method, path, status))

    # What is for administrators is refused to every scope but theirs, too.
    assert [case for case in wrong if case[3] != 403] == []
    assert {case[2].removeprefix(API).split("/")[1] for case in wrong} <= {
        *("groups", "mcp-servers", "chats"),
        # A session logs out; a narrow token logs nobody in.
        *("logout", "login-tokens"),
    }


@pytest.mark.attack
async def test_no_token_grows_by_making_another(site: Site) -> None:
    """Ours: neither in scope nor in time, nor by logging a browser in."""
    narrow = (await make_token(site, scopes=["account", "read"], expires_in_s=3600))["token"]
    site.tokens["narrow"] = narrow
    site.tokens["ending"] = (await make_token(site, expires_in_s=3600))["token"]
    await site.ask("POST", "/tokens", who="narrow", status=403, json={"name": "y"})
    await site.ask("POST", "/tokens", who="narrow", status=403, json={"name": "y", "scopes": ["admin"]})
    child = await make_token(site, who="narrow", scopes=["read"], expires_in_s=0)
    for who in ("narrow", "ending"):
        await site.ask("POST", "/login-tokens", who=who, status=403)
        await site.ask("POST", "/logout", who=who, status=403)

    assert child["scopes"] == ["read"]
    assert child["expires_at"] < (await make_token(site, expires_in_s=7200))["expires_at"]


SENSELESS: tuple[dict[str, Any], ...] = (
    {},
    {"name": ""},
    {"name": "x", "scopes": []},
    {"name": "x", "scopes": ["all"]},
    {"name": "x", "expires_in_s": 1},
    {"name": "x", "expires_in_s": -1},
    {"name": "x", "expires_in_s": True},
    {"name": "x", "expires_in_s": 10**12},
    {"name": "x", "kind": "session"},
    {"name": "x", "kind": "login"},
    {"name": "x", "kind": "agent"},
    {"name": "x", "kind": "agent", "workspace": "w", "scopes": ["read"]},
    {"name": "x", "workspace": "w"},
)


async def test_a_token_that_makes_no_sense_is_refused(site: Site) -> None:
    """Ours: with the field's name; nothing is made."""
    for body in SENSELESS:
        await site.ask("POST", "/tokens", status=400, json=body)

    assert [token["id"] for token in await site.ask("GET", "/tokens") if token.get("name")] == []


async def test_a_token_is_seen_used_and_revoked(site: Site) -> None:
    """Ours: its secret once; when it was used; afterwards it is nothing."""
    made = await make_token(site, scopes=["read"])
    assert await site.status("GET", f"{API}/me", bearer(made["token"])) == 200
    listed = {token["id"]: token for token in await site.ask("GET", "/tokens")}
    seen = listed[made["id"]]
    await site.ask("DELETE", f"/tokens/{made['id']}", who="other", status=404)
    assert await site.status("DELETE", f"{API}/tokens/{made['id']}", bearer(site.tokens["me"])) == 204

    assert "token" not in seen
    assert seen["used_at"] >= seen["created_at"]
    assert await site.status("GET", f"{API}/me", bearer(made["token"])) == 401
    await site.ask("DELETE", f"/tokens/{made['id']}", status=404)
    assert [(what, target) for what, _, target in await trail(site)] == [
        ("token_made", "x"),
        ("token_revoked", made["id"]),
    ]


async def test_an_agent_token_opens_one_workspace_s_link(site: Site) -> None:
    """Ours: made with its workspace; nothing of the API is open to it."""
    made = await make_token(site, who="owner", kind="agent", workspace="builder")
    site.tokens["agent"] = made["token"]
    async with site.workspace():
        workspaces = {
            one["name"]: one["connected"] for one in await site.ask("GET", "/workspaces", who="owner")
        }

    assert workspaces == {"box": False, "builder": True}
    assert await site.status("GET", f"{API}/me", bearer(made["token"])) == 401


@pytest.mark.attack
async def test_what_a_revoked_token_opened_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 8: authorisation is looked at again while a long stream runs: streams, the list, and links."""
    monkeypatch.setattr(permission, "RECHECK_S", 0.05)
    chat_id = await site.quiet_chat()
    made = await make_token(site)
    agent = await make_token(site, kind="agent", workspace="w")
    sse = await site.http.get(f"{API}/chats/{chat_id}/stream", headers=bearer(made["token"]))
    sockets = [
        await site.http.ws_connect(path, headers=bearer(token["token"]))
        for path, token in (
            (f"{API}/chats/{chat_id}/stream", made),
            (f"{API}/chats/watch", made),
            ("/api/agent/link", agent),
        )
    ]
    for token in (made, agent):
        await site.status("DELETE", f"{API}/tokens/{token['id']}", bearer(site.tokens["me"]))
    async with asyncio.timeout(LIMIT_S):
        await sse.content.read()
        for socket in sockets:
            async for _ in socket:
                pass

    assert [socket.close_code for socket in sockets] == [1008, 1008, 1008]


async def test_a_browser_logs_in_is_seen_and_logs_out(site: Site) -> None:
    """Ours: a session is a row that can be ended from elsewhere, or by itself."""
    first, second = await log_in(site, **{"User-Agent": "Firefox"}), await log_in(site)
    async with site.http.get(f"{API}/sessions", headers=first) as answer:
        listed = await answer.json()
    (own,) = [session for session in listed if session["current"]]
    (other,) = [session for session in listed if not session["current"]]
    await site.ask("DELETE", f"/sessions/{other['id']}", who="other", status=404)
    await site.ask("DELETE", f"/tokens/{other['id']}", status=404)
    assert await site.status("DELETE", f"{API}/sessions/{other['id']}", first) == 204
    assert await site.status("GET", f"{API}/me", second) == 401
    async with site.http.post(f"{API}/logout", headers=first) as answer:
        gone = (answer.status, answer.cookies["agentd_session"].value, answer.headers["Clear-Site-Data"])

    assert own["browser"] == "Firefox"
    assert gone == (204, "", '"cache", "storage"')
    assert await site.status("GET", f"{API}/me", first) == 401
    actions = [action for action, _, _ in await trail(site)]
    assert actions == ["login_url_made", "login"] * 2 + ["session_ended", "logout"]


@pytest.mark.attack
@pytest.mark.parametrize("where", ["cross-site", "same-site"])
async def test_nobody_is_logged_in_by_a_link_of_another_site(site: Site, where: str) -> None:
    """Ours: login CSRF: the page asks first, and asking uses nothing up; the answer must come from us."""
    token = (await site.ask("POST", "/login-tokens", status=201))["token"]
    async with site.http.get(
        f"/login?token={token}", headers={"Sec-Fetch-Site": where}, allow_redirects=False
    ) as answer:
        page = await answer.text()
        assert (answer.status, "Set-Cookie" in answer.headers) == (200, False)
    for origin in ("https://evil.example", "null", ""):
        headers = {"Origin": origin} if origin else {}
        assert await site.status("POST", "/login", headers, data={"token": token}) == 403
    own = {"Origin": site.plane.url}

    assert f'value="{token}"' in page
    assert await site.status("POST", "/login", own, data={"token": token}) == 303
    assert await site.status("POST", "/login", own, data={"token": token}) == 401


@pytest.mark.attack
async def test_what_stands_in_a_login_link_is_not_run(site: Site) -> None:
    """Ours: the page that asks shows the token as text."""
    query = {"token": '"><script>alert(1)</script>'}
    async with site.http.get("/login", params=query, headers={"Sec-Fetch-Site": "cross-site"}) as answer:
        page = await answer.text()

    assert "<script" not in page


@pytest.mark.attack
async def test_wrong_logins_and_tokens_are_slowed_down(tmp_path: Path) -> None:
    """Ours: 429 with Retry-After; a right token from the same address is let in all the same."""
    async with serving(tmp_path / "data", login_attempts_per_minute=3) as site:
        logins = [await site.status("GET", "/login?token=login_x", {}) for _ in range(5)]
        wrong = [await site.status("GET", f"{API}/me", bearer("api_x")) for _ in range(5)]
        agents = await site.status("GET", "/api/agent/link", bearer("agent_x"))
        async with site.http.get(f"{API}/me", headers=bearer("api_x")) as answer:
            body, wait = await answer.json(), answer.headers["Retry-After"]
        failed = len(await site.store.read(lambda c: c.execute(sa.select(schema.audit_log)).all()))

        assert logins == [401] * 3 + [429] * 2
        assert wrong == [401] * 3 + [429] * 2
        assert (agents, failed) == (429, 3)
        assert (body["code"], 1 <= int(wait) <= 20) == ("too_many_requests", True)
        assert await site.status("GET", f"{API}/me", {}) == 401
        assert await site.status("GET", f"{API}/me", bearer(site.tokens["me"])) == 200


@pytest.mark.attack
async def test_users_tokens_and_addresses_have_their_limits(tmp_path: Path) -> None:
    """Ours: a token's own, its user's over all tokens, and an address's without a token."""
    limits = {
        "token_requests_per_minute": 3,
        "user_requests_per_minute": 5,
        "address_requests_per_minute": 4,
    }
    async with serving(tmp_path / "data", **limits) as site:
        second = await site.issue("api", "me")
        first = [await site.status("GET", f"{API}/me", bearer(site.tokens["me"])) for _ in range(4)]
        others = [await site.status("GET", f"{API}/me", bearer(second)) for _ in range(3)]
        public = [await site.status("GET", "/healthz", {}) for _ in range(6)]

        assert first == [200, 200, 200, 429]
        assert others == [200, 200, 429]
        assert public == [200] * 4 + [429] * 2
        assert await site.status("GET", f"{API}/me", bearer(site.tokens["other"])) == 200


@pytest.mark.attack
async def test_only_trusted_proxies_say_who_asks(tmp_path: Path) -> None:
    """Ours: behind one, limits go by the address that it names; from others the header is nothing."""
    for proxies, expected in ((("127.0.0.1",), [200, 200, 200]), ((), [200, 429, 429])):
        data = tmp_path / f"data{len(proxies)}"
        async with serving(data, address_requests_per_minute=1, trusted_proxies=proxies) as site:
            found = [
                await site.status("GET", "/healthz", {"X-Forwarded-For": f"203.0.113.{number}"})
                for number in range(3)
            ]
            assert found == expected


async def test_a_use_is_written_once_whoever_asks_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: fifty requests at a time are one write; a database that can't be written shuts nobody out."""
    written = []
    touch = tokens.touch

    def counted(connection: sa.Connection, token_id: UUID, **kwargs: Any) -> None:
        written.append(token_id)
        if len(written) > 1:
            raise sa.exc.OperationalError("disk full", None, Exception())
        touch(connection, token_id, **kwargs)

    monkeypatch.setattr(tokens, "touch", counted)
    asked = (site.status("GET", f"{API}/me", bearer(site.tokens["me"])) for _ in range(50))

    assert await asyncio.gather(*asked) == [200] * 50
    assert len(written) == 1
    assert await site.status("GET", f"{API}/me", bearer(site.tokens["other"])) == 200
    assert len(written) == 2


@pytest.mark.attack
async def test_no_secret_is_in_the_audit_log(site: Site) -> None:
    """Ours: every kind of secret that was made while it was written."""
    planted = [site.tokens["me"], (await make_token(site))["token"], (await log_in(site))["Cookie"]]
    planted.append((await site.ask("POST", "/login-tokens", status=201))["token"])
    server = {
        "slug": "far",
        "url": "http://user:hunter2@127.0.0.1:9/mcp?key=hunter3",
        "headers": {"Authorization": "hunter4"},
        "enabled": False,
    }
    await site.ask("POST", "/mcp-servers", status=201, json=server)
    await site.status(
        "PUT",
        f"{API}/chats/config/system-prompt",
        bearer(site.tokens["me"]),
        json={"system_prompt": "hunter5"},
    )
    rows = json.dumps(await site.ask("GET", "/audit"))

    assert "mcp_server_added" in rows
    assert "setting_changed" in rows
    assert "127.0.0.1:9/mcp" in rows
    for secret in (*planted, "hunter"):
        assert secret.rpartition("=")[2].rpartition("_")[2] not in rows


@pytest.mark.attack
async def test_what_people_write_forges_no_line_of_the_audit_log(site: Site) -> None:
    """Ours: log injection by a header, by a name in a path and by names in a body."""
    link = (await site.ask("POST", "/login-tokens", status=201))["path"]
    head = f"GET {link} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\ty\u202ez".encode()
    assert (await site.raw(head))[0] == 303
    await site.status(
        "PUT", f"{API}/groups/a%0Aroot%20login", bearer(site.tokens["me"]), json={"members": []}
    )
    await site.status("PATCH", f"{API}/users/x%1B%5D0;y", bearer(site.tokens["other"]), json={})
    rows = await site.ask("GET", "/audit")
    texts = [str(value) for row in rows for value in (*row.values(), *row["details"].values())]

    assert [row["action"] for row in rows[:3]] == ["admin_refused", "group_changed", "login"]
    assert rows[2]["details"]["browser"] == "x\\x09y\\u202ez"
    assert all(line.isprintable() for line in texts), texts


async def test_shares_control_and_readers_are_in_the_audit_log(site: Site) -> None:
    """Ours: who shared what with whom, opened it, and took it back."""
    chat_id = await site.new_chat(who="owner")
    share = await site.ask("POST", f"/chats/{chat_id}/desktop/shares", who="owner", status=201, json={})
    await site.ask("DELETE", f"/chats/{chat_id}/desktop/shares/{share['id']}", who="owner")
    patch, owner = f"{API}/chats/{chat_id}/acl", bearer(site.tokens["owner"])
    await site.status("PATCH", patch, owner, json={"users": {"other": "read"}})
    await site.ask("PATCH", f"/chats/{chat_id}/acl", who="owner", status=400, json={"users": {"x": "read"}})

    assert await trail(site) == [
        ("share_made", "owner", share["id"]),
        ("share_revoked", "owner", share["id"]),
        ("acl_changed", "owner", chat_id),
    ]


async def test_control_is_in_the_audit_log_only_where_it_was_taken(site: Site) -> None:
    """Ours: who opens a desktop to take control, and is refused, has not taken any."""
    chat_id = await site.new_chat(who="owner")
    path, owner = f"{API}/chats/{chat_id}/desktop?take_control=1", bearer(site.tokens["owner"])
    dialling: list[asyncio.Task[None]] = []

    async def held(_: dict[str, Any]) -> Empty:
        raise RpcError(REFUSED, "Ann has control of this desktop", code="control_held")

    async def dial(stream_id: str) -> None:
        agent = bearer(site.tokens["agent"])
        async with site.http.ws_connect(f"/api/agent/streams/{stream_id}", headers=agent) as stream:
            await stream.receive()

    async def opened(params: dict[str, Any]) -> Empty:
        dialling.append(asyncio.get_running_loop().create_task(dial(params["stream_id"])))
        return Empty()

    async with asyncio.timeout(LIMIT_S):
        async with site.workspace(streams_open=held):
            status = await site.status("GET", path, owner | UPGRADE)
        refused = await trail(site)
        async with site.workspace(streams_open=opened):
            async with site.http.ws_connect(path, headers=owner):
                granted = await trail(site)
            await asyncio.gather(*dialling)

    assert (status, refused) == (409, [])
    assert granted == [("control_taken", "owner", chat_id)]


async def test_the_page_is_told_who_is_logged_in(site: Site) -> None:
    """Ours: whether it may administer, and whether there is a session to end."""
    session = await log_in(site, "other")
    async with site.http.get(f"{API}/me", headers=session) as answer:
        other = await answer.json()
    owner = await site.ask("GET", "/me", who="owner")

    assert (other["user"]["name"], other["user"]["is_admin"], other["session"]) == ("other", False, True)
    assert (owner["user"]["is_admin"], owner["session"]) == (True, False)
    assert await site.status("GET", f"{API}/chats/watch", session | UPGRADE | {"Origin": "x"}) == 403
