"""Sharing a chat with other users and groups, to read."""

from typing import Literal
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, model_validator

from chatd.audit import AuditAction
from chatd.routes.auditing import entry_of
from chatd.routes.chats import answer, own_chat
from chatd.routes.context import services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import access, audit

__all__ = ["Acl", "routes"]

routes = web.RouteTableDef()
PATH = "/api/experimental/chats/{chat_id}/acl"


class Reader(BaseModel):
    """A user, or a group whose members may read."""

    id: UUID
    name: str
    role: Literal["read"] = "read"


class Acl(BaseModel):
    """Everybody besides the owner."""

    users: list[Reader]
    groups: list[Reader]


class AclPatch(BaseModel):
    """Roles by the names of users and groups; null takes one away. Who is not named keeps theirs."""

    model_config = ConfigDict(extra="forbid")

    users: dict[str, Literal["read"] | None] = Field(default_factory=dict, max_length=100)
    groups: dict[str, Literal["read"] | None] = Field(default_factory=dict, max_length=100)

    @model_validator(mode="after")
    def _somebody(self) -> "AclPatch":
        if not self.users and not self.groups:
            msg = "name users or groups"
            raise ValueError(msg)
        return self


@routes.get(PATH)
@describe(answer=Acl)
async def get_acl(request: web.Request) -> web.Response:
    """Whom the chat's family is shared with."""
    chat = await own_chat(request)
    found = await services(request).store.read(access.list_readers, chat.id)
    readers = {kind: [Reader(id=one, name=name) for one, name in rows] for kind, rows in found.items()}
    return answer(Acl(**readers))


@routes.patch(PATH)
@describe(body=AclPatch, status=204)
async def patch_acl(request: web.Request) -> web.Response:
    """Share the chat's family, or no longer."""
    chat = await own_chat(request)
    wish = await read_body(request, AclPatch)
    store = services(request).store
    told = {kind: ", ".join(_told(roles)) for kind, roles in wish.model_dump().items() if roles}
    entry = entry_of(request, AuditAction.ACL_CHANGED, target=str(chat.id), **told)
    now = store.now()
    run = audit.audited(access.change_readers, entry, at=now)
    await store.change(chat.id, run, wish.model_dump(), now=now)
    return web.Response(status=204)


def _told(roles: dict[str, str | None]) -> list[str]:
    return [f"{name}: {role or 'none'}" for name, role in sorted(roles.items())]
