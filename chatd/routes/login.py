"""
Logging a browser in by a one-time URL, and out.

A link that another site shows does not log in by being followed: it asks first, so that nobody is
logged in as somebody else without noticing, and nothing that fetches links ahead uses one up.
"""

import html
from uuid import UUID

from aiohttp import hdrs, web

from chatd.audit import AuditAction, AuditEntry
from chatd.errors import Forbidden, Unauthorised
from chatd.routes.auditing import entry_of, record, write_audited
from chatd.routes.auth import COOKIE, split_address
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.guarding import count_login, remote_of
from chatd.store import accounts, tokens
from chatd.store.accounts import Login

__all__ = ["MAX_BROWSER", "OWN_SITES", "issue_login", "routes", "start_session"]

# Seconds; as long as the session behind it.
COOKIE_MAX_AGE_S = 30 * 24 * 3600
# Characters that are kept of what a browser calls itself.
MAX_BROWSER = 200
# Where a request came from, as browsers tell: from nowhere, or from our own page.
OWN_SITES = frozenset({"", "none", "same-origin"})
ENDED = "This login link was used or has expired. `agentd login-url` prints a new one.\n"
CONFIRM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in</title>
<p>Another page sent you here to log in.</p>
<form method="post" action="login"><input type="hidden" name="token" value="{token}">
<button>Log in</button></form></html>
"""

routes = web.RouteTableDef()


@routes.get("/login", allow_head=False)
async def login(request: web.Request) -> web.StreamResponse:
    """Trade the one-time token of the printed URL for a session cookie."""
    token = request.query.get("token", "")
    if request.headers.get("Sec-Fetch-Site", "") not in OWN_SITES:
        page = CONFIRM.format(token=html.escape(token.encode("utf-8", "replace").decode(), quote=True))
        # Without a referrer a browser sends no Origin with the form either.
        headers = {"Cache-Control": "no-store", "Referrer-Policy": "strict-origin"}
        return web.Response(text=page, content_type="text/html", headers=headers)
    return await _log_in(request, token)


@routes.post("/login")
async def confirm_login(request: web.Request) -> web.StreamResponse:
    """The same, of who was asked."""
    if split_address(request.headers.get(hdrs.ORIGIN, "")).netloc != request.host:
        raise Forbidden("only our own page logs in")
    return await _log_in(request, str((await request.post()).get("token", "")))


async def _log_in(request: web.Request, token: str) -> web.StreamResponse:
    store = services(request).store
    browser = request.headers.get(hdrs.USER_AGENT, "")[:MAX_BROWSER] or None

    def entry(done: Login) -> AuditEntry:
        remote, details = remote_of(request), {"browser": browser or ""}
        return AuditEntry(
            action=AuditAction.LOGIN,
            actor=done.user_name,
            actor_id=done.user_id,
            remote=remote,
            details=details,
        )

    count_login(request)
    try:
        done = await write_audited(request, entry, accounts.login, token, now=store.now(), browser=browser)
    except Unauthorised:
        await record(request, AuditAction.LOGIN_FAILED)
        return web.Response(text=ENDED, status=401)
    # Relative: a proxy may serve the page below a prefix.
    response = web.HTTPSeeOther("./")
    start_session(response, done, is_tls=request.secure)
    raise response


def start_session(response: web.StreamResponse, done: Login, *, is_tls: bool) -> None:
    """Hand the browser its session."""
    response.set_cookie(
        COOKIE,
        done.token,
        max_age=COOKIE_MAX_AGE_S,
        httponly=True,
        samesite="Lax",
        secure=is_tls,
        path="/",
    )


@routes.post("/api/experimental/login-tokens")
async def create_login_token(request: web.Request) -> web.Response:
    """A new one-time login token for the caller."""
    who = identity(request)
    return await issue_login(request, who.user_id, who.user_name)


async def issue_login(request: web.Request, user_id: UUID, user_name: str) -> web.Response:
    """
    A login token of a user's as an answer.

    Raises:
        Forbidden: the token that asks is weaker than the session would be.
    """
    who, store = identity(request), services(request).store
    if who.scopes is not None or (who.kind == "api" and who.expires_at is not None):
        raise Forbidden("a token that is narrowed or that ends logs no browser in")
    entry = entry_of(request, AuditAction.LOGIN_URL, target=user_name)
    token = await write_audited(request, entry, accounts.issue_token, "login", user_id, now=store.now())
    return web.json_response({"token": token, "path": f"/login?token={token}"}, status=201)


@routes.post("/api/experimental/logout")
@describe(status=204)
async def logout(request: web.Request) -> web.Response:
    """End the session that asks, and have its cookie forgotten; an API token is revoked by its id instead."""
    who = identity(request)
    if who.kind != "session":
        raise Forbidden("only a session logs out; DELETE tokens/{id} ends a token")
    store, entry = services(request).store, entry_of(request, AuditAction.LOGOUT)
    await write_audited(
        request, entry, tokens.revoke_token, who.user_id, who.token_id, {"session"}, now=store.now()
    )
    response = web.Response(status=204, headers={"Clear-Site-Data": '"cache", "storage"'})
    response.del_cookie(COOKIE, path="/")
    return response
