"""
What a chat's tools are and how one call is run.

A tool's failure is a result that the model reads, never an exception.
"""

import asyncio
import base64
import binascii
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

import structlog

from agentd.wire.content import AudioContent, ImageContent, TextContent, ToolResult
from chatd.prompt.pictures import mend, sniff
from chatd.prompt.truncation import UNKNOWN_WINDOW_BYTES, text_bytes, truncate_value
from chatd.provider.protocol import ComputerSpec, FunctionTool
from chatd.store.rows import NewFile
from chatd.tools.policy import Origin
from chatd.wire import ToolCallPart, ToolResultPart

__all__ = ["CallContext", "LocalTool", "Observed", "ToolOutcome", "Toolset", "error_outcome", "outcome_of"]


def _unheard(_: str) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """
    Which call this is; *key* is the same whenever it is tried again.

    *report* shows people how it goes, each text in place of the one before.
    """

    chat_id: UUID
    message_id: int
    call: ToolCallPart
    report: Callable[[str], None] = _unheard

    @property
    def key(self) -> str:
        """Names the intention across crashes and reconnects."""
        return f"{self.chat_id}/{self.message_id}/{self.call.tool_call_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """A result part and the files it refers to."""

    part: ToolResultPart
    files: tuple[NewFile, ...] = ()


log = structlog.get_logger("chatd.tools")

RunTool = Callable[[CallContext], Awaitable[ToolOutcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One result: bytes of its text before anything was cut; *tool* is empty for one that there is not."""

    tool: str
    size_bytes: int
    is_error: bool
    is_truncated: bool


Observe = Callable[[Observed], None]


def _nobody(_: Observed) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """
    A tool and what runs it.

    *is_exclusive*: it must be the only call of its answer. *stops_turn*: once it has
    succeeded the turn is over, and the model is not asked again. *is_hidden*: models are not told
    of it; histories know it, so a call is answered.
    """

    definition: FunctionTool
    run: RunTool
    origin: Origin = Origin.OURS
    is_exclusive: bool = False
    stops_turn: bool = False
    is_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """
    Everything one chat may call.

    *result_bytes* bounds the text of one result; 0: no bound. *observe* is told of each result.
    """

    tools: dict[str, LocalTool] = field(default_factory=dict)
    computer: ComputerSpec | None = None
    run_computer: RunTool | None = None
    result_bytes: int = UNKNOWN_WINDOW_BYTES
    observe: Observe = _nobody

    def definitions(self) -> tuple[FunctionTool, ...]:
        """The functions that the model is told of, in registration order."""
        return tuple(tool.definition for tool in self.tools.values() if not tool.is_hidden)

    def refuse_company(self, calls: Sequence[ToolCallPart]) -> dict[str, ToolOutcome]:
        """Errors for all *calls* of one answer, if one of them must be alone and is not; else none."""
        alone = [call.tool_name for call in calls if self._has(call.tool_name, "is_exclusive")]
        if len(calls) < 2 or not alone:
            return {}
        refusal = f"not run: {alone[0]} must be called alone; call this again after it"
        outcomes = {
            call.tool_call_id: error_outcome(
                call,
                f"{call.tool_name} must be called alone; nothing was run"
                if call.tool_name in alone
                else refusal,
            )
            for call in calls
        }
        for outcome in outcomes.values():
            self._tell(outcome.part)
        return outcomes

    def stops_after(self, results: Iterable[ToolResultPart]) -> bool:
        """Whether the turn is over with these *results*."""
        return any(not part.is_error and self._has(part.tool_name, "stops_turn") for part in results)

    def _has(self, name: str, trait: Literal["is_exclusive", "stops_turn"]) -> bool:
        tool = self.tools.get(name)
        return tool is not None and bool(getattr(tool, trait))

    async def run(self, context: CallContext) -> ToolOutcome:
        """Run one call; whatever goes wrong becomes an error result, whatever is too long is cut."""
        return self._bounded(context, await self._run(context))

    def _bounded(self, context: CallContext, outcome: ToolOutcome) -> ToolOutcome:
        """The choke point of result size: before anything is published or committed."""
        value, removed = truncate_value(outcome.part.result, self.result_bytes)
        self._tell(outcome.part, is_truncated=removed > 0)
        if not removed:
            return outcome
        log.warning(
            "tool result truncated",
            action="tool_result_truncated",
            chat_id=str(context.chat_id),
            tool=context.call.tool_name,
            call_id=context.call.tool_call_id,
            size_bytes=text_bytes(outcome.part.result),
            max_bytes=self.result_bytes,
        )
        return replace(outcome, part=outcome.part.model_copy(update={"result": value}))

    def _tell(self, part: ToolResultPart, *, is_truncated: bool = False) -> None:
        # A model may make any number of names up; each would be a series of its own.
        is_known = part.tool_name in self.tools or part.tool_name == "computer"
        self.observe(
            Observed(
                tool=part.tool_name if is_known else "",
                size_bytes=text_bytes(part.result),
                is_error=part.is_error,
                is_truncated=is_truncated,
            )
        )

    async def _run(self, context: CallContext) -> ToolOutcome:
        call = context.call
        if call.invalid is not None:
            return error_outcome(call, call.invalid)
        if call.tool_name == "computer" and self.run_computer is not None:
            return await self._guarded(self.run_computer, context)
        tool = self.tools.get(call.tool_name)
        if tool is None:
            names = ", ".join(one.name for one in self.definitions()) or "none"
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
        result={"error": text},
        is_error=True,
    )
    return ToolOutcome(part=part)


def outcome_of(call: ToolCallPart, result: ToolResult) -> ToolOutcome:
    """A workspace's result as a part: text joined by newlines, the first picture stored as a file."""
    images = [block for block in result.content if isinstance(block, ImageContent)]
    found = _picture(images[0]) if images else None
    sentences = list(_sentences(result, len(images)))
    if isinstance(found, str):
        sentences.append(f"[the tool's picture was left out: {found}]")
    text = "\n".join(sentences)
    picture = found if isinstance(found, NewFile) else None
    if picture is not None:
        value: dict[str, Any] = {
            "file_id": str(picture.id),
            "mime_type": picture.media_type,
            "text": text,
        }
    elif result.structured is not None and not result.content:
        value = result.structured
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


def _sentences(result: ToolResult, pictures: int) -> Iterator[str]:
    """A result's text; what no model can be shown is named, so that it is not thought to be missing."""
    for block in result.content:
        if isinstance(block, TextContent):
            yield block.text
        elif isinstance(block, AudioContent):
            yield f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes: sound can't be shown to a model]"
    if pictures > 1:
        yield f"[the first of {pictures} pictures; the others were left out]"


def _picture(image: ImageContent) -> NewFile | str:
    """The picture as a file, or why it is none. Its type is what its bytes say, whatever the tool said."""
    try:
        data = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return "its base64 is broken"
    # Files are served from the page's own origin: nothing that a browser could run may become one.
    data = mend(data)
    found = sniff(data)
    if found is None:
        return f"{image.mime_type} of {len(data):,} bytes, broken or of no kind that models take"
    name = f"screenshot.{found.media_type.removeprefix('image/')}"
    return NewFile(id=uuid.uuid4(), media_type=found.media_type, data=data, name=name)
