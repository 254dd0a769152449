"""
What the loop asks of a model vendor.

A provider turns a neutral request into the vendor's wire shape, streams it with
the vendor's own SDK and yields neutral events. It never retries (the SDK's own
retries are off), never persists and never runs tools. Vendor failures leave as
``ProviderFault``; cancellation passes through untouched.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from chatd.constants import MAX_OUTPUT_TOKENS
from chatd.model_wire import ReasoningEffort
from chatd.prompt.message import PromptMessage
from chatd.wire import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart, Usage

__all__ = [
    "MAX_OUTPUT_TOKENS",
    "MAX_PAUSES",
    "Alive",
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
    "WebSearch",
    "finish_of",
]

# ``length``: the answer's own limit; ``context-exceeded``: the model's window; ``paused``: the vendor
# stopped in the middle of its own tools and was asked to go on often enough.
FinishReason = Literal[
    "stop", "tool-calls", "length", "context-exceeded", "content-filter", "paused", "other"
]
# Messages of one answer: a vendor pauses a long run of its own tools, to be asked to go on.
MAX_PAUSES = 10


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
class WebSearch:
    """
    Searches that the vendor runs itself; what a vendor has no word for is left out.

    *allowed_domains* and *blocked_domains* exclude each other.
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    context_size: Literal["low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """
    One model call. Without *may_call* the tools are only there for the history to make sense.

    *effort* is one that the model offers; None: as the vendor has it.
    """

    model: str
    system: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[FunctionTool, ...] = ()
    computer: ComputerSpec | None = None
    web_search: WebSearch | None = None
    effort: ReasoningEffort | None = None
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    may_call: bool = True


@dataclass(frozen=True, slots=True)
class Alive:
    """The vendor sent something that means nothing else: it thinks."""


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
    provider_executed: bool = False


@dataclass(frozen=True, slots=True)
class PartDone:
    """
    A whole part, in order of arrival; replaces the deltas since the last one.

    Results are those of tools that the vendor ran itself.
    """

    part: TextPart | ReasoningPart | ToolCallPart | ToolResultPart | SourcePart


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """
    The vendor's terminal event was seen. A stream that ends without it is a fault.

    *context_limit* is the model's window, where the server told it; *word* the vendor's own for
    a reason that is none of ours.
    """

    reason: FinishReason
    usage: Usage = field(default_factory=Usage)
    context_limit: int | None = None
    word: str | None = None


def finish_of(word: str | None, reasons: Mapping[str, FinishReason], usage: Usage) -> Finished:
    """What a vendor's *word* for the end of an answer means by its table of *reasons*."""
    reason = reasons.get(word or "", "other")
    return Finished(reason=reason, usage=usage, word=word if reason == "other" else None)


ProviderEvent = Alive | TextDelta | ReasoningDelta | ToolInputDelta | PartDone | Finished


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
