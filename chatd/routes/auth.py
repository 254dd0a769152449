"""
Who asks: bearer token or session cookie, checked before any handler and any upgrade.

Cookies travel by themselves, so a request that rests on one must come from our
own page: its Origin is compared with the host it asked for. A token's scopes and
how often it may ask are checked here too; logging in is ``chatd.routes.login``.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, urlsplit

from aiohttp import hdrs, web

from chatd.audit import AuditAction
from chatd.errors import AdminOnly, BadRequest, Forbidden, Unauthorised
from chatd.routes.auditing import record
from chatd.routes.context import IDENTITY, SETTINGS, identity, services
from chatd.routes.guarding import count_request, count_stranger, count_wrong_token, guards, note_use
from chatd.scopes import API_PREFIX, METRICS_PATH, SAFE_METHODS, needed_scope
from chatd.store import accounts
from chatd.store.accounts import TokenKind

__all__ = [
    "COOKIE",
    "METRICS_PATH",
    "auth_middleware",
    "header_middleware",
    "host_middleware",
    "identify",
    "split_address",
]

COOKIE = "agentd_session"
AGENT_PREFIX = "/api/agent/"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
CSP = (
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def host_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer only under our own names, so that no foreign name can be rebound to us."""
    name = split_address(f"//{request.host}").hostname or ""
    settings = request.app[SETTINGS]
    own = {
        settings.host,
        *settings.public_hosts,
        _host_of(settings.advertise_url),
        _host_of(settings.public_url),
    }
    if name not in LOOPBACK | own:
        raise BadRequest(f"this server does not answer as {name!r}; see CHATD_PUBLIC_HOSTS")
    return await handler(request)


@web.middleware
async def header_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The page may load and connect to nothing but us."""
    try:
        response = await handler(request)
    except web.HTTPException as exc:
        # A redirect.
        _secure(exc, is_tls=request.secure)
        raise
    if not response.prepared:
        _secure(response, is_tls=request.secure)
    return response


def _secure(response: web.StreamResponse, *, is_tls: bool) -> None:
    response.headers.setdefault("Content-Security-Policy", CSP)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "no-referrer")
    response.headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
    if is_tls:
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")


@web.middleware
async def auth_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Identify the caller of every API route, and of the metrics: they tell of models and their use."""
    if request.path.startswith((AGENT_PREFIX, API_PREFIX)) or request.path == METRICS_PATH:
        await _let_in(request)
    else:
        count_stranger(request)
    try:
        return await handler(request)
    except AdminOnly:
        await record(request, AuditAction.ADMIN_REFUSED, target=f"{request.method} {request.path}")
        raise


async def _let_in(request: web.Request) -> None:
    try:
        await identify(request)
    except Unauthorised:
        if _token_of(request):
            count_wrong_token(request)
        raise
    count_request(request, identity(request))
    await note_use(request, identity(request))


async def identify(request: web.Request, *, max_age_s: float = 0.0) -> None:
    """
    Find out who asks, also in the middle of a long stream: tokens end and are revoked meanwhile.

    The answer of before serves for *max_age_s*; 0 asks the database.

    Raises:
        Unauthorised, Forbidden: nobody who may.
    """
    if request.path.startswith(AGENT_PREFIX):
        request[IDENTITY] = await _identify(request, _bearer(request), frozenset({"agent"}), max_age_s)
        return
    if _bearer(request) is None and request.cookies.get(COOKIE):
        _require_own_origin(request)
    who = await _identify(request, _token_of(request), frozenset({"api", "session"}), max_age_s)
    scope = needed_scope(request.method, request.path)
    if not who.has(scope):
        raise Forbidden(f"this token lacks the scope {scope.value!r}")
    request[IDENTITY] = who


async def _identify(
    request: web.Request, token: str | None, kinds: frozenset[TokenKind], max_age_s: float
) -> accounts.Identity:
    if not token:
        raise Unauthorised("log in first: open the URL that agentd up printed, or send a bearer token")
    store, known = services(request).store, guards(request).identities
    if max_age_s and (who := known.recall(token, kinds, max_age_s)) is not None:
        return who
    who = await store.read(accounts.authenticate, token, kinds, now=store.now())
    known.remember(token, kinds, who)
    return who


def _token_of(request: web.Request) -> str | None:
    return _bearer(request) or request.cookies.get(COOKIE)


def _bearer(request: web.Request) -> str | None:
    scheme, _, token = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def _require_own_origin(request: web.Request) -> None:
    """A cookie alone may change nothing and open no socket unless our own page asks."""
    origin = request.headers.get(hdrs.ORIGIN)
    is_upgrade = request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"
    if origin is None:
        if is_upgrade or request.method not in SAFE_METHODS:
            raise Forbidden("a request with a cookie must carry the Origin of this page")
        return
    if split_address(origin).netloc != request.host:
        raise Forbidden("this origin may not use the session")


def _host_of(url: str | None) -> str | None:
    return split_address(url).hostname if url else None


def split_address(address: str) -> SplitResult:
    """An address as a header gave it; what is none has no host."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
