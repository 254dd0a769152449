"""
OpenAI's Responses events as neutral ones. Sans I/O: events in, events out.

Source: ``openai.types.responses.response_stream_event``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent

from chatd.faults import ReportedError
from chatd.prompt.convert import parse_arguments
from chatd.provider.computer_map import COMPUTER_TOOL
from chatd.provider.computer_map_openai import canonical_from_openai
from chatd.provider.openai_responses_prompt import METADATA_KEY
from chatd.provider.protocol import (
    Finished,
    FinishReason,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
    finish_of,
)
from chatd.wire import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart, Usage

__all__ = ["INCOMPLETE_REASONS", "ResponsesReader"]

# Why a response is incomplete; one whose prompt is too long fails.
INCOMPLETE_REASONS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
    "max_messages": "other",
    "steered": "other",
}
SEARCH_TOOL = "web_search"
# Characters of safety checks quoted to a person.
_MAX_CHECKS = 400


class ResponsesReader:
    """
    Reads one response.

    *model_size* is the frame of computer coordinates. ``is_finished`` tells whether
    a terminal event was seen.
    """

    def __init__(self, model_size: tuple[int, int]) -> None:
        self.is_finished = False
        self._model_size = model_size
        self._has_calls = False
        # Item id -> (call id, tool name), for the deltas of a call's arguments.
        self._calls: dict[str, tuple[str, str]] = {}

    def feed(self, event: ResponseStreamEvent) -> Iterator[ProviderEvent]:
        """
        Take one event; kinds that carry nothing for us are ignored.

        Raises:
            ReportedError: the vendor reported a failure in the stream.
        """
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield TextDelta(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ReasoningDelta(event.delta)
            case "response.output_item.added":
                yield from self._announce(event.item)
            case "response.function_call_arguments.delta":
                call_id, name = self._calls.get(event.item_id, (event.item_id, ""))
                yield ToolInputDelta(call_id, name, event.delta)
            case "response.output_item.done":
                yield from self._item(event.item)
            case "response.completed" | "response.incomplete":
                yield self._finish(event.response)
            case "response.failed" | "error":
                _raise_reported(event.to_dict())
            case _:
                pass

    def _announce(self, item: ResponseOutputItem) -> Iterator[ProviderEvent]:
        if item.type == "function_call":
            self._calls[item.id or item.call_id] = (item.call_id, item.name)
            yield ToolInputDelta(item.call_id, item.name, "")
        elif item.type == "computer_call":
            yield ToolInputDelta(item.call_id, COMPUTER_TOOL, "")
        elif item.type == "web_search_call":
            yield ToolInputDelta(item.id, SEARCH_TOOL, "", provider_executed=True)

    def _item(self, item: ResponseOutputItem) -> Iterator[ProviderEvent]:
        raw = item.to_dict()
        match item.type:
            case "message":
                yield from _message(raw)
            case "reasoning":
                blocks = _objects(raw.get("summary")) or _objects(raw.get("content"))
                text = "\n\n".join(_text_of(block) for block in blocks)
                yield PartDone(ReasoningPart(text=text, provider_metadata={METADATA_KEY: raw}))
            case "function_call":
                self._has_calls = True
                args, problem = parse_arguments(item.arguments or "")
                yield PartDone(
                    ToolCallPart(
                        tool_call_id=item.call_id,
                        tool_name=item.name,
                        args=args,
                        invalid=problem,
                        provider_metadata={METADATA_KEY: {"id": item.id}},
                    )
                )
            case "web_search_call":
                yield from _search(raw)
            case "computer_call":
                self._has_calls = True
                yield PartDone(self._computer_call(item.call_id, raw))
            case _:
                pass

    def _computer_call(self, call_id: str, raw: dict[str, Any]) -> ToolCallPart:
        mapped = canonical_from_openai(raw, self._model_size)
        checks = _objects(raw.get("pending_safety_checks"))
        return ToolCallPart(
            tool_call_id=call_id,
            tool_name=COMPUTER_TOOL,
            args=mapped.args,
            invalid=mapped.invalid,
            needs_approval=_reasons(checks) or None,
            provider_metadata={METADATA_KEY: raw},
        )

    def _finish(self, response: Response) -> Finished:
        self.is_finished = True
        usage = _usage(response.usage.to_dict() if response.usage else {})
        if response.status == "incomplete" or response.incomplete_details is not None:
            cause = response.incomplete_details.reason if response.incomplete_details else None
            return finish_of(cause, INCOMPLETE_REASONS, usage)
        return Finished(reason="tool-calls" if self._has_calls else "stop", usage=usage)


def _search(raw: dict[str, Any]) -> Iterator[ProviderEvent]:
    """A search that the vendor ran: its call and, in its place, what came of it."""
    action = raw.get("action") or {}
    call_id, has_failed = str(raw["id"]), raw.get("status") == "failed"
    pages = [{"url": page["url"]} for page in _objects(action.get("sources")) if page.get("url")]
    yield PartDone(
        ToolCallPart(
            tool_call_id=call_id,
            tool_name=SEARCH_TOOL,
            args={key: value for key, value in action.items() if key not in {"sources", "type"} and value},
            provider_executed=True,
            provider_metadata={METADATA_KEY: raw},
        )
    )
    yield PartDone(
        ToolResultPart(
            tool_call_id=call_id,
            tool_name=SEARCH_TOOL,
            result={"error": "the search failed"} if has_failed else {"results": pages},
            is_error=has_failed,
            provider_executed=True,
        )
    )


def _message(raw: dict[str, Any]) -> Iterator[ProviderEvent]:
    """An answer's text and, behind it, what it cites."""
    blocks = _objects(raw.get("content"))
    text = "".join(map(_text_of, blocks))
    if text:
        kept = {key: raw[key] for key in ("id", "phase") if raw.get(key)}
        yield PartDone(TextPart(text=text, provider_metadata={METADATA_KEY: kept}))
    yield from _sources(blocks)


def _sources(blocks: list[dict[str, Any]]) -> Iterator[ProviderEvent]:
    """Each page that an answer cites, once."""
    notes = [note for block in blocks for note in _objects(block.get("annotations"))]
    pages = {note["url"]: note.get("title") for note in notes if note.get("type") == "url_citation"}
    for url, title in pages.items():
        yield PartDone(SourcePart(url=url, title=title))


def _raise_reported(event: dict[str, Any]) -> None:
    response = event.get("response")
    holder = response.get("error") if isinstance(response, Mapping) else event
    body = dict(holder) if isinstance(holder, Mapping) else {}
    raise ReportedError(str(body.get("message") or "The response failed."), body=body)


def _reasons(checks: list[dict[str, Any]]) -> tuple[str, ...]:
    texts = (str(check.get("message") or check.get("code") or check.get("id")) for check in checks)
    return tuple(text[:_MAX_CHECKS] for text in texts)


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text_of(block: Mapping[str, Any]) -> str:
    return str(block.get("text") or block.get("refusal") or "")


def _usage(counts: Mapping[str, Any]) -> Usage:
    cached = (counts.get("input_tokens_details") or {}).get("cached_tokens")
    total_input = counts.get("input_tokens")
    return Usage(
        # The vendor counts cached tokens in; we keep them apart, so that the sum is the prompt.
        input_tokens=None if total_input is None else max(total_input - (cached or 0), 0),
        output_tokens=counts.get("output_tokens"),
        total_tokens=counts.get("total_tokens"),
        reasoning_tokens=(counts.get("output_tokens_details") or {}).get("reasoning_tokens"),
        cache_read_tokens=cached,
    )
