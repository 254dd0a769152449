"""
The neutral shapes between the vendor codecs and the brain.

Codecs decode a vendor's request into a ``Conversation`` and encode a ``Reply``
back. Nothing here knows a vendor, a socket or a clock.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from computer.wire import Action

__all__ = [
    "Call",
    "Chunk",
    "ComputerForm",
    "Conversation",
    "Entry",
    "Finish",
    "Page",
    "Picture",
    "Reply",
    "Search",
    "ToolOutput",
    "ToolUse",
    "chunked",
    "limit_reply",
    "token_count",
]

# Vendors bill about four characters to the token; an estimate is all a rehearsal needs.
CHARACTERS_PER_TOKEN = 4
# Characters in one streamed piece of text: small enough that a sentence arrives in several.
CHUNK_CHARACTERS = 24

Finish = Literal["stop", "tool-calls", "length", "context-exceeded", "content-filter"]


class ComputerForm(StrEnum):
    """How the request offers the computer."""

    ANTHROPIC_TOOL = "anthropic-tool"
    ANTHROPIC_TOOLSET = "anthropic-toolset"
    GOOGLE_TOOL = "google-tool"
    OPENAI_TOOL = "openai-tool"
    FUNCTION = "function"

    @property
    def is_batched(self) -> bool:
        """Whether one call may hold several actions."""
        return self in {ComputerForm.OPENAI_TOOL, ComputerForm.FUNCTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An encoded picture; *data* is base64."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call of an earlier reply. The computer's are all named ``computer``."""

    call_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    action_count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool call gave."""

    call_id: str
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message. *calls* only in the assistant's, *outputs* only in a tool's."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A whole model request. *max_output_tokens* 0: no limit. Without *may_call* no tool may be called."""

    model: str
    system: str = ""
    entries: tuple[Entry, ...] = ()
    tools: frozenset[str] = frozenset()
    computer: ComputerForm | None = None
    stream: bool = False
    include_usage: bool = False
    max_output_tokens: int = 0
    may_call: bool = True

    @property
    def input_tokens(self) -> int:
        """Estimated tokens of the request's text; pictures are not counted."""
        return token_count([self.system, *(piece for entry in self.entries for piece in _pieces(entry))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of streamed text, sent *delay_ms* milliseconds after the one before."""

    text: str
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    A tool call to make.

    With *actions* it is a call of the computer and *arguments* are ignored.
    *marker* becomes part of the call's id and so comes back with the next request.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    marker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Something that a search found."""

    url: str
    title: str

    @property
    def seal(self) -> str:
        """What stands for its content, and must come back as it is."""
        return f"sealed_{hashlib.sha256(self.url.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search that the vendor itself runs."""

    query: str
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answers: searches that it ran, text that cites what they found, then calls."""

    searches: tuple[Search, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"

    @property
    def pages(self) -> tuple[Page, ...]:
        """Everything that was found."""
        return tuple(page for search in self.searches for page in search.pages)

    @property
    def text(self) -> str:
        """All the text."""
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def output_tokens(self) -> int:
        """Estimated tokens of the reply."""
        calls = (
            _dump(call.arguments) + "".join(a.model_dump_json() for a in call.actions) for call in self.calls
        )
        return token_count([self.text, *calls])


def token_count(texts: Iterable[str]) -> int:
    """Estimate tokens as characters / 4, rounded up."""
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


def chunked(text: str) -> tuple[Chunk, ...]:
    """Cut *text* into pieces of about ``CHUNK_CHARACTERS``; joined they give *text* again."""
    return tuple(
        Chunk(text=text[start : start + CHUNK_CHARACTERS]) for start in range(0, len(text), CHUNK_CHARACTERS)
    )


def limit_reply(reply: Reply, max_output_tokens: int) -> Reply:
    """Cut *reply* where a vendor would have stopped; 0 means no limit."""
    if not max_output_tokens or reply.output_tokens <= max_output_tokens:
        return reply
    left = max_output_tokens * CHARACTERS_PER_TOKEN
    chunks: list[Chunk] = []
    for chunk in reply.chunks:
        if left > 0:
            chunks.append(Chunk(text=chunk.text[:left], delay_ms=chunk.delay_ms))
        left -= len(chunk.text)
    return Reply(chunks=tuple(chunks), finish="length")


def _pieces(entry: Entry) -> list[str]:
    calls = [call.name + _dump(call.arguments) for call in entry.calls]
    return [entry.text, *calls, *(output.text for output in entry.outputs)]


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value) if value else ""
