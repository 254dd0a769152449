"""Who am I, files, health, the page, and the agents' end of the link."""

from pathlib import Path
from uuid import UUID

from aiohttp import web

from agentd.wire.version import VERSION
from chatd.agents.endpoint import serve_link, serve_stream
from chatd.errors import Forbidden, NotFound
from chatd.routes.context import identity, services
from chatd.store import queries

__all__ = ["PAGE_DIR", "add_page", "routes"]

PAGE_DIR = Path(__file__).parent.parent / "page"
NO_PAGE = "The page was not built. `script/bootstrap` builds it; the API works without it.\n"

routes = web.RouteTableDef()


@routes.get("/healthz")
async def health(_: web.Request) -> web.Response:
    """Alive."""
    return web.json_response({"status": "ok"})


@routes.get("/api/experimental/me")
async def me(request: web.Request) -> web.Response:
    """The caller, and the models there are."""
    who, catalog = identity(request), services(request).catalog
    configs = catalog.configs()
    return web.json_response(
        {
            "user": {"id": str(who.user_id), "name": who.user_name},
            "models": [config.model_dump(mode="json") for config in configs],
            "default_model_config_id": str(catalog.default_id),
            "rehearsal": all(config.rehearsal for config in configs),
            "version": VERSION,
        }
    )


@routes.get("/api/experimental/chats/files/{file_id}")
async def get_file(request: web.Request) -> web.Response:
    """A stored file's bytes; they never change."""
    try:
        file_id = UUID(request.match_info["file_id"])
    except ValueError:
        raise NotFound("no such file") from None
    row = await services(request).store.read(queries.get_file, file_id, owner_id=identity(request).user_id)
    headers = {"Cache-Control": "private, immutable, max-age=31536000"}
    return web.Response(body=row["bytes"], content_type=row["media_type"], headers=headers)


def _agent_id(request: web.Request) -> UUID:
    agent_id = identity(request).agent_id
    if agent_id is None:
        raise Forbidden("this token belongs to no agent")
    return agent_id


@routes.get("/api/agent/link")
async def link(request: web.Request) -> web.WebSocketResponse:
    """The link, dialled by an agent."""
    return await serve_link(request, services(request).directory, _agent_id(request))


@routes.get("/api/agent/streams/{stream_id}")
async def agent_stream(request: web.Request) -> web.WebSocketResponse:
    """A desktop stream that we asked an agent for."""
    directory, stream_id = services(request).directory, request.match_info["stream_id"]
    if not directory.expects(_agent_id(request), stream_id):
        raise NotFound("nobody waits for this stream")
    return await serve_stream(request, directory, stream_id)


def add_page(app: web.Application) -> None:
    """Serve the built page, or say that there is none."""

    async def index(_: web.Request) -> web.StreamResponse:
        if not (PAGE_DIR / "index.html").is_file():
            return web.Response(text=NO_PAGE, status=503)
        return web.FileResponse(PAGE_DIR / "index.html", headers={"Cache-Control": "no-cache"})

    app.router.add_get("/", index)
    app.router.add_get("/chats/{chat_id}", index)
    if (PAGE_DIR / "assets").is_dir():
        app.router.add_static("/assets", PAGE_DIR / "assets")
