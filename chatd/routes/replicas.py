"""
Where replicas talk to each other: calls to workspaces, fragments, desktop streams.

Whoever asks proves by a credential of its own that it is a replica that lives; no user's token gets in,
and no replica's credential gets into another route.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

from aiohttp import hdrs, web

from agentd.wire.version import VERSION
from chatd.agents.endpoint import serve_stream
from chatd.errors import BadRequest, NotFound, Unauthorised
from chatd.replicas.dialling import PREFIX
from chatd.replicas.links import serve_calls
from chatd.replicas.parts import serve_parts
from chatd.routes.context import services
from chatd.routes.viewing import require_upgrade
from chatd.store import replicas

__all__ = ["replica_middleware", "routes"]

routes = web.RouteTableDef()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def replica_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let only replicas that live into their routes."""
    if request.path.startswith(PREFIX + "/"):
        replica_id, credential = _credential(request)
        await services(request).store.read(replicas.check_credential, replica_id, credential)
    return await handler(request)


def _credential(request: web.Request) -> tuple[UUID, str]:
    scheme, _, text = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    name, _, credential = text.strip().partition(".")
    try:
        if scheme.lower() == "replica" and credential:
            return UUID(name), credential
    except ValueError:
        pass
    raise Unauthorised("this route is for replicas")


@routes.get(PREFIX + "/whoami")
async def whoami(request: web.Request) -> web.Response:
    """Who answers at this address."""
    membership = services(request).membership
    return web.json_response({"replica_id": str(membership.replica_id), "version": VERSION})


@routes.get(PREFIX + "/calls")
async def calls(request: web.Request) -> web.StreamResponse:
    """Calls to workspaces that are linked here."""
    _require_websocket(request)
    return await serve_calls(request, services(request).directory)


@routes.get(PREFIX + "/parts")
async def parts(request: web.Request) -> web.StreamResponse:
    """Fragments of chats that are driven here."""
    _require_websocket(request)
    return await serve_parts(request, services(request).hub, services(request).buffer)


@routes.get(PREFIX + "/streams/{stream_id}")
async def stream(request: web.Request) -> web.StreamResponse:
    """A desktop stream that was asked for here; its workspace dialled back to whoever passes it on."""
    require_upgrade(request)
    directory, stream_id = services(request).directory, request.match_info["stream_id"]
    try:
        agent_id = UUID(request.query.get("agent_id", ""))
    except ValueError as exc:
        raise BadRequest("agent_id is no id") from exc
    if not directory.expects(agent_id, stream_id):
        raise NotFound("nobody waits for this stream")
    return await serve_stream(request, directory, stream_id)


def _require_websocket(request: web.Request) -> None:
    if request.headers.get(hdrs.UPGRADE, "").lower() != "websocket":
        raise BadRequest("this route is a WebSocket between replicas")
