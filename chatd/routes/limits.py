"""What users may spend a period: for everybody, for the members of groups, for one user."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from chatd.audit import AuditAction
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import answer
from chatd.routes.context import identity, require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import deployment, spending
from chatd.store.spending import LimitKind, Period

__all__ = ["UsageLimits", "UsageStatus", "routes"]

routes = web.RouteTableDef()
PATH = "/api/experimental/chats/usage-limits"
Micros = Annotated[int, Field(ge=0, le=2**62)]


class UsageLimitConfig(BaseModel):
    """
    What holds for everybody; amounts are millionths of a dollar.

    *default_limit_micros*: absent or null: only who has a limit of their own has one. Switched off
    nobody has any.
    """

    model_config = ConfigDict(extra="forbid")

    enabled: bool
    default_limit_micros: Micros | None = None
    period: Period = "month"


class UsageLimits(UsageLimitConfig):
    """What holds for everybody, and who has a limit of their own: users and groups by name."""

    users: dict[str, int]
    groups: dict[str, int]


class OwnLimit(BaseModel):
    """Millionths of a dollar a period; 0: nothing may be asked of a model."""

    model_config = ConfigDict(extra="forbid")

    limit_micros: Micros


class UsageStatus(BaseModel):
    """What the caller spent in the current period; without a limit there is no *limit_micros*."""

    limit_micros: int | None = None
    spent_micros: int
    period: Period
    start: datetime
    resets_at: datetime


@routes.get(PATH + "/status")
@describe(answer=UsageStatus)
async def usage_status(request: web.Request) -> web.Response:
    """What the caller spent in the current period, and may."""
    store = services(request).store
    found = asdict(await store.read(store.spending.spending_of, identity(request).user_id, now=store.now()))
    return answer(UsageStatus(resets_at=found.pop("end"), **found))


@routes.get(PATH)
@describe(answer=UsageLimits)
async def get_limits(request: web.Request) -> web.Response:
    """Every limit there is; for administrators."""
    require_admin(request)
    store = services(request).store
    users = await store.read(spending.list_limits, "user")
    groups = await store.read(spending.list_limits, "group")
    return answer(UsageLimits(users=users, groups=groups, **await store.read(store.spending.stored)))


@routes.put(PATH)
@describe(body=UsageLimitConfig, status=204)
async def put_limits(request: web.Request) -> web.Response:
    """Set what holds for everybody, in place of the installation's; for administrators."""
    require_admin(request)
    wish, store = await read_body(request, UsageLimitConfig), services(request).store
    told = {name: str(value) for name, value in wish.model_dump().items()}
    entry = entry_of(request, AuditAction.LIMIT_CHANGED, target="everybody", **told)
    now = store.now()
    await write_audited(request, entry, deployment.save_setting, "usage-limits", wish.model_dump(), now=now)
    return web.Response(status=204)


async def _set(request: web.Request, kind: LimitKind, limit_micros: int | None) -> web.Response:
    name = request.match_info[kind]
    told = {"limit_micros": "none" if limit_micros is None else str(limit_micros)}
    entry = entry_of(request, AuditAction.LIMIT_CHANGED, target=f"{kind} {name}", **told)
    await write_audited(request, entry, spending.set_named_limit, kind, name, limit_micros)
    return web.Response(status=204)


@routes.put(PATH + "/overrides/{user}")
@describe(body=OwnLimit, status=204)
async def put_user_limit(request: web.Request) -> web.Response:
    """Give a user, by name, a limit of their own; it beats every other. For administrators."""
    require_admin(request)
    return await _set(request, "user", (await read_body(request, OwnLimit)).limit_micros)


@routes.delete(PATH + "/overrides/{user}")
@describe(status=204)
async def delete_user_limit(request: web.Request) -> web.Response:
    """Take it away; for administrators."""
    require_admin(request)
    return await _set(request, "user", None)


@routes.put(PATH + "/group-overrides/{group}")
@describe(body=OwnLimit, status=204)
async def put_group_limit(request: web.Request) -> web.Response:
    """Give each member of a group, by name, a limit; of several the least counts. For administrators."""
    require_admin(request)
    return await _set(request, "group", (await read_body(request, OwnLimit)).limit_micros)


@routes.delete(PATH + "/group-overrides/{group}")
@describe(status=204)
async def delete_group_limit(request: web.Request) -> web.Response:
    """Take it away; for administrators."""
    require_admin(request)
    return await _set(request, "group", None)
