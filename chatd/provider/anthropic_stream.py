"""
Anthropic's stream events as neutral ones. Sans I/O: events in, events out.

Source: ``anthropic.types.raw_message_stream_event`` and its beta twin.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent

from chatd.prompt.convert import parse_arguments
from chatd.provider.anthropic_prompt import TOOLSET_NAME
from chatd.provider.computer_map import COMPUTER_TOOL
from chatd.provider.computer_map_anthropic import canonical_from_anthropic
from chatd.provider.protocol import (
    Finished,
    FinishReason,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
)
from chatd.wire import ReasoningPart, TextPart, ToolCallPart, Usage

__all__ = ["AnthropicReader"]

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}


@dataclass(slots=True)
class _Open:
    """A content block that is still arriving."""

    kind: str
    start: dict[str, Any]
    text: list[str] = field(default_factory=list)
    signature: str = ""


class AnthropicReader:
    """
    Reads one message.

    *model_size* is the frame of computer coordinates, None when the computer was not
    offered. ``is_finished`` tells whether ``message_stop`` was seen.
    """

    def __init__(self, model_size: tuple[int, int] | None) -> None:
        self.is_finished = False
        self._model_size = model_size
        self._open: dict[int, _Open] = {}
        self._usage: dict[str, Any] = {}
        self._reason: FinishReason = "other"

    def feed(self, event: RawMessageStreamEvent | BetaRawMessageStreamEvent) -> Iterator[ProviderEvent]:
        """Take one event; unknown kinds are ignored, as the vendor asks of clients."""
        match event.type:
            case "message_start":
                self._count(event.message.usage.to_dict())
            case "content_block_start":
                opened = event.content_block.to_dict()
                self._open[event.index] = _Open(kind=str(opened.get("type")), start=opened)
                yield from self._announce(self._open[event.index])
            case "content_block_delta":
                yield from self._delta(event.index, event.delta.to_dict())
            case "content_block_stop":
                yield from self._close(event.index)
            case "message_delta":
                self._count(event.usage.to_dict())
                self._reason = _FINISH.get(str(event.delta.stop_reason), "other")
            case "message_stop":
                self.is_finished = True
                yield Finished(reason=self._reason, usage=_usage(self._usage))

    def _count(self, usage: Mapping[str, Any]) -> None:
        # Counts are cumulative; a later event corrects an earlier one but may leave fields out.
        self._usage.update({name: value for name, value in usage.items() if value is not None})

    def _announce(self, block: _Open) -> Iterator[ProviderEvent]:
        if block.kind == "tool_use":
            yield ToolInputDelta(str(block.start["id"]), _tool_name(block.start), "")
        elif block.start.get("text"):
            yield from _text_delta(block, block.start["text"])

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        block = self._open.get(index)
        if block is None:
            return
        match delta.get("type"):
            case "text_delta":
                yield from _text_delta(block, delta["text"])
            case "thinking_delta":
                block.text.append(delta["thinking"])
                yield ReasoningDelta(delta["thinking"])
            case "signature_delta":
                block.signature += delta["signature"]
            case "input_json_delta":
                block.text.append(delta["partial_json"])
                yield ToolInputDelta(str(block.start["id"]), _tool_name(block.start), delta["partial_json"])
            case _:
                pass

    def _close(self, index: int) -> Iterator[ProviderEvent]:
        block = self._open.pop(index, None)
        if block is None:
            return
        text = "".join(block.text)
        match block.kind:
            case "text" if text:
                yield PartDone(TextPart(text=text))
            case "thinking":
                signature = block.signature or block.start.get("signature", "")
                yield PartDone(
                    ReasoningPart(
                        text=text or block.start.get("thinking", ""),
                        provider_metadata={"anthropic": {"signature": signature}},
                    )
                )
            case "redacted_thinking":
                yield PartDone(
                    ReasoningPart(provider_metadata={"anthropic": {"data": block.start.get("data", "")}})
                )
            case "tool_use":
                yield PartDone(self._call(block, text))
            case _:
                pass

    def _call(self, block: _Open, text: str) -> ToolCallPart:
        args, problem = parse_arguments(text)
        if not text.strip() and isinstance(block.start.get("input"), dict):
            # Compatible servers send the whole input with the block's start.
            args = block.start["input"]
        call_id, name = str(block.start["id"]), str(block.start.get("name"))
        if self._model_size is None or _tool_name(block.start) != COMPUTER_TOOL:
            return ToolCallPart(tool_call_id=call_id, tool_name=name, args=args, invalid=problem)
        in_toolset = block.start.get("toolset_name") == TOOLSET_NAME
        action = name if in_toolset else str(args.get("action"))
        mapped = canonical_from_anthropic(action, args, self._model_size)
        raw = {key: block.start[key] for key in ("name", "toolset_name", "caller") if block.start.get(key)}
        return ToolCallPart(
            tool_call_id=call_id,
            tool_name=COMPUTER_TOOL,
            args=mapped.args,
            invalid=problem or mapped.invalid,
            provider_metadata={"anthropic": {**raw, "input": args}},
        )


def _text_delta(block: _Open, text: str) -> Iterator[ProviderEvent]:
    block.text.append(text)
    yield TextDelta(text)


def _tool_name(start: Mapping[str, Any]) -> str:
    return COMPUTER_TOOL if start.get("toolset_name") == TOOLSET_NAME else str(start.get("name"))


def _usage(counts: Mapping[str, Any]) -> Usage:
    details = counts.get("output_tokens_details") or {}
    cached = (counts.get("cache_creation_input_tokens"), counts.get("cache_read_input_tokens"))
    parts = (counts.get("input_tokens"), counts.get("output_tokens"), *cached)
    known = [count for count in parts if count is not None]
    return Usage(
        input_tokens=parts[0],
        output_tokens=parts[1],
        total_tokens=sum(known) if known else None,
        reasoning_tokens=details.get("thinking_tokens"),
        cache_creation_tokens=cached[0],
        cache_read_tokens=cached[1],
    )
