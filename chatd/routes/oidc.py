"""
Login by OpenID Connect: to the provider, and back.

The provider's answer counts in the browser that began the login, once, and ends in the same session as a
one-time URL. Where it returns to is a setting: no header of a request has a say in it.
"""

import asyncio
import html
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

import sqlalchemy as sa
import structlog
from aiohttp import web
from pydantic import BaseModel

from chatd.audit import AuditAction, AuditEntry
from chatd.errors import NotFound, SignInFailed, SignInRefused, Unauthorised
from chatd.oidc.pending import LIFETIME, PendingLogin, begin_login, open_login, seal_login
from chatd.routes.auditing import record
from chatd.routes.auth import COOKIE
from chatd.routes.context import SETTINGS, services
from chatd.routes.guarding import count_login, remote_of
from chatd.routes.login import MAX_BROWSER, OWN_SITES, start_session
from chatd.store import accounts, audit, identities
from chatd.store.identities import Person, SignedIn, SignIn

if TYPE_CHECKING:
    from chatd.oidc.provider import Provider

__all__ = ["PROVIDER", "LoginMethods", "routes"]

PROVIDER: web.AppKey["Provider"] = web.AppKey("oidc_provider")
# What the browser carries meanwhile. Over HTTPS under a name that no neighbour below the same domain can set:
# else somebody could have another's browser finish a login of their own.
CARRIED, CARRIED_TLS = "agentd_oidc", "__Host-agentd_oidc"
# Characters of a code; the longest known have some 2,000.
MAX_CODE = 4096
NO_STORE = {"Cache-Control": "no-store"}
ASK = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in</title>
<p>Another page sent you here to log in.</p><p><a href="oidc">Log in with {title}</a></p></html>
"""
REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Not logged in</title>
<h1>Not logged in</h1><p>{text}</p><p><a href="{again}">Log in once more</a></p></html>
"""

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.oidc")


class OidcMethod(BaseModel):
    """Where a browser goes, and what its button calls the provider."""

    url: str
    title: str


class LoginMethods(BaseModel):
    """How people log in besides by one-time URLs."""

    oidc: OidcMethod | None = None


@routes.get("/login/methods")
async def methods(request: web.Request) -> web.Response:
    """What the page offers to who is not logged in."""
    settings, found = request.app[SETTINGS], None
    if settings.oidc_issuer is not None:
        found = OidcMethod(url=f"{settings.public_url}/login/oidc", title=settings.oidc_title)
    return web.json_response(LoginMethods(oidc=found).model_dump(mode="json"), headers=NO_STORE)


@routes.get("/login/oidc", allow_head=False)
async def begin(request: web.Request) -> web.StreamResponse:
    """Send the browser to the provider."""
    provider, settings = _provider(request), request.app[SETTINGS]
    if request.headers.get("Sec-Fetch-Site", "") not in OWN_SITES:
        # As with one-time URLs: nobody is logged in by being led here.
        page = ASK.format(title=html.escape(settings.oidc_title))
        return web.Response(text=page, content_type="text/html", headers=NO_STORE)
    count_login(request)
    parts = services(request)
    pending = begin_login(provider.issuer, now=parts.store.now())
    try:
        url = await provider.authorization_url(pending)
    except SignInFailed as exc:
        return await _refuse(request, exc, again="oidc")
    carried = await asyncio.to_thread(seal_login, pending, parts.sealer)
    response = web.HTTPSeeOther(url, headers=NO_STORE)
    is_tls = _is_tls(request)
    response.set_cookie(
        CARRIED_TLS if is_tls else CARRIED,
        carried,
        max_age=int(LIFETIME.total_seconds()),
        httponly=True,
        samesite="Lax",
        secure=is_tls,
        path="/",
    )
    raise response


@routes.get("/login/oidc/callback", allow_head=False)
async def finish(request: web.Request) -> web.StreamResponse:
    """Take the provider's answer."""
    _provider(request)
    count_login(request)
    try:
        pending = await _carried(request)
    except SignInRefused as exc:
        # What the browser carries may be of another login, which goes on.
        return await _refuse(request, exc)
    try:
        done = await _sign_in(request, pending)
    except (SignInRefused, SignInFailed) as exc:
        response: web.StreamResponse = await _refuse(request, exc)
        _forget(request, response)
        return response
    # Relative: a proxy may serve the page below a prefix.
    response = web.HTTPSeeOther("../../", headers=NO_STORE)
    _forget(request, response)
    start_session(response, done.login, is_tls=_is_tls(request))
    raise response


async def _carried(request: web.Request) -> PendingLogin:
    parts = services(request)
    carried = request.cookies.get(CARRIED_TLS if _is_tls(request) else CARRIED, "")
    state, issuer = request.query.get("state", ""), _provider(request).issuer
    return await asyncio.to_thread(open_login, carried, state, issuer, parts.sealer, now=parts.store.now())


def _forget(request: web.Request, response: web.StreamResponse) -> None:
    """Have the browser forget what it carried: one try each."""
    is_tls = _is_tls(request)
    response.del_cookie(
        CARRIED_TLS if is_tls else CARRIED, path="/", secure=is_tls, httponly=True, samesite="Lax"
    )


async def _sign_in(request: web.Request, pending: PendingLogin) -> SignedIn:
    """
    Find out who came, and begin their session.

    Raises:
        SignInRefused, SignInFailed: nobody comes in.
    """
    store, settings = services(request).store, request.app[SETTINGS]
    if request.query.get("error"):
        # What it says besides is text of others.
        text = "The provider did not log you in, or you did not want it to."
        raise SignInRefused(text, reason="provider", detail=request.query["error"][:100])
    code = request.query.get("code", "")
    if not 1 <= len(code) <= MAX_CODE:
        raise SignInRefused("The provider's answer is none; log in once more.", reason="code")
    told = request.query.get("iss")
    person = await _provider(request).identify(pending, code, told, now=store.now())
    wish = SignIn(
        login_id=pending.login_id,
        browser=request.headers.get("User-Agent", "")[:MAX_BROWSER] or None,
        own_user_id=await _own_user(request),
        admins=settings.admins,
        creates_users=settings.oidc_creates_users,
    )
    remote, now = remote_of(request), store.now()

    def run(connection: sa.Connection) -> SignedIn:
        done = identities.sign_in(connection, person, wish, now=now)
        for entry in _entries(done, person, wish, remote):
            audit.note(connection, entry, now=now)
        return done

    return await store.write(run)


def _entries(done: SignedIn, person: Person, wish: SignIn, remote: str) -> Iterator[AuditEntry]:
    name, identity = done.login.user_name, {"issuer": person.issuer, "subject": person.subject}

    def entry(action: AuditAction, target: str | None = None, **details: str) -> AuditEntry:
        return AuditEntry(
            action=action,
            actor=name,
            actor_id=done.login.user_id,
            target=target,
            remote=remote,
            details=details,
        )

    if done.is_made:
        yield entry(AuditAction.USER_MADE, name, role="member", **identity)
    if done.is_tied:
        yield entry(AuditAction.IDENTITY_TIED, name, **identity)
    if done.new_role is not None:
        yield entry(AuditAction.ROLE_CHANGED, name, role=done.new_role.value, by="group")
    yield entry(AuditAction.LOGIN, browser=wish.browser or "", **identity)


async def _own_user(request: web.Request) -> UUID | None:
    """Who is logged in already in this browser."""
    token, store = request.cookies.get(COOKIE), services(request).store
    if not token:
        return None
    try:
        found = await store.read(accounts.authenticate, token, frozenset({"session"}), now=store.now())
    except Unauthorised:
        return None
    return found.user_id


async def _refuse(
    request: web.Request, problem: SignInRefused | SignInFailed, *, again: str = "../oidc"
) -> web.Response:
    """A page that says what to do, and an entry in the audit log that says why."""
    told = {"by": "oidc", "reason": problem.reason, "detail": problem.detail}
    target = None
    if isinstance(problem, SignInRefused):
        target = problem.name or None
        told |= {"subject": problem.subject}
    else:
        log.warning(
            "the provider failed a login",
            action="sign_in_failed",
            reason=problem.reason,
            detail=problem.detail,
        )
    details = {name: value for name, value in told.items() if value}
    await record(request, AuditAction.LOGIN_FAILED, target=target, **details)
    page = REFUSED.format(text=html.escape(problem.user_text), again=again)
    status = 401 if isinstance(problem, SignInRefused) else 502
    return web.Response(text=page, status=status, content_type="text/html", headers=NO_STORE)


def _is_tls(request: web.Request) -> bool:
    """Whether the browser comes over HTTPS: as the settings say, since a proxy may end it."""
    return urlsplit(request.app[SETTINGS].public_url or "").scheme == "https"


def _provider(request: web.Request) -> "Provider":
    if PROVIDER not in request.app:
        raise NotFound("nobody logs in by OpenID Connect here; see CHATD_OIDC_ISSUER")
    return request.app[PROVIDER]
