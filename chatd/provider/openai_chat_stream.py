"""
Chat Completions chunks as neutral events. Sans I/O: chunks in, events out.

Lenient where compatible servers differ: missing call ids, a finish reason of
``stop`` behind tool calls, reasoning in fields of their own.

Source: ``openai.types.chat.chat_completion_chunk``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from chatd.prompt.convert import parse_arguments
from chatd.prompt.limits import context_limit_in
from chatd.provider.computer_map import COMPUTER_TOOL, read_canonical
from chatd.provider.protocol import (
    FinishReason,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
    finish_of,
)
from chatd.wire import ReasoningPart, TextPart, ToolCallPart, Usage

__all__ = ["FINISH_REASONS", "ChatReader"]

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    # Words of compatible servers that the protocol does not have.
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "context-exceeded",
    "model_context_window_exceeded": "context-exceeded",
}
# Where compatible servers put the model's reasoning.
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _Call:
    call_id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class ChatReader:
    """
    Reads one completion.

    *model_size* is the frame of computer coordinates, None when the computer was not
    offered. The end of the stream is told by ``finish``, for usage comes behind the
    finish reason.
    """

    def __init__(self, model_size: tuple[int, int] | None) -> None:
        self._model_size = model_size
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        # The call that each index last named; some servers give every call the same index.
        self._by_index: dict[int, _Call] = {}
        self._usage: CompletionUsage | None = None
        self._reason: str | None = None
        self._context_limit: int | None = None

    @property
    def is_finished(self) -> bool:
        """Whether a finish reason was seen."""
        return self._reason is not None

    def feed(self, chunk: ChatCompletionChunk) -> Iterator[ProviderEvent]:
        """Take one chunk; only the first choice counts."""
        self._usage = chunk.usage or self._usage
        # What the protocol does not know: servers of one's own tell their window there.
        for extra in (chunk.model_extra, chunk.usage.model_extra if chunk.usage else None):
            self._context_limit = context_limit_in(extra) or self._context_limit
        for choice in (chunk.choices or [])[:1]:
            self._reason = choice.finish_reason or self._reason
            yield from self._delta(choice.delta)

    def finish(self) -> Iterator[ProviderEvent]:
        """Close what is open: reasoning, text, calls, and the end."""
        if self._reasoning:
            yield PartDone(ReasoningPart(text="".join(self._reasoning)))
        if self._text:
            yield PartDone(TextPart(text="".join(self._text)))
        for call in self._calls:
            yield PartDone(self._call_part(call))
        finished = finish_of(self._reason, FINISH_REASONS, _usage(self._usage))
        reason = "tool-calls" if self._calls and finished.reason == "stop" else finished.reason
        yield replace(finished, reason=reason, context_limit=self._context_limit)

    def _delta(self, delta: ChoiceDelta | None) -> Iterator[ProviderEvent]:
        if delta is None:
            return
        extra = delta.model_extra or {}
        thought = next((extra[name] for name in _REASONING_FIELDS if isinstance(extra.get(name), str)), "")
        if thought:
            self._reasoning.append(thought)
            yield ReasoningDelta(thought)
        text = delta.content or delta.refusal
        if text:
            self._text.append(text)
            yield TextDelta(text)
        for piece in delta.tool_calls or []:
            yield self._piece(piece)

    def _piece(self, piece: ChoiceDeltaToolCall) -> ToolInputDelta:
        function = piece.function
        name = (function.name if function else None) or ""
        arguments = (function.arguments if function else None) or ""
        call = self._by_index.get(piece.index)
        if call is None or (piece.id and name and piece.id != call.call_id):
            call = self._by_index[piece.index] = _Call(piece.id or f"call_{uuid4().hex}", name)
            self._calls.append(call)
        call.arguments.append(arguments)
        return ToolInputDelta(call.call_id, call.name, arguments)

    def _call_part(self, call: _Call) -> ToolCallPart:
        args, problem = parse_arguments("".join(call.arguments))
        if call.name == COMPUTER_TOOL and self._model_size is not None and problem is None:
            mapped = read_canonical(args, self._model_size)
            args, problem = mapped.args, mapped.invalid
        return ToolCallPart(tool_call_id=call.call_id, tool_name=call.name, args=args, invalid=problem)


def _usage(counts: CompletionUsage | None) -> Usage:
    if counts is None:
        return Usage()
    cached = counts.prompt_tokens_details.cached_tokens if counts.prompt_tokens_details else None
    details = counts.completion_tokens_details
    return Usage(
        # The vendor counts cached tokens in; we keep them apart, so that the sum is the prompt.
        input_tokens=max(counts.prompt_tokens - (cached or 0), 0),
        output_tokens=counts.completion_tokens,
        total_tokens=counts.total_tokens,
        reasoning_tokens=details.reasoning_tokens if details else None,
        cache_read_tokens=cached,
    )
