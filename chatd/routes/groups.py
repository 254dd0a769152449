"""Groups of users: to share chats with, and to limit."""

from typing import Annotated
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from chatd.audit import AuditAction
from chatd.errors import BadRequest
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.context import require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import groups
from chatd.store.store import Store

__all__ = ["Group", "routes"]

routes = web.RouteTableDef()
PATH = "/api/experimental/groups"
MAX_NAME = 100
MAX_MEMBERS = 1000


class Group(BaseModel):
    """A group and the names of its members."""

    id: UUID
    name: str
    members: list[str]


class Members(BaseModel):
    """Names of users, all of them anew."""

    model_config = ConfigDict(extra="forbid")

    members: list[Annotated[str, Field(max_length=200)]] = Field(max_length=MAX_MEMBERS)


@routes.get(PATH)
@describe(answer=list[Group])
async def list_groups(request: web.Request) -> web.Response:
    """Every group, by name."""
    rows = await services(request).store.read(groups.list_groups)
    found = [Group(id=group_id, name=name, members=members) for group_id, name, members in rows]
    return web.json_response([group.model_dump(mode="json") for group in found])


@routes.put(PATH + "/{group}")
@describe(body=Members, status=204)
async def save_group(request: web.Request) -> web.Response:
    """Make a group, or change its members; for administrators."""
    require_admin(request)
    name, wish, store = (
        request.match_info["group"].strip(),
        await read_body(request, Members),
        _store(request),
    )
    if not 1 <= len(name) <= MAX_NAME:
        raise BadRequest(f"a group's name has 1 to {MAX_NAME} characters")
    entry = entry_of(request, AuditAction.GROUP_CHANGED, target=name, members=", ".join(wish.members))
    await write_audited(request, entry, groups.save_group, name, wish.members, now=store.now())
    return web.Response(status=204)


@routes.delete(PATH + "/{group}")
@describe(status=204)
async def delete_group(request: web.Request) -> web.Response:
    """Delete a group; chats are shared with it no longer. For administrators."""
    require_admin(request)
    name = request.match_info["group"].strip()
    entry = entry_of(request, AuditAction.GROUP_DELETED, target=name)
    await write_audited(request, entry, groups.delete_group, name)
    return web.Response(status=204)


def _store(request: web.Request) -> Store:
    return services(request).store
