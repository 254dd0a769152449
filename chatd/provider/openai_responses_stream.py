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
)
from chatd.wire import ReasoningPart, TextPart, ToolCallPart, Usage

__all__ = ["ResponsesReader"]

_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}
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

    def _item(self, item: ResponseOutputItem) -> Iterator[ProviderEvent]:
        raw = item.to_dict()
        match item.type:
            case "message":
                text = "".join(_text_of(block) for block in _objects(raw.get("content")))
                if text:
                    kept = {key: raw[key] for key in ("id", "phase") if raw.get(key)}
                    yield PartDone(TextPart(text=text, provider_metadata={METADATA_KEY: kept}))
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
            args={} if checks else mapped.args,
            invalid=_approval_needed(checks) if checks else mapped.invalid,
            provider_metadata={METADATA_KEY: raw},
        )

    def _finish(self, response: Response) -> Finished:
        self.is_finished = True
        reason: FinishReason = "tool-calls" if self._has_calls else "stop"
        if response.status == "incomplete" or response.incomplete_details is not None:
            cause = response.incomplete_details.reason if response.incomplete_details else None
            reason = _INCOMPLETE.get(str(cause), "other")
        usage = response.usage.to_dict() if response.usage else {}
        return Finished(reason=reason, usage=_usage(usage))


def _raise_reported(event: dict[str, Any]) -> None:
    response = event.get("response")
    holder = response.get("error") if isinstance(response, Mapping) else event
    body = dict(holder) if isinstance(holder, Mapping) else {}
    raise ReportedError(str(body.get("message") or "The response failed."), body=body)


def _approval_needed(checks: list[dict[str, Any]]) -> str:
    texts = [str(check.get("message") or check.get("code") or check.get("id")) for check in checks]
    return f"Not done: a person must approve this first ({'; '.join(texts)[:_MAX_CHECKS]})."


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
