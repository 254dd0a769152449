"""
Collect what a model streams, so that it can be kept at any moment.

Invariant: ``content()`` holds every whole part, and ``partial()`` besides them
everything of the part under way that was received.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from chatd.provider.protocol import (
    Alive,
    Finished,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
)
from chatd.wire import Part, ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["Collector"]


@dataclass(slots=True)
class Collector:
    """The answer of one model call so far; *clock* tells when its parts came."""

    clock: Callable[[], datetime]
    finished: Finished | None = None
    _done: list[Part] = field(default_factory=list)
    _text: str = ""
    _reasoning: str = ""
    _reasoning_since: datetime | None = None
    # Name and arguments so far of calls under way; None for one that the vendor runs itself.
    _calls: dict[str, tuple[str, str] | None] = field(default_factory=dict)

    def add(self, event: ProviderEvent) -> Part | None:
        """Take one event; the fragment to publish for it, if any."""
        match event:
            case TextDelta(text):
                self._text += text
                return TextPart(text=text)
            case ReasoningDelta(text):
                self._reasoning += text
                self._reasoning_since = self._reasoning_since or self.clock()
                return ReasoningPart(text=text)
            case ToolInputDelta(call_id, name, delta, is_vendors):
                before = self._calls.get(call_id) or (name, "")
                self._calls[call_id] = None if is_vendors else (name, before[1] + delta)
                return ToolCallPart(
                    tool_call_id=call_id, tool_name=name, args_delta=delta, provider_executed=is_vendors
                )
            case PartDone(part):
                return self._finish_part(part)
            case Finished():
                self.finished = event
                return None
            case Alive():
                return None

    def _finish_part(
        self, part: TextPart | ReasoningPart | ToolCallPart | ToolResultPart | SourcePart
    ) -> Part | None:
        part = self._stamped(part)
        self._done.append(part)
        match part:
            case TextPart():
                streamed, self._text = self._text, ""
                return None if streamed else part
            case ReasoningPart():
                streamed, self._reasoning = self._reasoning, ""
                self._reasoning_since = None
                return None if streamed else part
            case ToolCallPart():
                self._calls.pop(part.tool_call_id, None)
                return part
            case ToolResultPart() | SourcePart():
                return part

    def _stamped(
        self, part: TextPart | ReasoningPart | ToolCallPart | ToolResultPart | SourcePart
    ) -> TextPart | ReasoningPart | ToolCallPart | ToolResultPart | SourcePart:
        if isinstance(part, TextPart | SourcePart):
            return part
        now = self.clock()
        if isinstance(part, ReasoningPart):
            times = {"created_at": self._reasoning_since or now, "completed_at": now}
            return part.model_copy(update=times)
        return part.model_copy(update={"created_at": now})

    def content(self) -> tuple[Part, ...]:
        """The whole parts; blank text is left out, signed reasoning never is."""
        return tuple(
            part
            for part in self._done
            if not isinstance(part, TextPart | ReasoningPart) or part.text.strip() or part.provider_metadata
        )

    def partial(self) -> tuple[Part, ...]:
        """Everything received: whole parts, then what was under way."""
        parts: list[Part] = list(self.content())
        if self._reasoning.strip():
            parts.append(
                ReasoningPart(
                    text=self._reasoning, created_at=self._reasoning_since, completed_at=self.clock()
                )
            )
        if self._text.strip():
            parts.append(TextPart(text=self._text))
        for call_id, call in self._calls.items():
            # Half of a call that the vendor runs is of no use to anybody.
            if call is not None:
                name, text = call
                parts.append(ToolCallPart(tool_call_id=call_id, tool_name=name, args=_arguments(text)))
        return tuple(parts)


def _arguments(text: str) -> dict[str, object]:
    """Half-streamed arguments: the object if it is whole, else none. Never guessed."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
