"""The caller's own tokens and sessions."""

from datetime import timedelta
from typing import Annotated, Literal
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from chatd.account_wire import NewToken, Session, Token
from chatd.audit import AuditAction
from chatd.errors import BadRequest, NotFound
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import answer
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.scopes import Scope
from chatd.store import accounts, tokens
from chatd.store.accounts import TokenKind, TokenWish

__all__ = ["AGENT_LIFETIME_S", "API_LIFETIME_S", "CreateToken", "routes", "token_id_of"]

PATH = "/api/experimental/tokens"
SESSIONS = "/api/experimental/sessions"
# Seconds that a token lives unless its maker says otherwise, and the longest that may be said.
API_LIFETIME_S = 90 * 24 * 3600
AGENT_LIFETIME_S = 365 * 24 * 3600
MIN_LIFETIME_S, MAX_LIFETIME_S = 60, 10 * 365 * 24 * 3600
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]

routes = web.RouteTableDef()


class CreateToken(BaseModel):
    """
    A token to be made.

    *kind*: ``api`` for programs, ``agent`` for the daemon of *workspace*, which is made if there is none.
    *scopes*: absent: all that the caller may. *expires_in_s*: absent: 90 days, ``agent`` a year; 0: never.
    """

    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: Literal["api", "agent"] = "api"
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] | None = None
    expires_in_s: int | None = Field(default=None, ge=0, le=MAX_LIFETIME_S)
    workspace: Name | None = None

    @property
    def lifetime(self) -> timedelta:
        """How long it lives; ``timedelta.max``: until it is revoked."""
        if self.expires_in_s == 0:
            return timedelta.max
        default = API_LIFETIME_S if self.kind == "api" else AGENT_LIFETIME_S
        return timedelta(seconds=self.expires_in_s or default)

    def check(self) -> None:
        """
        See that the parts fit.

        Raises:
            BadRequest: they do not.
        """
        if self.kind == "agent" and (self.workspace is None or self.scopes is not None):
            raise BadRequest("an agent token has a workspace and no scopes: it opens that one's link alone")
        if self.kind == "api" and self.workspace is not None:
            raise BadRequest("workspace: only an agent token has one")
        if self.expires_in_s is not None and 0 < self.expires_in_s < MIN_LIFETIME_S:
            raise BadRequest(f"expires_in_s: at least {MIN_LIFETIME_S}, or 0 for never")


@routes.get(PATH)
@describe(answer=list[Token])
async def list_own(request: web.Request) -> web.Response:
    """The caller's tokens that are good, the newest first."""
    store = services(request).store
    rows = await store.read(tokens.list_tokens, identity(request).user_id, tokens.KEY_KINDS, now=store.now())
    found = [Token.model_validate(dict(row)) for row in rows]
    return web.json_response([token.model_dump(mode="json", exclude_none=True) for token in found])


@routes.post(PATH)
@describe(
    body=CreateToken,
    answer=NewToken,
    status=201,
    errors={403: "more than the asking token may", 429: "there are too many"},
)
async def create(request: web.Request) -> web.Response:
    """A new token; its secret is told this once."""
    wish, who, store = await read_body(request, CreateToken), identity(request), services(request).store
    wish.check()
    now = store.now()
    agent_id = None
    if wish.workspace is not None:
        agent_id = await store.write(accounts.ensure_agent, who.user_id, wish.workspace, now=now)
    asked = TokenWish(
        name=wish.name,
        scopes=None if wish.scopes is None else tuple(dict.fromkeys(wish.scopes)),
        lifetime=wish.lifetime,
        agent_id=agent_id,
    )
    allowed = tokens.within_own(who, asked, now=now)
    entry = entry_of(
        request,
        AuditAction.TOKEN_MADE,
        target=wish.name,
        kind=wish.kind,
        scopes=" ".join(wish.scopes) if wish.scopes else "all",
    )
    row, token = await write_audited(
        request, entry, tokens.create_token, wish.kind, who.user_id, allowed, now=now
    )
    return answer(NewToken.model_validate({**row, "token": token}), status=201)


@routes.delete(PATH + "/{token_id}")
@describe(status=204)
async def revoke(request: web.Request) -> web.Response:
    """End a token for good; streams and links that it opened end within seconds."""
    await _end(request, identity(request).user_id, token_id_of(request), AuditAction.TOKEN_REVOKED)
    return web.Response(status=204)


@routes.get(SESSIONS)
@describe(answer=list[Session])
async def list_sessions(request: web.Request) -> web.Response:
    """Browsers that are logged in as the caller."""
    who, store = identity(request), services(request).store
    rows = await store.read(tokens.list_tokens, who.user_id, {"session"}, now=store.now())
    found = [
        Session.model_validate({**row, "browser": row["name"], "current": row["id"] == who.token_id})
        for row in rows
    ]
    return web.json_response([session.model_dump(mode="json", exclude_none=True) for session in found])


@routes.delete(SESSIONS + "/{token_id}")
@describe(status=204)
async def end_session(request: web.Request) -> web.Response:
    """Log a browser out."""
    await _end(request, identity(request).user_id, token_id_of(request), AuditAction.SESSION_ENDED)
    return web.Response(status=204)


async def _end(request: web.Request, user_id: UUID, token_id: UUID, action: AuditAction) -> None:
    kinds: frozenset[TokenKind] = tokens.KEY_KINDS
    if action is AuditAction.SESSION_ENDED:
        kinds = frozenset({"session"})
    store = services(request).store
    entry = entry_of(request, action, target=str(token_id))
    await write_audited(request, entry, tokens.revoke_token, user_id, token_id, kinds, now=store.now())


def token_id_of(request: web.Request) -> UUID:
    """
    The id in the path.

    Raises:
        NotFound: it is none.
    """
    try:
        return UUID(request.match_info["token_id"])
    except ValueError:
        raise NotFound("no such token") from None
