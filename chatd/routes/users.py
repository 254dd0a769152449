"""Users: for administrators."""

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, model_validator

from chatd.account_wire import Token, User
from chatd.audit import AuditAction
from chatd.errors import NotFound
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import answer
from chatd.routes.context import require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.routes.login import issue_login
from chatd.routes.tokens import token_id_of
from chatd.scopes import Role
from chatd.store import identities, tokens, users
from chatd.store.accounts import TokenKind

__all__ = ["routes"]

PATH = "/api/experimental/users"
# What an administrator sees, and ends, of another user's.
SEEN_KINDS: frozenset[TokenKind] = tokens.KEY_KINDS | {"session"}

routes = web.RouteTableDef()


class CreateUser(BaseModel):
    """A user to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=users.MAX_NAME)]
    role: Role = Role.MEMBER


class UserPatch(BaseModel):
    """Changes of a user; what is absent stays."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    disabled: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> "UserPatch":
        if self.role is None and self.disabled is None:
            msg = "say what to change: role, disabled"
            raise ValueError(msg)
        return self


@routes.get(PATH)
@describe(answer=list[User])
async def list_users(request: web.Request) -> web.Response:
    """Every user, by name."""
    require_admin(request)
    rows = await services(request).store.read(users.list_users)
    found = [User.model_validate(dict(row)) for row in rows]
    return web.json_response([user.model_dump(mode="json", exclude_none=True) for user in found])


@routes.post(PATH)
@describe(body=CreateUser, answer=User, status=201)
async def create(request: web.Request) -> web.Response:
    """A new user; a login token of theirs lets them in."""
    require_admin(request)
    wish, store = await read_body(request, CreateUser), services(request).store
    entry = entry_of(request, AuditAction.USER_MADE, target=wish.name, role=wish.role.value)
    row = await write_audited(request, entry, users.create_user, wish.name, wish.role, now=store.now())
    return answer(User.model_validate(dict(row)), status=201)


@routes.patch(PATH + "/{user}")
@describe(body=UserPatch, answer=User, errors={409: "the last administrator stays one"})
async def change(request: web.Request) -> web.Response:
    """Give a user another role, shut one out, or let one in again."""
    require_admin(request)
    name, store = request.match_info["user"], services(request).store
    wish = await read_body(request, UserPatch)
    if wish.role is not None:
        entry = entry_of(request, AuditAction.ROLE_CHANGED, target=name, role=wish.role.value)
        await write_audited(request, entry, users.set_role, name, wish.role)
    if wish.disabled is True:
        entry = entry_of(request, AuditAction.USER_DISABLED, target=name)
        await write_audited(request, entry, users.disable_user, name, now=store.now())
    elif wish.disabled is False:
        entry = entry_of(request, AuditAction.USER_ENABLED, target=name)
        await write_audited(request, entry, users.enable_user, name)
    return answer(User.model_validate(dict(await store.read(users.find_user, name))))


@routes.delete(PATH + "/{user}/identities")
@describe(status=204)
async def untie(request: web.Request) -> web.Response:
    """Forget who a user is at the OpenID provider: their next login there is like their first."""
    require_admin(request)
    name = request.match_info["user"]
    entry = entry_of(request, AuditAction.IDENTITY_UNTIED, target=name)
    await write_audited(request, entry, identities.untie, name)
    return web.Response(status=204)


@routes.post(PATH + "/{user}/login-tokens")
async def create_login(request: web.Request) -> web.Response:
    """A one-time login token for a user, to be handed to them."""
    require_admin(request)
    user = await services(request).store.read(users.find_user, request.match_info["user"])
    if user["disabled_at"] is not None:
        raise NotFound("this user is disabled")
    return await issue_login(request, user["id"], user["name"])


@routes.get(PATH + "/{user}/tokens")
@describe(answer=list[Token])
async def list_tokens(request: web.Request) -> web.Response:
    """A user's tokens and sessions, the newest first."""
    require_admin(request)
    store = services(request).store
    user = await store.read(users.find_user, request.match_info["user"])
    rows = await store.read(tokens.list_tokens, user["id"], SEEN_KINDS, now=store.now())
    found = [Token.model_validate(dict(row)) for row in rows]
    return web.json_response([token.model_dump(mode="json", exclude_none=True) for token in found])


@routes.delete(PATH + "/{user}/tokens/{token_id}")
@describe(status=204)
async def revoke(request: web.Request) -> web.Response:
    """End a token or session of a user's."""
    require_admin(request)
    name, store = request.match_info["user"], services(request).store
    user = await store.read(users.find_user, name)
    token_id = token_id_of(request)
    entry = entry_of(request, AuditAction.TOKEN_REVOKED, target=name, token=str(token_id))
    await write_audited(
        request, entry, tokens.revoke_token, user["id"], token_id, SEEN_KINDS, now=store.now()
    )
    return web.Response(status=204)
