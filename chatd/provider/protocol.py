"""
What the loop asks of a model vendor.

A provider turns a neutral request into the vendor's wire shape, streams it with
the vendor's own SDK and yields neutral events. It never retries (the SDK's own
retries are off), never persists and never runs tools. Vendor failures leave as
``ProviderFault``; cancellation passes through untouched.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from chatd.prompt.message import PromptMessage
from chatd.wire import ReasoningPart, TextPart, ToolCallPart, Usage

__all__ = [
    "ComputerSpec",
    "FinishReason",
    "Finished",
    "FunctionTool",
    "ModelRequest",
    "PartDone",
    "PromptMessage",
    "Provider",
    "ProviderEvent",
    "ReasoningDelta",
    "TextDelta",
    "ToolInputDelta",
]

FinishReason = Literal["stop", "tool-calls", "length", "content-filter", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A function the model may call."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputerSpec:
    """
    The computer tool, in the vendor's own form where it has one.

    *model_size* is ``(width, height)`` of the screenshots the model sees.
    *input_schema* is the canonical schema, for vendors without a form of their own.
    """

    model_size: tuple[int, int]
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call."""

    model: str
    system: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[FunctionTool, ...] = ()
    computer: ComputerSpec | None = None
    max_output_tokens: int = 32_000


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A fragment of the text part being written."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A fragment of the reasoning part being written."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """A fragment of a tool call's arguments (may be empty, to announce the call)."""

    tool_call_id: str
    tool_name: str
    args_delta: str


@dataclass(frozen=True, slots=True)
class PartDone:
    """A whole part, in order of arrival; replaces the deltas since the last one."""

    part: TextPart | ReasoningPart | ToolCallPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The vendor's terminal event was seen. A stream that ends without it is a fault."""

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)


ProviderEvent = TextDelta | ReasoningDelta | ToolInputDelta | PartDone | Finished


class Provider(Protocol):
    """A model vendor, bound to a key and a base URL."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """
        Stream one model call.

        Raises:
            ProviderFault: the vendor refused, failed or fell silent.

        Cancellation: the HTTP response is closed; nothing is left behind.
        """
        ...

    async def close(self) -> None:
        """Close the HTTP client."""
        ...
