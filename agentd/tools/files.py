"""Tools for the workspace's files."""

import asyncio
import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agentd.files.edits import Edit
from agentd.files.lines import MAX_LINES
from agentd.files.operations import edit_files, is_directory, list_directory, read_text, write_file
from agentd.files.places import Places
from agentd.tools.answers import Arguments, data_tool
from agentd.tools.registry import Tool
from agentd.wire.link import ToolCallParams

__all__ = ["file_tools"]

# Characters of a file that is written in one call; larger ones are made by commands.
MAX_CONTENT_CHARACTERS = 4 * 1024 * 1024
# Characters of the diffs that an edit answers with; the rest can be read.
MAX_DIFF_CHARACTERS = 16_384
MAX_EDITS = 500

AbsolutePath = Annotated[str, Field(description="Absolute, or beginning with ~/ for the home directory.")]
Offset = Annotated[int, Field(ge=1, description="1-based number of the first line.")]
Limit = Annotated[int, Field(ge=1, le=MAX_LINES, description="How many lines at most.")]


class ReadFile(Arguments):
    """Arguments of ``read_file``."""

    path: AbsolutePath
    offset: Offset = 1
    limit: Limit = MAX_LINES


class ListDirectory(Arguments):
    """Arguments of ``list_directory``."""

    path: AbsolutePath
    offset: Offset = 1
    limit: Limit = MAX_LINES


class WriteFile(Arguments):
    """Arguments of ``write_file``."""

    path: AbsolutePath
    content: Annotated[str, Field(max_length=MAX_CONTENT_CHARACTERS)]


def _decoded(value: Any) -> Any:  # noqa: ANN401 -- JSON
    """Some models write an array as a text that holds one."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class FlatEdit(BaseModel):
    """One replacement in one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: AbsolutePath
    old_text: str
    new_text: str
    replace_all: bool = False


class EditFiles(Arguments):
    """Arguments of ``edit_files``; the older form with *files* is taken as well."""

    edits: Annotated[
        tuple[FlatEdit, ...], BeforeValidator(_decoded), Field(min_length=1, max_length=MAX_EDITS)
    ]

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, value: Any) -> Any:  # noqa: ANN401 -- JSON
        files = _decoded(value.get("files")) if isinstance(value, dict) else None
        if not isinstance(files, list):
            return value
        return {
            "edits": [
                {
                    "path": file.get("path"),
                    "old_text": edit.get("search"),
                    "new_text": edit.get("replace"),
                    "replace_all": edit.get("replace_all", False),
                }
                for file in files
                if isinstance(file, dict)
                for edit in _decoded(file.get("edits")) or ()
                if isinstance(edit, dict)
            ]
        }


def file_tools(places: Places) -> list[Tool]:
    """The tools, bound to the places they may touch."""

    async def read(given: ReadFile, _: ToolCallParams) -> dict[str, Any]:
        return await asyncio.to_thread(_read, places, given)

    async def list_(given: ListDirectory, _: ToolCallParams) -> dict[str, Any]:
        listing = await asyncio.to_thread(
            list_directory, places, given.path, offset=given.offset, limit=given.limit
        )
        return _without_none(
            path=str(listing.path),
            entries=list(listing.entries),
            total_entries=listing.window.total,
            note=listing.window.note,
        )

    async def write(given: WriteFile, call: ToolCallParams) -> dict[str, Any]:
        await asyncio.to_thread(places.require_only, given.path, call.writes_only)
        resolved = await asyncio.to_thread(write_file, places, given.path, given.content)
        return {"ok": True, "path": str(resolved), "bytes": len(given.content.encode())}

    async def edit(given: EditFiles, call: ToolCallParams) -> dict[str, Any]:
        for path in {one.path for one in given.edits}:
            await asyncio.to_thread(places.require_only, path, call.writes_only)
        by_path: dict[str, list[Edit]] = {}
        for one in given.edits:
            by_path.setdefault(one.path, []).append(
                Edit(old_text=one.old_text, new_text=one.new_text, replace_all=one.replace_all)
            )
        diffs = await asyncio.to_thread(edit_files, places, by_path)
        room = MAX_DIFF_CHARACTERS // len(diffs)
        return {
            "ok": True,
            "files": [{"path": path, "diff": _cut(text, room)} for path, text in diffs.items()],
        }

    return [
        data_tool("read_file", READ, ReadFile, read, reads_only=True),
        data_tool("list_directory", LIST, ListDirectory, list_, reads_only=True),
        data_tool("write_file", WRITE, WriteFile, write),
        data_tool("edit_files", EDIT, EditFiles, edit),
    ]


READ = (
    "Read a text file of the workspace by lines. The answer numbers them, holds at most 2,000 lines and "
    "32 KiB, and names the offset to go on with. Of a directory it shows the entries so."
)
LIST = "List a directory of the workspace by name; directories end with a slash."
WRITE = "Write a whole file of the workspace, making its directories. What was there is replaced."
EDIT = (
    "Replace text in files of the workspace. Each old_text must be found once (or set replace_all); "
    "differences in the space at the ends of lines are forgiven. All edits are checked before any file "
    "is written."
)


def _read(places: Places, given: ReadFile) -> dict[str, Any]:
    if is_directory(places, given.path):
        return _read_directory(places, given)
    window, size = read_text(places, given.path, offset=given.offset, limit=given.limit)
    return _without_none(
        content=window.text,
        file_size=size,
        total_lines=window.total,
        lines_read=window.count,
        note=window.note,
    )


def _read_directory(places: Places, given: ReadFile) -> dict[str, Any]:
    listing = list_directory(places, given.path, offset=given.offset, limit=given.limit)
    window = listing.window
    return _without_none(
        content=window.text,
        is_directory=True,
        absolute_path=str(listing.path),
        entries=list(listing.entries),
        entries_read=window.count,
        total_entries=window.total,
        truncated=window.next_offset is not None,
        note=window.note,
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]}\n[{len(text) - room} more characters of this diff]"


def _without_none(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    return {name: value for name, value in fields.items() if value is not None}
