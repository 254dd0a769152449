"""Who am I, models, metrics, the page, and the agents' end of the link."""

from functools import partial
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from agentd.wire.version import VERSION
from chatd.agents.endpoint import serve_link, serve_stream
from chatd.errors import Forbidden, NotFound
from chatd.model_wire import ModelConfig
from chatd.place_wire import Workspace
from chatd.replicas.streams import pass_on
from chatd.routes.auth import identify
from chatd.routes.context import identity, is_admin, services
from chatd.routes.describe import describe
from chatd.routes.permission import while_permitted
from chatd.scopes import METRICS_PATH
from chatd.store import accounts
from chatd.tools.choosing import preferred_model

__all__ = ["PAGE_DIR", "add_page", "routes"]

PAGE_DIR = Path(__file__).parent.parent / "page"
NO_PAGE = "The page was not built. `script/bootstrap` builds it; the API works without it.\n"

routes = web.RouteTableDef()


@routes.get(METRICS_PATH)
async def metrics(request: web.Request) -> web.Response:
    """Counters and gauges for Prometheus."""
    headers = {"Content-Type": CONTENT_TYPE_LATEST}
    return web.Response(body=services(request).metrics.render(), headers=headers)


@routes.get("/api/experimental/chats/models")
@describe(answer=list[ModelConfig])
async def list_models(request: web.Request) -> web.Response:
    """The models that chats may use."""
    configs = services(request).catalog.configs()
    return web.json_response([config.model_dump(mode="json") for config in configs])


@routes.get("/api/experimental/workspaces")
@describe(answer=list[Workspace])
async def list_workspaces(request: web.Request) -> web.Response:
    """The caller's workspaces, the oldest first, which is the one that a new chat gets."""
    parts = services(request)
    rows = await parts.store.read(accounts.list_agents, identity(request).user_id)
    connected = await parts.directory.are_connected([row["id"] for row in rows])
    found = [Workspace.model_validate({**row, "connected": row["id"] in connected}) for row in rows]
    return web.json_response([workspace.model_dump(mode="json") for workspace in found])


@routes.get("/api/experimental/me")
async def me(request: web.Request) -> web.Response:
    """The caller, and the models there are."""
    who, catalog = identity(request), services(request).catalog
    configs = catalog.configs()
    own = await preferred_model(services(request).store, catalog, who.user_id, "root")
    return web.json_response(
        {
            "user": {"id": str(who.user_id), "name": who.user_name, "is_admin": is_admin(request)},
            "session": who.kind == "session",
            "models": [config.model_dump(mode="json") for config in configs],
            "default_model_config_id": str(own.model_config_id if own else catalog.default_id),
            "default_reasoning_effort": own.effort if own else None,
            "rehearsal": all(config.rehearsal for config in configs),
            "version": VERSION,
        }
    )


def _agent_id(request: web.Request) -> UUID:
    agent_id = identity(request).agent_id
    if agent_id is None:
        raise Forbidden("this token belongs to no agent")
    return agent_id


@routes.get("/api/agent/link")
async def link(request: web.Request) -> web.WebSocketResponse:
    """The link, dialled by an agent."""
    parts = services(request)
    take_push = parts.pins.take_push if parts.settings.context_push else None
    return await serve_link(
        request,
        parts.directory,
        _agent_id(request),
        take_push=take_push,
        permitted=lambda: while_permitted(partial(identify, request)),
    )


@routes.get("/api/agent/streams/{stream_id}")
async def agent_stream(request: web.Request) -> web.WebSocketResponse:
    """A desktop stream that we asked an agent for."""
    parts, stream_id = services(request), request.match_info["stream_id"]
    agent_id = _agent_id(request)
    if parts.directory.expects(agent_id, stream_id):
        return await serve_stream(request, parts.directory, stream_id)
    if parts.together is None:
        raise NotFound("nobody waits for this stream")
    # Another replica asked for it: the workspace dials whichever it can reach.
    return await pass_on(request, parts.together.agents, parts.membership, agent_id, stream_id)


def add_page(app: web.Application) -> None:
    """Serve the built page, or say that there is none."""

    async def index(_: web.Request) -> web.StreamResponse:
        if not (PAGE_DIR / "index.html").is_file():
            return web.Response(text=NO_PAGE, status=503)
        return web.FileResponse(PAGE_DIR / "index.html", headers={"Cache-Control": "no-cache"})

    async def service_worker(_: web.Request) -> web.StreamResponse:
        if not (PAGE_DIR / "sw.js").is_file():
            raise NotFound("the page was not built")
        return web.FileResponse(PAGE_DIR / "sw.js", headers={"Cache-Control": "no-cache"})

    async def chat(request: web.Request) -> web.StreamResponse:
        # Relative: a proxy may serve the page below a prefix.
        raise web.HTTPFound(f"../#/chats/{quote(request.match_info['chat_id'])}")

    app.router.add_get("/", index)
    app.router.add_get("/sw.js", service_worker)
    app.router.add_get("/chats/{chat_id}", chat)
    if (PAGE_DIR / "assets").is_dir():
        app.router.add_static("/assets", PAGE_DIR / "assets")
