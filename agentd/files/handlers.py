"""The link's methods for files."""

import asyncio
from typing import Any

import pybase64

from agentd.files.operations import read_bytes
from agentd.files.places import Places
from agentd.wire.files import FILES_READ, FileBytes, FileReadParams
from agentd.wire.peer import Handler

__all__ = ["file_handlers"]


def file_handlers(places: Places) -> dict[str, Handler]:
    """Methods by name; they reach what the tools reach."""

    async def read(params: dict[str, Any]) -> FileBytes:
        wish = FileReadParams.model_validate(params)
        resolved, raw = await asyncio.to_thread(read_bytes, places, wish.path, wish.max_bytes)
        return FileBytes(path=str(resolved), data=pybase64.b64encode(raw).decode(), size=len(raw))

    return {FILES_READ: read}
