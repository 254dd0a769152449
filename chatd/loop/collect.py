"""
Collect what a model streams, so that it can be kept at any moment.

Invariant: ``content()`` holds every whole part, and ``partial()`` besides them
everything of the part under way that was received.
"""

import json
from dataclasses import dataclass, field

from chatd.provider.protocol import (
    Finished,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
)
from chatd.wire import Part, ReasoningPart, TextPart, ToolCallPart

__all__ = ["Collector"]


@dataclass(slots=True)
class Collector:
    """The answer of one model call so far."""

    finished: Finished | None = None
    _done: list[Part] = field(default_factory=list)
    _text: str = ""
    _reasoning: str = ""
    _calls: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, event: ProviderEvent) -> Part | None:
        """Take one event; the fragment to publish for it, if any."""
        match event:
            case TextDelta(text):
                self._text += text
                return TextPart(text=text)
            case ReasoningDelta(text):
                self._reasoning += text
                return ReasoningPart(text=text)
            case ToolInputDelta(call_id, name, delta):
                self._calls[call_id] = (name, self._calls.get(call_id, (name, ""))[1] + delta)
                return ToolCallPart(tool_call_id=call_id, tool_name=name, args_delta=delta)
            case PartDone(part):
                return self._finish_part(part)
            case Finished():
                self.finished = event
                return None

    def _finish_part(self, part: TextPart | ReasoningPart | ToolCallPart) -> Part | None:
        self._done.append(part)
        match part:
            case TextPart():
                streamed, self._text = self._text, ""
                return None if streamed else part
            case ReasoningPart():
                streamed, self._reasoning = self._reasoning, ""
                return None if streamed else part
            case ToolCallPart():
                self._calls.pop(part.tool_call_id, None)
                return part

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
            parts.append(ReasoningPart(text=self._reasoning))
        if self._text.strip():
            parts.append(TextPart(text=self._text))
        for call_id, (name, text) in self._calls.items():
            parts.append(ToolCallPart(tool_call_id=call_id, tool_name=name, args=_arguments(text)))
        return tuple(parts)


def _arguments(text: str) -> dict[str, object]:
    """Half-streamed arguments: the object if it is whole, else none. Never guessed."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
