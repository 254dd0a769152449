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
    FinishReason,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
    finish_of,
)
from chatd.wire import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart, Usage

__all__ = ["FINISH_REASONS", "AnthropicReader"]

FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "context-exceeded",
    "tool_use": "tool-calls",
    "pause_turn": "paused",
    "refusal": "content-filter",
    # Of histories that the vendor shortens itself, which nobody asks it for.
    "compaction": "other",
}


# Blocks whose input is streamed.
_CALLS = frozenset({"tool_use", "server_tool_use"})


@dataclass(slots=True)
class _Open:
    """A content block that is still arriving."""

    kind: str
    start: dict[str, Any]
    text: list[str] = field(default_factory=list)
    signature: str = ""
    citations: list[dict[str, Any]] = field(default_factory=list)


class AnthropicReader:
    """
    Reads one message.

    *model_size* is the frame of computer coordinates, None when the computer was not
    offered. ``is_finished`` tells whether ``message_stop`` was seen, ``is_paused`` whether
    the vendor only paused in the middle of its own tools: then there is no ``Finished``.
    *usage* is what the pauses before this message used.
    """

    def __init__(self, model_size: tuple[int, int] | None, usage: Usage | None = None) -> None:
        self.is_finished = False
        self.is_paused = False
        self._before = usage or Usage()
        self._model_size = model_size
        self._open: dict[int, _Open] = {}
        self._usage: dict[str, Any] = {}
        self._word: str | None = None

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
                self._word = event.delta.stop_reason
                self.is_paused = self._word == "pause_turn"
            case "message_stop":
                self.is_finished = True
                if not self.is_paused:
                    yield finish_of(self._word, FINISH_REASONS, self.usage)

    @property
    def usage(self) -> Usage:
        """Everything that was used so far."""
        return _sum(self._before, _usage(self._usage))

    def _count(self, usage: Mapping[str, Any]) -> None:
        # Counts are cumulative; a later event corrects an earlier one but may leave fields out.
        self._usage.update({name: value for name, value in usage.items() if value is not None})

    def _announce(self, block: _Open) -> Iterator[ProviderEvent]:
        if block.kind in _CALLS:
            yield _input_delta(block, "")
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
            case "citations_delta":
                block.citations.append(delta["citation"])
            case "signature_delta":
                block.signature += delta["signature"]
            case "input_json_delta":
                block.text.append(delta["partial_json"])
                yield _input_delta(block, delta["partial_json"])
            case _:
                pass

    def _close(self, index: int) -> Iterator[ProviderEvent]:
        block = self._open.pop(index, None)
        if block is None:
            return
        text = "".join(block.text)
        match block.kind:
            case "text" if text:
                yield from _cited_text(text, block.citations)
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
            case "server_tool_use":
                yield PartDone(_server_call(block, text))
            case kind if kind.endswith("_tool_result"):
                yield PartDone(_server_result(block.start))
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


def _cited_text(text: str, citations: list[dict[str, Any]]) -> Iterator[ProviderEvent]:
    """A text and, behind it, each page that it cites, once."""
    metadata = {"anthropic": {"citations": citations}} if citations else None
    yield PartDone(TextPart(text=text, provider_metadata=metadata))
    pages = {page["url"]: page for page in citations if page.get("type") == "web_search_result_location"}
    for url, page in pages.items():
        yield PartDone(SourcePart(url=url, title=page.get("title")))


def _server_call(block: _Open, text: str) -> ToolCallPart:
    """A call that the vendor runs itself; its block goes back as it came."""
    args, problem = parse_arguments(text)
    kept = {**block.start, "input": args or block.start.get("input") or {}}
    return ToolCallPart(
        tool_call_id=str(block.start["id"]),
        tool_name=str(block.start.get("name")),
        args=kept["input"],
        invalid=problem,
        provider_executed=True,
        provider_metadata={"anthropic": {"block": kept}},
    )


def _server_result(start: dict[str, Any]) -> ToolResultPart:
    """What came of it: pages for people, the block with its encrypted content for the vendor."""
    content = start.get("content")
    error = content.get("error_code") if isinstance(content, dict) else None
    pages = [page for page in content if isinstance(page, dict)] if isinstance(content, list) else []
    shown = [{key: page[key] for key in ("title", "url", "page_age") if page.get(key)} for page in pages]
    return ToolResultPart(
        tool_call_id=str(start["tool_use_id"]),
        tool_name=str(start["type"]).removesuffix("_tool_result"),
        result={"error": error} if error else {"results": shown},
        is_error=error is not None,
        provider_executed=True,
        provider_metadata={"anthropic": {"block": start}},
    )


def _text_delta(block: _Open, text: str) -> Iterator[ProviderEvent]:
    block.text.append(text)
    yield TextDelta(text)


def _input_delta(block: _Open, text: str) -> ToolInputDelta:
    is_vendors = block.kind == "server_tool_use"
    return ToolInputDelta(str(block.start["id"]), _tool_name(block.start), text, provider_executed=is_vendors)


def _tool_name(start: Mapping[str, Any]) -> str:
    return COMPUTER_TOOL if start.get("toolset_name") == TOOLSET_NAME else str(start.get("name"))


def _sum(first: Usage, second: Usage) -> Usage:
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in Usage.model_fields}
    return Usage(
        **{name: None if pair == (None, None) else sum(filter(None, pair)) for name, pair in pairs.items()}
    )


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
