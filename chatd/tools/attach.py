"""Give the person a file of the workspace: a copy that is kept with the chat."""

import base64
import uuid
from collections.abc import Awaitable, Callable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.wire.files import MAX_FILE_BYTES, FileBytes
from chatd.errors import AgentUnavailable
from chatd.file_types import base_name, media_type_of
from chatd.provider.protocol import FunctionTool
from chatd.store.rows import NewFile
from chatd.tools.arguments import describe
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome
from chatd.wire import ToolResultPart

__all__ = ["ATTACH_FILE", "ReadWorkspaceFile", "attach_tool"]

# Reads a file of the workspace: path, bytes at most.
ReadWorkspaceFile = Callable[[str, int], Awaitable[FileBytes]]


class AttachFile(BaseModel):
    """Give the person a file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str = Field(min_length=1, max_length=4_096)
    name: str | None = Field(default=None, description="What it is called; its own name by default.")


ATTACH_FILE = FunctionTool(
    name="attach_file",
    description=(
        "Give the person a file of the workspace, to see or download: a report, a picture, an archive. "
        f"A copy is kept with the chat; at most {MAX_FILE_BYTES // 2**20} MiB."
    ),
    input_schema=AttachFile.model_json_schema(),
)


def attach_tool(read_file: ReadWorkspaceFile) -> LocalTool:
    """The tool of a chat whose workspace *read_file* reads."""

    async def attach(context: CallContext) -> ToolOutcome:
        try:
            wish = AttachFile.model_validate(context.call.args or {})
            found = await read_file(wish.path, MAX_FILE_BYTES)
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        except AgentUnavailable as exc:
            return error_outcome(context.call, str(exc))
        data = base64.b64decode(found.data)
        if not data:
            return error_outcome(context.call, f"{found.path} is empty; there is nothing to attach")
        return _outcome(context, found.path, data, (wish.name or "").strip())

    return LocalTool(definition=ATTACH_FILE, run=attach)


def _outcome(context: CallContext, path: str, data: bytes, wished: str) -> ToolOutcome:
    name = base_name(wished) or base_name(path) or "file"
    file = NewFile(id=uuid.uuid4(), media_type=media_type_of(data, name), data=data, name=name)
    call = context.call
    result: dict[str, object] = {
        "ok": True,
        "path": path,
        "file_id": str(file.id),
        "name": name,
        "media_type": file.media_type,
        "size": len(data),
    }
    part = ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=result)
    return ToolOutcome(part=part, files=(file,))
