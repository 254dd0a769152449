"""Local API: watching a desktop, control of it, and figures of those who watch."""

import uuid
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict

from agentd.errors import BadRequest
from agentd.metrics import Metrics
from agentd.routes.desktop import CONTROL
from agentd.streams import accept
from agentd.viewers import Viewers
from agentd.wire.control import ViewerGrant
from agentd.wire.upgrade import upgrade_trouble

__all__ = ["METRICS", "VIEWERS", "routes"]

METRICS: web.AppKey[Metrics] = web.AppKey("metrics", Metrics)
VIEWERS: web.AppKey[Viewers] = web.AppKey("viewers", Viewers)

routes = web.RouteTableDef()


class _Wish(BaseModel):
    """What a local viewer asks for in its query."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    view_only: bool = False
    name: str = "a person at the workspace"


@routes.get("/api/v0/desktop/{name}/vnc")
async def vnc(request: web.Request) -> web.StreamResponse:
    """Watch the desktop, or with control of it: RFB in binary frames."""
    if trouble := upgrade_trouble(request.headers):
        raise BadRequest(trouble)
    wish = _Wish.model_validate(dict(request.query))
    grant = ViewerGrant(
        seat=f"local:{uuid.uuid4().hex}", name=wish.name, may="view" if wish.view_only else "take"
    )
    viewers = request.app[VIEWERS]
    admission = await viewers.admit(request.match_info["name"], grant)
    return await accept(request, viewers, admission)


@routes.get("/api/v0/desktop/{name}/viewers")
async def list_viewers(request: web.Request) -> web.Response:
    """Figures of those who watch one desktop."""
    figures = request.app[VIEWERS].figures(request.match_info["name"])
    return web.json_response([row.model_dump(mode="json") for row in figures])


@routes.get("/api/v0/viewers")
async def list_all(request: web.Request) -> web.Response:
    """Figures of everybody who watches, at any desktop."""
    rows: list[dict[str, Any]] = [row.model_dump(mode="json") for row in request.app[VIEWERS].figures()]
    return web.json_response(rows)


@routes.get("/metrics")
async def metrics(request: web.Request) -> web.Response:
    """The daemon's figures, as Prometheus reads them."""
    return web.Response(body=request.app[METRICS].render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@routes.get("/api/v0/desktop/{name}/control")
async def control(request: web.Request) -> web.Response:
    """Who has control of one desktop."""
    state = request.app[CONTROL].state(request.match_info["name"])
    return web.json_response(state.model_dump(mode="json"))
