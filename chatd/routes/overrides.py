"""The models that people prefer for their new chats and agents, and whether they may."""

from typing import get_args

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from chatd.errors import Forbidden, NotFound
from chatd.model_wire import ModelOverride, OverrideContext
from chatd.provider.efforts import check_effort
from chatd.routes.chats import answer
from chatd.routes.context import identity, require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import deployment, model_overrides

__all__ = ["MayOverride", "UserOverrides", "routes"]

routes = web.RouteTableDef()
PATH = "/api/experimental/chats/config/personal-model-overrides"
MINE = "/api/experimental/chats/config/user-personal-model-overrides"
NOT_ALLOWED = {403: "an administrator switched personal overrides off"}


class MayOverride(BaseModel):
    """Whether people's own preferences count."""

    model_config = ConfigDict(extra="forbid")

    allow_users: StrictBool


class UserOverrides(BaseModel):
    """What the caller prefers; *allowed* tells whether it counts."""

    allowed: bool
    overrides: dict[OverrideContext, ModelOverride] = Field(
        description="root: chats; general and explore: agents of these types."
    )


@routes.get(PATH)
@describe(answer=MayOverride)
async def get_may_override(request: web.Request) -> web.Response:
    """Whether people may prefer other models for their chats and agents."""
    return answer(MayOverride(allow_users=await services(request).store.read(model_overrides.are_allowed)))


@routes.put(PATH)
@describe(body=MayOverride, status=204)
async def put_may_override(request: web.Request) -> web.Response:
    """Let them, or not: what they prefer is kept, and does not count meanwhile."""
    require_admin(request)
    wish, store = await read_body(request, MayOverride), services(request).store
    value = None if wish.allow_users else False
    await store.write(deployment.save_setting, "personal-model-overrides", value, now=store.now())
    return web.Response(status=204)


@routes.get(MINE)
@describe(answer=UserOverrides)
async def get_overrides(request: web.Request) -> web.Response:
    """What the caller prefers."""
    store, user_id = services(request).store, identity(request).user_id
    return answer(
        UserOverrides(
            allowed=await store.read(model_overrides.are_allowed),
            overrides=await store.read(model_overrides.list_overrides, user_id),
        )
    )


@routes.put(MINE + "/{context}")
@describe(body=ModelOverride, status=204, errors=NOT_ALLOWED)
async def put_override(request: web.Request) -> web.Response:
    """Prefer a model for new chats (root) or agents (general, explore) that name none."""
    context, parts = _context(request), services(request)
    wish = await read_body(request, ModelOverride)
    if not await parts.store.read(model_overrides.are_allowed):
        raise Forbidden("an administrator of this deployment switched personal model overrides off")
    source = parts.catalog.source(wish.model_config_id)
    check_effort(wish.reasoning_effort, source.efforts, model=source.display_name)
    await parts.store.write(model_overrides.save_override, identity(request).user_id, context, wish)
    return web.Response(status=204)


@routes.delete(MINE + "/{context}")
@describe(status=204)
async def delete_override(request: web.Request) -> web.Response:
    """Prefer nothing there any more."""
    user_id, context = identity(request).user_id, _context(request)
    await services(request).store.write(model_overrides.delete_override, user_id, context)
    return web.Response(status=204)


def _context(request: web.Request) -> OverrideContext:
    """
    Where a preference counts.

    Raises:
        NotFound: nowhere; the text lists where one can.
    """
    found = [known for known in get_args(OverrideContext) if known == request.match_info["context"]]
    if not found:
        raise NotFound(f"no such context; there are: {', '.join(get_args(OverrideContext))}")
    context: OverrideContext = found[0]
    return context
