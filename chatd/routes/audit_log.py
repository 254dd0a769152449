"""The audit log: for administrators."""

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from chatd.account_wire import AuditLine
from chatd.audit import AuditAction
from chatd.routes.context import require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_query
from chatd.store import audit

__all__ = ["routes"]

routes = web.RouteTableDef()


class AuditQuery(BaseModel):
    """Which entries; *before_id*: the next page of older ones; *after_id*: what came since, oldest first."""

    model_config = ConfigDict(extra="forbid")

    action: AuditAction | None = None
    actor: str | None = Field(default=None, max_length=200)
    before_id: int | None = Field(default=None, ge=0, le=2**62)
    after_id: int | None = Field(default=None, ge=0, le=2**62)
    limit: int = Field(default=100, ge=1, le=1000)


@routes.get("/api/experimental/audit")
@describe(query=AuditQuery, answer=list[AuditLine])
async def list_entries(request: web.Request) -> web.Response:
    """What mattered for security, the newest first."""
    require_admin(request)
    wish = read_query(request, AuditQuery)
    rows = await services(request).store.read(
        audit.list_entries,
        after_id=wish.after_id,
        before_id=wish.before_id,
        action=wish.action,
        actor=wish.actor,
        limit=wish.limit,
    )
    found = [AuditLine.model_validate(dict(row)) for row in rows]
    return web.json_response([line.model_dump(mode="json", exclude_none=True) for line in found])
