"""Local API: recordings of desktops."""

from uuid import UUID

from aiohttp import web

from agentd.errors import BadRequest
from agentd.recording import Recordings
from agentd.routes.desktop import read_object
from agentd.wire.recordings import RecordingList, RecordingStartParams

__all__ = ["RECORDINGS", "routes"]

RECORDINGS: web.AppKey[Recordings] = web.AppKey("recordings", Recordings)
routes = web.RouteTableDef()

BASE = "/api/v0/recordings"


def _recordings(request: web.Request) -> Recordings:
    return request.app[RECORDINGS]


def _number(request: web.Request) -> UUID:
    try:
        return UUID(request.match_info["id"])
    except ValueError:
        msg = f"{request.match_info['id']!r} is no id of a recording: those are UUIDs"
        raise BadRequest(msg) from None


@routes.get(BASE)
async def every(request: web.Request) -> web.Response:
    """All recordings, newest first."""
    found = RecordingList(recordings=await _recordings(request).every())
    return web.json_response(found.model_dump(mode="json")["recordings"])


@routes.post(BASE)
async def start(request: web.Request) -> web.Response:
    """Start one; answers once its first fragment is on disk."""
    wish = RecordingStartParams.model_validate(await read_object(request))
    info = await _recordings(request).start(wish.id, desktop=wish.desktop, chat_id=wish.chat_id)
    return web.json_response(info.model_dump(mode="json"))


@routes.get(BASE + "/{id}")
async def one(request: web.Request) -> web.Response:
    """One recording."""
    info = await _recordings(request).get(_number(request))
    return web.json_response(info.model_dump(mode="json"))


@routes.post(BASE + "/{id}/stop")
async def stop(request: web.Request) -> web.Response:
    """Stop one; answers once the film is whole, before its stills are sped up."""
    stopped = await _recordings(request).stop(_number(request))
    return web.json_response(stopped.recording.model_dump(mode="json"))


@routes.get(BASE + "/{id}/film")
async def film(request: web.Request) -> web.StreamResponse:
    """The film; ranges work, so that a player can seek."""
    return web.FileResponse(await _recordings(request).film(_number(request)))


@routes.get(BASE + "/{id}/thumbnail")
async def thumbnail(request: web.Request) -> web.StreamResponse:
    """Small picture of the film's end."""
    return web.FileResponse(await _recordings(request).thumbnail(_number(request)))
