"""
What a chat's tools are and how one call is run.

A tool's failure is a result that the model reads, never an exception.
"""

import asyncio
import base64
import binascii
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentd.wire.content import ImageContent, TextContent, ToolResult
from chatd.prompt.convert import IMAGE_TYPES
from chatd.provider.protocol import ComputerSpec, FunctionTool
from chatd.store.rows import NewFile
from chatd.wire import ToolCallPart, ToolResultPart

__all__ = ["CallContext", "LocalTool", "ToolOutcome", "Toolset", "error_outcome", "outcome_of", "truncate"]

# Characters of one result's text. The truncation choke point; half of a 32k window at 4 bytes a token.
MAX_RESULT_CHARACTERS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which call this is; *key* is the same whenever it is tried again."""

    chat_id: UUID
    message_id: int
    call: ToolCallPart

    @property
    def key(self) -> str:
        """Names the intention across crashes and reconnects."""
        return f"{self.chat_id}/{self.message_id}/{self.call.tool_call_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """A result part and the files it refers to."""

    part: ToolResultPart
    files: tuple[NewFile, ...] = ()


RunTool = Callable[[CallContext], Awaitable[ToolOutcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """A tool and what runs it."""

    definition: FunctionTool
    run: RunTool


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """Everything one chat may call."""

    tools: dict[str, LocalTool] = field(default_factory=dict)
    computer: ComputerSpec | None = None
    run_computer: RunTool | None = None

    def definitions(self) -> tuple[FunctionTool, ...]:
        """The functions, in registration order."""
        return tuple(tool.definition for tool in self.tools.values())

    async def run(self, context: CallContext) -> ToolOutcome:
        """Run one call; whatever goes wrong becomes an error result."""
        call = context.call
        if call.invalid is not None:
            return error_outcome(call, call.invalid)
        if call.tool_name == "computer" and self.run_computer is not None:
            return await self._guarded(self.run_computer, context)
        tool = self.tools.get(call.tool_name)
        if tool is None:
            names = ", ".join(self.tools) or "none"
            return error_outcome(
                call, f"there is no tool {call.tool_name!r} in this chat; there are: {names}"
            )
        return await self._guarded(tool.run, context)

    async def _guarded(self, run: RunTool, context: CallContext) -> ToolOutcome:
        try:
            return await run(context)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            # Not we were cancelled, but something inside the tool.
            return error_outcome(context.call, "the tool was cancelled before it ended")
        except Exception as exc:  # noqa: BLE001 -- a broken tool must not end the turn
            return error_outcome(context.call, f"{type(exc).__name__}: {exc}")


def error_outcome(call: ToolCallPart, text: str) -> ToolOutcome:
    """An error that the model reads."""
    part = ToolResultPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result={"error": truncate(text)},
        is_error=True,
    )
    return ToolOutcome(part=part)


def outcome_of(call: ToolCallPart, result: ToolResult) -> ToolOutcome:
    """A workspace's result as a part: text joined by newlines, the first picture stored as a file."""
    text = truncate("\n".join(block.text for block in result.content if isinstance(block, TextContent)))
    images = [block for block in result.content if isinstance(block, ImageContent)]
    picture = _picture(images[0]) if images else None
    if picture is not None:
        value: dict[str, Any] = {
            "file_id": str(picture.id),
            "mime_type": picture.media_type,
            "text": text,
        }
    else:
        value = {"error": text or "failed"} if result.is_error else {"output": text}
    part = ToolResultPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result=value,
        is_error=result.is_error,
        is_media=picture is not None,
    )
    return ToolOutcome(part=part, files=(picture,) if picture is not None else ())


def _picture(image: ImageContent) -> NewFile | None:
    # Files are served from the page's own origin: nothing that a browser could run may become one.
    if image.mime_type not in IMAGE_TYPES:
        return None
    try:
        data = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return NewFile(id=uuid.uuid4(), media_type=image.mime_type, data=data, name="screenshot.png")


def truncate(text: str) -> str:
    """The choke point of result size: head and tail are kept, a note says how much was cut."""
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    head = MAX_RESULT_CHARACTERS * 2 // 3
    tail = MAX_RESULT_CHARACTERS - head - 256
    removed = len(text) - head - tail
    note = f"\n\n[truncated: {removed} characters removed; ask for a narrower part]\n\n"
    return text[:head] + note + text[-tail:]
