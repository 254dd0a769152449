"""A file of the workspace is given to the person."""

import base64
from typing import Any
from uuid import UUID

import pytest

from agentd.wire.files import MAX_FILE_BYTES, FileBytes, FileReadParams
from chatd.errors import AgentUnavailable
from chatd.store import queries
from chatd.wire import ToolResultPart
from tests.integration.chatd.core.world import World, call, say


async def attached(world: World, **args: Any) -> ToolResultPart:
    """The result of one call."""
    chat = await world.chat([call(("a", "attach_file"), **args), say("there")], agent_id=world.agent_id)
    await world.until_rest(chat.id)
    messages = await world.messages(chat.id)
    return next(part for one in messages for part in one.content if isinstance(part, ToolResultPart))


@pytest.mark.parametrize("name", [None, "  ", "../ended\\other.md"])
async def test_a_copy_is_kept_with_the_chat(world: World, name: str | None) -> None:
    """Spec 8.2: of its sniffed type, named like the file by default."""
    data = b"# Report\n"
    world.workspace.files["/home/me/report.md"] = data
    told = (await attached(world, path="/home/me/report.md", name=name)).result
    row = await world.store.read(queries.get_file, UUID(told["file_id"]), user_id=world.user_id)

    expected = "other.md" if name and name.strip() else "report.md"
    assert (row["bytes"], row["media_type"], row["name"]) == (data, "text/markdown", expected)
    assert told == {
        "ok": True,
        "path": "/home/me/report.md",
        "file_id": str(row["id"]),
        "name": expected,
        "media_type": "text/markdown",
        "size": len(data),
    }


async def test_what_can_not_be_attached_is_said(world: World) -> None:
    """Spec 8.2: empty files and those that the workspace refuses, too large ones among them."""
    asked: list[FileReadParams] = []

    async def refuse(_: object, __: str, params: FileReadParams, *___: Any, **____: Any) -> FileBytes:
        asked.append(params)
        if params.path == "/empty":
            return FileBytes(path="/empty", data=base64.b64encode(b"").decode(), size=0)
        raise AgentUnavailable("/large is too large")

    world.workspace.ask = refuse  # type: ignore[method-assign]
    results = [await attached(world, path=path) for path in ("/empty", "/large", "")]

    assert all(result.is_error for result in results)
    assert "is empty" in results[0].result["error"]
    assert results[1].result["error"] == "/large is too large"
    assert [params.max_bytes for params in asked] == [MAX_FILE_BYTES] * 2
