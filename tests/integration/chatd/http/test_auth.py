"""Who may do what: every route of the application, not a list that someone keeps."""

import re
import uuid
from typing import Any

import pytest

from tests.integration.chatd.http.site import API, UPGRADE, Site, bearer, text

# Who has a share link needs nothing else: its token is the credential.
SHARED = {"/share/{token}", "/share/{token}/status", "/share/{token}/desktop"}
PUBLIC = {
    "/login", "/healthz", "/readyz", "/", "/sw.js", "/chats/{chat_id}", "/assets", "/api/openapi.json",
    "/api/docs", "/download/{token}", "/login/methods", "/login/oidc", "/login/oidc/callback",
} | SHARED  # fmt: skip
BODIES: dict[str, Any] = {f"{API}/chats": text("x"), f"{API}/chats/{{chat_id}}/messages": text("x")}
BODIES[f"{API}/chats/{{chat_id}}/desktop/shares"] = {}
BODIES[f"{API}/mcp-servers/{{server_id}}"] = {}
BODIES[f"{API}/chats/{{chat_id}}/desktop/control"] = {"wish": "take", "seat": "x"}


def fill(path: str, chat_id: str = "") -> str:
    """A path with something in place of its variables."""
    names = {"file_id": uuid.UUID(int=2), "share_id": uuid.UUID(int=3), "stream_id": "s", "agent": "box"}
    names["user"] = names["group"] = "x"
    names["server_id"] = names["token_id"] = uuid.UUID(int=4)
    names["model_config_id"] = uuid.UUID(int=4)
    return path.format(
        chat_id=chat_id or uuid.UUID(int=1), token="t", message_id=1, queued_id=1, context="root", **names
    )


def user_routes(site: Site) -> list[tuple[str, str]]:
    """Routes for users."""
    return [route for route in site.routes() if route[1].startswith((API, "/metrics"))]


def agent_routes(site: Site) -> list[tuple[str, str]]:
    """Routes for workspaces."""
    return [route for route in site.routes() if route[1].startswith("/api/agent/")]


def replica_routes(site: Site) -> list[tuple[str, str]]:
    """Routes for other replicas."""
    return [route for route in site.routes() if route[1].startswith("/api/replica/")]


async def statuses(
    site: Site, routes: list[tuple[str, str]], headers: dict[str, str], chat_id: str = ""
) -> dict[tuple[str, str], int]:
    """The status of each route under *headers*."""
    return {
        (method, path): await site.status(method, fill(path, chat_id), headers, json=BODIES.get(path))
        for method, path in routes
    }


def all_are(status: int, found: dict[tuple[str, str], int]) -> bool:
    """Whether every route answered *status*; shows those that did not."""
    wrong = {route: code for route, code in found.items() if code != status}
    assert wrong == {}
    return bool(found)


async def test_every_route_is_public_by_name_or_guarded(site: Site) -> None:
    """Ours: a new route is guarded unless someone adds it to the list here."""
    guarded = {*user_routes(site), *agent_routes(site), *replica_routes(site)}
    unguarded = set(site.routes()) - guarded

    assert {path for _, path in unguarded} <= PUBLIC
    assert len(user_routes(site)) > 10
    assert len(agent_routes(site)) >= 4


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "agentd_session="},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic bWU6bWU="},
        bearer("api_wrong"),
        bearer("x" * 4000),
        {"Cookie": "agentd_session=session_wrong", "Origin": "http://{host}"},
    ],
    ids=["none", "empty cookie", "empty", "basic", "wrong", "long", "wrong cookie"],
)
async def test_no_route_opens_without_a_valid_token(site: Site, headers: dict[str, str]) -> None:
    """Ours: 401 before anything else is looked at."""
    host = site.plane.url.removeprefix("http://")
    sent = {name: value.replace("{host}", host) for name, value in headers.items()}

    assert all_are(401, await statuses(site, user_routes(site), sent))
    assert all_are(401, await statuses(site, agent_routes(site), sent))
    assert all_are(401, await statuses(site, replica_routes(site), sent))


async def test_tokens_open_their_own_side_only(site: Site) -> None:
    """Ours: an agent token opens the link and nothing else; a user's never opens the link."""
    agent, user = bearer(site.tokens["agent"]), bearer(site.tokens["me"])
    login = bearer(await site.issue("login", "me"))
    cookie = {"Cookie": f"agentd_session={await site.issue('session', 'me')}", "Origin": site.plane.url}

    assert all_are(401, await statuses(site, user_routes(site), agent))
    assert all_are(401, await statuses(site, user_routes(site), login))
    for headers in (user, login, cookie):
        assert all_are(401, await statuses(site, agent_routes(site), headers))


async def test_another_user_s_chat_does_not_exist(site: Site) -> None:
    """Spec 3: unreadable is 404, on every route of a chat and for every file."""
    chat_id = await site.quiet_chat()
    # Users, groups and MCP servers are for administrators: everybody else is refused, whatever the name.
    # Contexts of a person's own preferences are nobody's.
    common = "{(user|group|server_id|context)}"
    routes = [
        route
        for route in user_routes(site)
        if "{" in re.sub(common, "", route[1]) and not route[1].startswith(f"{API}/users/")
    ]
    stranger = bearer(site.tokens["other"])

    assert all_are(404, await statuses(site, routes, stranger, chat_id))
    assert all_are(404, await statuses(site, routes, stranger | UPGRADE, chat_id))
    assert all_are(404, await statuses(site, routes, stranger, "no-uuid"))
    assert [chat["id"] for chat in await site.ask("GET", "/chats")] == [chat_id]
    assert await site.ask("GET", "/chats", who="other") == []


async def test_a_cookie_serves_our_own_page_only(site: Site) -> None:
    """Ours: cookies travel by themselves, so Origin is compared with the host."""
    cookie = {"Cookie": f"agentd_session={await site.issue('session', 'me')}"}
    origins = ["http://evil.example", "https://evil.example:1", "null", "http://127.0.0.1:1", "http://["]
    writes = [route for route in user_routes(site) if route[0] not in {"GET", "HEAD"}]
    sockets = [route for route in user_routes(site) if route[0] == "GET"]

    for origin in origins:
        assert all_are(403, await statuses(site, user_routes(site), cookie | {"Origin": origin}))
    assert all_are(403, await statuses(site, writes, cookie))
    assert all_are(403, await statuses(site, sockets, cookie | UPGRADE))
    own = await site.status("GET", f"{API}/me", cookie)
    post = await site.status(
        "POST", f"{API}/login-tokens", cookie | {"Origin": site.plane.url.upper().replace("HTTP", "http")}
    )
    assert (own, post) == (200, 201)


async def test_a_bearer_token_needs_no_origin(site: Site) -> None:
    """Ours: nobody sends it by accident; and it wins over a cookie."""
    headers = bearer(site.tokens["me"]) | {"Origin": "http://evil.example", "Cookie": "agentd_session=x"}

    assert await site.status("POST", f"{API}/login-tokens", headers) == 201


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "[", "a b", "x" * 300]
)
async def test_a_foreign_host_is_refused_on_every_route(site: Site, host: str) -> None:
    """Ours: no foreign name can be rebound to us; public routes included."""
    for method, path in site.routes():
        head = f"{method} {fill(path)} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {site.tokens['me']}"
        status, _ = await site.raw(head.encode())

        assert status == 400, (method, path)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LOCALHOST:80", "[::1]:7080"])
async def test_our_own_names_are_answered(site: Site, host: str) -> None:
    """Ours: loopback by any name and port."""
    status, body = await site.raw(f"GET /healthz HTTP/1.1\r\nHost: {host}".encode())

    assert (status, body) == (200, {"status": "ok"})


async def test_a_login_link_works_once(site: Site) -> None:
    """Ours: it gives a session cookie for this browser; the second use is refused."""
    link = (await site.ask("POST", "/login-tokens", status=201))["path"]
    async with site.http.get(link, allow_redirects=False) as answer:
        cookie = answer.cookies["agentd_session"]
        assert (answer.status, answer.headers["Location"]) == (303, "./")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")

    session = {"Cookie": f"agentd_session={cookie.value}"}
    assert await site.status("GET", f"{API}/me", session) == 200
    assert await site.status("GET", link, {}) == 401
    assert await site.status("GET", f"{API}/me", session) == 200


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=login_x", "?token=%00", "?token=%ff", "?token=%ed%a0%80"]
)
async def test_a_bad_login_link_is_refused(site: Site, query: str) -> None:
    """Ours: whatever stands in it."""
    assert await site.status("GET", f"/login{query}", {}) == 401


@pytest.mark.parametrize(
    "line", [b"Authorization: Bearer \xff\xfe", b"Cookie: agentd_session=\xff", b"Authorization: \xff x"]
)
async def test_headers_that_are_no_text_are_refused(site: Site, line: bytes) -> None:
    """Ours: a header may hold any byte; it is not valid, but no failure."""
    status, body = await site.raw(b"GET /api/experimental/me HTTP/1.1\r\nHost: localhost\r\n" + line)

    assert status in {400, 401}
    assert body.get("code", "unauthorised") == "unauthorised"


async def test_every_answer_carries_the_security_headers(site: Site) -> None:
    """Ours: pages, JSON, refusals and redirects alike."""
    link = (await site.ask("POST", "/login-tokens", status=201))["path"]
    cases = [("/", {}), ("/healthz", {}), (f"{API}/me", bearer(site.tokens["me"])), (f"{API}/me", {})]
    cases += [("/nowhere", {}), ("/healthz", {"Host": "evil.example"}), (link, {}), ("/login?token=x", {})]

    for path, headers in cases:
        async with site.http.get(path, headers=headers, allow_redirects=False) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff", path
            assert answer.headers["Referrer-Policy"] == "no-referrer", path
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"], path
            assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin", path
