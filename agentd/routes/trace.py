"""Local API: the action log of a desktop."""

import tempfile

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.routes.desktop import DESKTOPS
from agentd.trace.entry import LogEntry
from agentd.trace.export import write_zip
from agentd.trace.log import ActionLog

__all__ = ["LOG", "TraceQuery", "routes"]

LOG: web.AppKey[ActionLog] = web.AppKey("action_log", ActionLog)
routes = web.RouteTableDef()

BASE = "/api/v0/desktop/{name}/trace"
# Bytes of an export that are kept in memory and sent at once; larger ones go through a file.
MEMORY_BYTES = 16 * 2**20
CHUNK_BYTES = 256 * 1024


class TraceQuery(BaseModel):
    """Which part of a log: those of one chat, the *last* so many."""

    model_config = ConfigDict(extra="forbid")

    chat: str | None = None
    last: int | None = Field(default=None, ge=1)


async def _entries(request: web.Request) -> list[LogEntry]:
    name = request.match_info["name"]
    request.app[DESKTOPS].get(name)
    wish = TraceQuery.model_validate(dict(request.query))
    return await request.app[LOG].entries(name, chat_id=wish.chat, last=wish.last)


@routes.get(BASE)
async def show(request: web.Request) -> web.Response:
    """Entries, oldest first."""
    entries = await _entries(request)
    return web.json_response([entry.model_dump(mode="json", exclude_none=True) for entry in entries])


@routes.get(BASE + "/export")
async def export(request: web.Request) -> web.StreamResponse:
    """The same as a zip with a page to look at it."""
    entries, name = await _entries(request), request.match_info["name"]
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as file:
        title = f"Actions on desktop {name}"
        await request.app[LOG].with_storage(
            name, lambda storage: write_zip(file, entries, storage.picture_path, title=title)
        )
        response = web.StreamResponse(headers={"Content-Type": "application/zip"})
        response.content_length = file.tell()
        await response.prepare(request)
        file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            await response.write(chunk)
    return response
