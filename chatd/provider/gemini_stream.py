"""
Gemini's streamed responses as neutral events. Sans I/O: chunks in, events out.

Text and thoughts come in pieces, function calls whole. The vendor marks no ends of parts: a part
ends where another kind begins, or with the response.

Source: ``google.genai.types.GenerateContentResponse``.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from google.genai.types import (
    Candidate,
    FunctionCall,
    GenerateContentResponse,
    GenerateContentResponseUsageMetadata,
    Part,
)

from chatd.provider.computer_map import COMPUTER_TOOL, read_canonical
from chatd.provider.computer_map_google import canonical_from_google, is_computer_call
from chatd.provider.gemini_prompt import METADATA
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

__all__ = ["FINISH_REASONS", "GeminiReader"]

FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content-filter",
    "RECITATION": "content-filter",
    "BLOCKLIST": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "SPII": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "IMAGE_PROHIBITED_CONTENT": "content-filter",
    "IMAGE_RECITATION": "content-filter",
    "ESCALATION": "content-filter",
    "MODEL_ARMOR": "content-filter",
    "FINISH_REASON_UNSPECIFIED": "other",
    "LANGUAGE": "other",
    "OTHER": "other",
    "MALFORMED_FUNCTION_CALL": "other",
    "UNEXPECTED_TOOL_CALL": "other",
    "TOO_MANY_TOOL_CALLS": "other",
    "MISSING_THOUGHT_SIGNATURE": "other",
    "MALFORMED_RESPONSE": "other",
    "PUP_LIMITED_DISABLED": "other",
    "IMAGE_OTHER": "other",
    "NO_IMAGE": "other",
}


class GeminiReader:
    """
    Reads one response.

    *model_size* is the frame of computer coordinates, None when the computer was not offered;
    *is_native* whether it was offered in the vendor's own form.
    """

    def __init__(self, model_size: tuple[int, int] | None, *, is_native: bool) -> None:
        self._model_size = model_size
        self._is_native = is_native
        self._kind: type[TextPart | ReasoningPart] | None = None
        self._pieces: list[str] = []
        self._signature: str | None = None
        self._calls = 0
        # Pages that the answer cites: title by address.
        self._sources: dict[str, str | None] = {}
        self._usage: GenerateContentResponseUsageMetadata | None = None
        self._reason: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the vendor said that this is the end."""
        return self._reason is not None

    def feed(self, chunk: GenerateContentResponse) -> Iterator[ProviderEvent]:
        """Take one chunk; only the first candidate counts."""
        self._usage = chunk.usage_metadata or self._usage
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._reason = "PROHIBITED_CONTENT"
        for candidate in (chunk.candidates or [])[:1]:
            yield from self._candidate(candidate)

    def finish(self) -> Iterator[ProviderEvent]:
        """Close what is open, and the end."""
        yield from self._close()
        for url, title in self._sources.items():
            yield PartDone(SourcePart(url=url, title=title))
        finished = finish_of(self._reason, FINISH_REASONS, _usage(self._usage))
        is_calling = self._calls and finished.reason == "stop"
        yield replace(finished, reason="tool-calls") if is_calling else finished

    def _candidate(self, candidate: Candidate) -> Iterator[ProviderEvent]:
        content = candidate.content
        for part in (content.parts if content is not None else None) or []:
            yield from self._part(part)
        grounding = candidate.grounding_metadata
        for found in (grounding.grounding_chunks if grounding is not None else None) or []:
            if found.web is not None and found.web.uri:
                self._sources.setdefault(found.web.uri, found.web.title)
        if candidate.finish_reason is not None:
            self._reason = candidate.finish_reason.value

    def _part(self, part: Part) -> Iterator[ProviderEvent]:
        signature = base64.b64encode(part.thought_signature).decode() if part.thought_signature else None
        if part.function_call is not None:
            yield from self._close()
            yield from self._call(part.function_call, signature)
            return
        if part.tool_call is not None or part.tool_response is not None:
            yield from self._close()
            yield PartDone(_ran_by_vendor(part))
            return
        if part.text is None and signature is None:
            return
        kind: type[TextPart | ReasoningPart] = ReasoningPart if part.thought else TextPart
        if kind is not self._kind:
            yield from self._close()
            self._kind = kind
        self._signature = signature or self._signature
        if part.text:
            self._pieces.append(part.text)
            yield ReasoningDelta(part.text) if part.thought else TextDelta(part.text)

    def _close(self) -> Iterator[ProviderEvent]:
        kind, self._kind = self._kind, None
        text, self._pieces = "".join(self._pieces), []
        signature, self._signature = self._signature, None
        if kind is None or not (text or signature):
            return
        metadata: dict[str, Any] | None = {METADATA: {"signature": signature}} if signature else None
        yield PartDone(kind(text=text, provider_metadata=metadata))

    def _call(self, call: FunctionCall, signature: str | None) -> Iterator[ProviderEvent]:
        name, given = call.name or "", call.args or {}
        call_id = call.id or f"call_{uuid4().hex}"
        self._calls += 1
        part = self._call_part(call_id, name, given)
        metadata: dict[str, Any] = {"signature": signature} if signature else {}
        if part.tool_name != name:
            metadata["call"] = {"name": name, "args": given}
        yield ToolInputDelta(
            call_id, part.tool_name, json.dumps(given, ensure_ascii=False, separators=(",", ":"))
        )
        yield PartDone(
            part.model_copy(update={"provider_metadata": {METADATA: metadata} if metadata else None})
        )

    def _call_part(self, call_id: str, name: str, given: dict[str, Any]) -> ToolCallPart:
        if self._model_size is not None and self._is_native and is_computer_call(name):
            mapped = canonical_from_google(name, given, self._model_size)
        elif self._model_size is not None and name == COMPUTER_TOOL:
            mapped = read_canonical(given, self._model_size)
        else:
            return ToolCallPart(tool_call_id=call_id, tool_name=name, args=given)
        return ToolCallPart(
            tool_call_id=call_id, tool_name=COMPUTER_TOOL, args=mapped.args, invalid=mapped.invalid
        )


def _ran_by_vendor(part: Part) -> ToolCallPart | ToolResultPart:
    """A call that the vendor runs itself, or what came of it; the part goes back as it came."""
    said = part.tool_call or part.tool_response
    kept = {METADATA: {"part": part.model_dump(mode="json", by_alias=True, exclude_none=True)}}
    kind = said.tool_type.value.lower() if said and said.tool_type else "tool"
    name = "web_search" if "search" in kind else kind
    call_id = (said.id if said else None) or f"call_{uuid4().hex}"
    if part.tool_response is not None:
        return ToolResultPart(
            tool_call_id=call_id,
            tool_name=name,
            result={"output": "done"},
            provider_executed=True,
            provider_metadata=kept,
        )
    args = (part.tool_call.args if part.tool_call else None) or {}
    return ToolCallPart(
        tool_call_id=call_id, tool_name=name, args=args, provider_executed=True, provider_metadata=kept
    )


def _usage(counts: GenerateContentResponseUsageMetadata | None) -> Usage:
    if counts is None:
        return Usage()
    cached, thoughts = counts.cached_content_token_count, counts.thoughts_token_count
    prompt = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0)
    return Usage(
        # The vendor counts cached tokens in; we keep them apart, so that the sum is the prompt.
        input_tokens=max(prompt - (cached or 0), 0),
        output_tokens=(counts.candidates_token_count or 0) + (thoughts or 0),
        total_tokens=counts.total_token_count,
        reasoning_tokens=thoughts,
        cache_read_tokens=cached,
    )
