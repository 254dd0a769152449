"""Files: uploads, checked by what is in them, and their bytes."""

from uuid import UUID

import sqlalchemy as sa
from aiohttp import hdrs, multipart, payload, web

from chatd.constants import MAX_FILE_BYTES
from chatd.errors import BadRequest, NotFound, TooLarge
from chatd.file_types import TEXT_TYPES, TYPES, base_name, sniff
from chatd.routes.bodies import Created
from chatd.routes.bounds import read_within
from chatd.routes.chats import answer
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.store import queries, uploads

__all__ = ["file_of_caller", "file_response", "routes"]

# Seconds for a file to arrive.
UPLOAD_S = 300.0

routes = web.RouteTableDef()


@routes.post("/api/experimental/chats/files")
@describe(raw_body=tuple(sorted(TYPES)), answer=Created, status=201, errors={413: "more than 10 MiB"})
async def upload(request: web.Request) -> web.Response:
    """Upload a file; a message names it by its id."""
    declared = request.content_type
    if declared not in TYPES:
        raise BadRequest(f"Content-Type {declared!r} is not taken; there are: {', '.join(sorted(TYPES))}")
    async with read_within(UPLOAD_S):
        data = await _read_limited(request)
    found = sniff(data)
    if not data or found != ("text/plain" if declared in TEXT_TYPES else declared):
        raise BadRequest(f"the bytes are no {declared}")
    store = services(request).store
    file_id = await store.write(
        uploads.save_upload,
        owner_id=identity(request).user_id,
        name=_file_name(request),
        media_type=declared,
        data=data,
        now=store.now(),
    )
    return answer(Created(id=file_id), status=201)


async def _read_limited(request: web.Request) -> bytes:
    """The body, refused as soon as it is too long."""
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > MAX_FILE_BYTES:
            raise TooLarge(f"a file has at most {MAX_FILE_BYTES // 2**20} MiB")
    return bytes(data)


def _file_name(request: web.Request) -> str | None:
    """The name in Content-Disposition."""
    _, parameters = multipart.parse_content_disposition(request.headers.get(hdrs.CONTENT_DISPOSITION))
    return base_name(multipart.content_disposition_filename(parameters) or "")


async def file_of_caller(request: web.Request) -> sa.RowMapping:
    """
    The file named in the path.

    Raises:
        NotFound: there is none that the caller may see.
    """
    try:
        file_id = UUID(request.match_info["file_id"])
    except ValueError:
        raise NotFound("no such file") from None
    return await services(request).store.read(queries.get_file, file_id, user_id=identity(request).user_id)


def file_response(row: sa.RowMapping, *, cache: str, disposition: str) -> web.Response:
    """A file's bytes, with its name as far as a header can carry it."""
    charset = "utf-8" if row["media_type"] in TEXT_TYPES else None
    named = payload.BytesPayload(b"")
    named.set_content_disposition(disposition, **({"filename": row["name"]} if row["name"] else {}))
    headers = {
        hdrs.CACHE_CONTROL: cache,
        hdrs.CONTENT_DISPOSITION: named.headers[hdrs.CONTENT_DISPOSITION],
    }
    return web.Response(body=row["bytes"], content_type=row["media_type"], charset=charset, headers=headers)


@routes.get("/api/experimental/chats/files/{file_id}")
@describe(media_type="application/octet-stream")
async def get_file(request: web.Request) -> web.Response:
    """A stored file's bytes; they never change."""
    row = await file_of_caller(request)
    return file_response(row, cache="private, immutable, max-age=31536000", disposition="inline")
