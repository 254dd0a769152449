"""Local API: the workspace's readiness, its context, the sources it comes from."""

from dataclasses import asdict
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.routes.desktop import read_object
from agentd.routes.errors import error_response
from agentd.startup import Startup
from context_push.errors import PassTimedOut
from context_push.manager import ContextManager, LastPush, Snapshot

__all__ = ["CONTEXT", "STARTUP", "routes"]

CONTEXT: web.AppKey[ContextManager] = web.AppKey("context", ContextManager)
STARTUP: web.AppKey[Startup] = web.AppKey("startup", Startup)
SOURCES = "/api/v0/context/sources"
# A path is one percent-encoded segment; it may also come as it is.
SOURCE = SOURCES + "/{path:.+}"

routes = web.RouteTableDef()


class SourceRequest(BaseModel):
    """A directory, or one file, to look into."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="Absolute, or starting with ~/.")


@routes.get("/api/v0/ready")
async def get_ready(request: web.Request) -> web.Response:
    """Whether the workspace is ready."""
    return _ready_response(request)


@routes.post("/api/v0/ready")
async def mark_ready(request: web.Request) -> web.Response:
    """The workspace is ready now."""
    request.app[STARTUP].mark_ready()
    return _ready_response(request)


@routes.get("/api/v0/context")
async def get_context(request: web.Request) -> web.Response:
    """What is found, what is left out, and why."""
    return _snapshot_response(request, request.app[CONTEXT].snapshot)


@routes.post("/api/v0/context/resync")
async def resync(request: web.Request) -> web.Response:
    """Scan now and answer with the result."""
    try:
        snapshot = await request.app[CONTEXT].resync()
    except PassTimedOut as exc:
        return error_response(504, str(exc), exc.code)
    return _snapshot_response(request, snapshot)


@routes.get(SOURCES)
async def list_sources(request: web.Request) -> web.Response:
    """The sources that were added, and every root that is scanned, in order."""
    sources = request.app[CONTEXT].sources
    return web.json_response({"sources": list(sources.added), "roots": list(sources.roots())})


@routes.post(SOURCES)
async def add_source(request: web.Request) -> web.Response:
    """Add a source; the next scan follows at once."""
    wish = SourceRequest.model_validate(await read_object(request))
    context = request.app[CONTEXT]
    source = context.sources.add(wish.path)
    context.touch()
    return web.json_response({"path": source}, status=201)


@routes.get(SOURCE)
async def get_source(request: web.Request) -> web.Response:
    """One source that was added."""
    return web.json_response({"path": request.app[CONTEXT].sources.get(request.match_info["path"])})


@routes.delete(SOURCE)
async def remove_source(request: web.Request) -> web.Response:
    """Remove a source that was added."""
    context = request.app[CONTEXT]
    context.sources.remove(request.match_info["path"])
    context.touch()
    return web.Response(status=204)


def _ready_response(request: web.Request) -> web.Response:
    return web.json_response(request.app[STARTUP].readiness.model_dump(mode="json"))


def _snapshot_response(request: web.Request, snapshot: Snapshot) -> web.Response:
    context = request.app[CONTEXT]
    body: dict[str, Any] = {
        "ready": context.is_ready,
        "version": snapshot.version,
        "aggregate_hash": snapshot.aggregate_hash,
        "error": snapshot.error,
        "last_push": _describe_push(context.last_push),
        "roots": list(context.sources.roots()),
        "resources": [
            {"kind": resource.kind, **resource.model_dump(mode="json", exclude={"body"})}
            for resource in snapshot.resources
        ],
        "notes": [{"path": note.path, "reason": note.reason} for note in snapshot.notes],
    }
    return web.json_response(body)


def _describe_push(push: LastPush | None) -> dict[str, Any] | None:
    """How the newest push went; None: there was none."""
    if push is None:
        return None
    return asdict(push) | {"at": push.at.isoformat()}
