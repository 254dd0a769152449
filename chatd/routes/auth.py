"""
Who asks: bearer token or session cookie, checked before any handler and any upgrade.

Cookies travel by themselves, so a request that rests on one must come from our
own page: its Origin is compared with the host it asked for.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, urlsplit

from aiohttp import hdrs, web

from chatd.errors import BadRequest, Forbidden, Unauthorised
from chatd.routes.context import IDENTITY, SETTINGS, services
from chatd.store import accounts
from chatd.store.accounts import TokenKind

__all__ = ["COOKIE", "auth_middleware", "header_middleware", "host_middleware", "routes"]

COOKIE = "agentd_session"
API_PREFIX = "/api/experimental/"
AGENT_PREFIX = "/api/agent/"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Seconds; as long as the session behind it.
COOKIE_MAX_AGE_S = 30 * 24 * 3600
CSP = (
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)

routes = web.RouteTableDef()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def host_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer only under our own names, so that no foreign name can be rebound to us."""
    name = _split(f"//{request.host}").hostname or ""
    settings = request.app[SETTINGS]
    if name not in LOOPBACK | {settings.host} | set(settings.public_hosts):
        raise BadRequest(f"this server does not answer as {name!r}; see CHATD_PUBLIC_HOSTS")
    return await handler(request)


@web.middleware
async def header_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The page may load and connect to nothing but us."""
    try:
        response = await handler(request)
    except web.HTTPException as exc:
        # A redirect.
        _secure(exc)
        raise
    if not response.prepared:
        _secure(response)
    return response


def _secure(response: web.StreamResponse) -> None:
    response.headers.setdefault("Content-Security-Policy", CSP)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "no-referrer")
    response.headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")


@web.middleware
async def auth_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Identify the caller of every API route."""
    if request.path.startswith(AGENT_PREFIX):
        request[IDENTITY] = await _identify(request, _bearer(request), frozenset({"agent"}))
    elif request.path.startswith(API_PREFIX):
        bearer, cookie = _bearer(request), request.cookies.get(COOKIE)
        token = bearer or cookie
        if bearer is None and cookie:
            _require_own_origin(request)
        request[IDENTITY] = await _identify(request, token, frozenset({"api", "session"}))
    return await handler(request)


async def _identify(
    request: web.Request, token: str | None, kinds: frozenset[TokenKind]
) -> accounts.Identity:
    if not token:
        raise Unauthorised("log in first: open the URL that agentd up printed, or send a bearer token")
    store = services(request).store
    return await store.read(accounts.authenticate, token, kinds, now=store.now())


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
    if _split(origin).netloc != request.host:
        raise Forbidden("this origin may not use the session")


def _split(address: str) -> SplitResult:
    """An address as a header gave it; what is none has no host."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


@routes.get("/login")
async def login(request: web.Request) -> web.StreamResponse:
    """Trade the one-time token of the printed URL for a session cookie."""
    store = services(request).store
    try:
        session = await store.write(accounts.login, request.query.get("token", ""), now=store.now())
    except Unauthorised:
        text = "This login link was used or has expired. `agentd login-url` prints a new one.\n"
        return web.Response(text=text, status=401)
    response = web.HTTPSeeOther("/")
    response.set_cookie(
        COOKIE,
        session,
        max_age=COOKIE_MAX_AGE_S,
        httponly=True,
        samesite="Lax",
        secure=request.secure,
        path="/",
    )
    raise response


@routes.post("/api/experimental/login-tokens")
async def create_login_token(request: web.Request) -> web.Response:
    """A new one-time login token for the caller."""
    store = services(request).store
    user_id = request[IDENTITY].user_id
    token = await store.write(accounts.issue_token, "login", user_id, now=store.now())
    return web.json_response({"token": token, "path": f"/login?token={token}"}, status=201)
