"""Signed, short-lived addresses of files."""

import hashlib
from datetime import timedelta

from aiohttp import web

from chatd.routes.bodies import Download
from chatd.routes.chats import answer
from chatd.routes.context import services
from chatd.routes.describe import describe
from chatd.routes.files import file_of_caller, file_response
from chatd.store import downloads

__all__ = ["routes"]

routes = web.RouteTableDef()
# Seconds that an address lives: one download, begun at once.
LIFETIME_S = 300


@routes.post("/api/experimental/chats/files/{file_id}/download-url")
@describe(answer=Download)
async def make_url(request: web.Request) -> web.Response:
    """An address that gives the file to whoever has it, for five minutes; relative to this server's root."""
    row, store = await file_of_caller(request), services(request).store
    now = store.now()
    expires_at = now + timedelta(seconds=LIFETIME_S)
    token = await store.write(
        downloads.sign_download,
        row["id"],
        expires_at=expires_at,
        sealer=services(request).sealer,
        now=now,
    )
    return answer(
        Download(
            url=f"download/{token}",
            expires_at=expires_at,
            sha256=hashlib.sha256(row["bytes"]).hexdigest(),
            size_bytes=len(row["bytes"]),
            media_type=row["media_type"],
            name=row["name"],
        )
    )


@routes.get("/download/{token}")
async def download(request: web.Request) -> web.Response:
    """The bytes; the address is all that is asked for."""
    store, sealer, token = services(request).store, services(request).sealer, request.match_info["token"]
    row = await store.read(downloads.open_download, token, sealer=sealer, now=store.now())
    # Not on our own page's behalf: saved, never shown.
    return file_response(row, cache="private, no-store", disposition="attachment")
