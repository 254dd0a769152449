"""
When a history is to be summarised, and what the model is asked and told then. Pure.

A summary stands in place of everything before it. What the user asked is kept beside it word
for word, so that the task is the same after ten of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chatd.constants import LARGE_THRESHOLD, LARGE_WINDOW_TOKENS, THRESHOLD
from chatd.prompt.message import PromptMessage
from chatd.prompt.repair import repair_prompt
from chatd.prompt.truncation import truncate_text, truncate_value
from chatd.wire import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, Usage

__all__ = [
    "OFF",
    "SUMMARY_INSTRUCTION",
    "Pressure",
    "Source",
    "context_tokens",
    "default_threshold",
    "fit_for_summary",
    "newest_usage",
    "summary_parts",
]

Source = Literal["automatic", "manual"]

# Percent at which it is switched off.
OFF = 100
# Bytes of a summary, and of the user's words beside it: neither may grow from one summary to the next.
SUMMARY_BYTES = 32_768
QUOTE_BYTES = 16_384
# An estimate, for histories that no vendor has counted: bytes of text, and tokens of a picture or file.
BYTES_PER_TOKEN = 3
MEDIA_TOKENS = 1_500
# Share of the window that the history to be summarised may fill; the rest is for the tools and the summary.
FIT_SHARE = 0.6
# Bytes that each old result keeps when the history is too long to be summarised whole.
OLD_RESULT_BYTES = 2_000

SUMMARY_INSTRUCTION = """\
The conversation is about to continue without its beginning: what you write now takes the place of all of it.
Write a summary that lets the work go on without loss. Call no tools. Cover, as far as they apply:

- the goal, and the task under way, with every condition that was set;
- decisions, each with its reason;
- concrete names: files, commands, addresses, ids, versions, values;
- what failed, with the exact error and what fixed it. One failure is no reason to avoid a tool for good;
- what is done, what is in progress, what remains;
- the very action that was under way, and what was to come next.

Be dense and factual. Refer to what can be read again (files, pages, command output) instead of copying it."""

SUMMARY_PREFIX = """\
[The earlier part of this conversation was summarised to save space. The summary follows. It is background:
what it calls done is done and is not to be repeated. Go on with what remains; if nothing does, say so.]"""
QUOTE_PREFIX = "[What the user asked last, word for word. It may be answered already; the summary tells.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How full a model's window is. *limit_tokens* 0: nobody knows the window."""

    tokens: int
    limit_tokens: int
    threshold: int

    @property
    def percent(self) -> float:
        """Of the window; 0 when it is unknown."""
        return self.tokens / self.limit_tokens * 100 if self.limit_tokens > 0 else 0.0

    @property
    def is_high(self) -> bool:
        """Whether it is time to summarise."""
        is_known = self.tokens > 0 and self.limit_tokens > 0
        return is_known and self.threshold < OFF and self.percent >= self.threshold


def default_threshold(window: int | None) -> int:
    """The percentage for a model of *window* tokens."""
    return LARGE_THRESHOLD if window is not None and window >= LARGE_WINDOW_TOKENS else THRESHOLD


def context_tokens(usage: Usage | None) -> int:
    """Tokens of the prompt, cached ones included; the total where a vendor tells nothing else."""
    if usage is None:
        return 0
    counts = (usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens)
    known = sum(count for count in counts if count is not None and count > 0)
    return known or max(usage.total_tokens or 0, 0)


def newest_usage(messages: Sequence[Message]) -> Usage | None:
    """What the newest answer told of the prompt that it was given."""
    return next((message.usage for message in reversed(messages) if message.role == "assistant"), None)


def summary_parts(summary: str, messages: Sequence[Message]) -> tuple[Part, ...]:
    """
    What the model reads from now on in place of *messages*.

    A user's message that nobody answered yet follows whole, files included. Else the
    newest one is quoted, cut to ``QUOTE_BYTES``.
    """
    text = f"{SUMMARY_PREFIX}\n\n{truncate_text(summary, SUMMARY_BYTES).text}"
    pending = _pending(messages)
    if pending:
        return (TextPart(text=text), *(part for message in pending for part in message.content))
    words = _newest_words(messages)
    if words:
        text += f"\n\n{QUOTE_PREFIX}\n\n{truncate_text(words, QUOTE_BYTES).text}"
    return (TextPart(text=text),)


def _pending(messages: Sequence[Message]) -> list[Message]:
    """User messages at the end, behind the last answer."""
    last = max((at for at, message in enumerate(messages) if message.role != "user"), default=-1)
    return [message for message in messages[last + 1 :] if message.visibility != "model"]


def _newest_words(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.role != "user":
            continue
        texts = [part.text for part in message.content if isinstance(part, TextPart)]
        words = "\n".join(texts).strip()
        if message.visibility != "model":
            return words
        # The quote that an earlier summary handed down.
        return words.partition(QUOTE_PREFIX)[2].strip()
    return ""


def fit_for_summary(
    messages: Sequence[PromptMessage], window: int, *, is_refused: bool = False
) -> tuple[PromptMessage, ...]:
    """
    The history to be summarised, small enough for a model of *window* tokens (0: unknown) to read.

    One that fits is not touched, so that the vendor's cache of it serves once more. Else
    pictures and files go first, then the bulk of old results, then whole exchanges from
    the front, behind the first message. One that the vendor *is_refused* as too long is
    at least halved, whatever we estimate.
    """
    estimate = _tokens(messages)
    budget = int(window * FIT_SHARE) if window > 0 else estimate
    if is_refused:
        budget = min(budget, estimate // 2)
    if estimate <= budget:
        return tuple(messages)
    lean = [replace(m, content=tuple(_without_bulk(part) for part in m.content)) for m in messages]
    while len(lean) > 2 and _tokens(lean) > budget:
        del lean[1 : _exchange_end(lean)]
    return repair_prompt(lean)


def _exchange_end(messages: Sequence[PromptMessage]) -> int:
    """Behind the first exchange after the first message: its calls go together with their results."""
    end = 2
    while end < len(messages) - 1 and messages[end].role == "tool":
        end += 1
    return end


def _without_bulk(part: Part) -> Part:
    if isinstance(part, FilePart):
        return TextPart(text=f"[file {part.name or part.media_type}: left out]")
    if isinstance(part, ToolResultPart):
        value, _ = truncate_value(_without_data(part.result), OLD_RESULT_BYTES)
        return part.model_copy(update={"result": value, "is_media": False})
    if isinstance(part, ToolCallPart) and part.args:
        arguments, _ = truncate_value(part.args, OLD_RESULT_BYTES)
        return part.model_copy(update={"args": arguments})
    return part


def _without_data(result: Any) -> Any:  # noqa: ANN401 -- stored JSON
    if not isinstance(result, dict) or "mime_type" not in result:
        return result
    text = result.get("text") or result.get("error") or ""
    return {"output": f"{text}\n[a picture was left out]".strip()}


def _tokens(messages: Sequence[PromptMessage]) -> int:
    return sum(_part_tokens(part) for message in messages for part in message.content)


def _part_tokens(part: Part) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return len(part.text.encode(errors="replace")) // BYTES_PER_TOKEN
        case FilePart():
            return MEDIA_TOKENS
        case ToolResultPart() if part.is_media:
            return MEDIA_TOKENS + _json_tokens(_without_data(part.result))
        case ToolResultPart():
            return _json_tokens(part.result)
        case ToolCallPart():
            return _json_tokens(part.args)
        case _:
            return 0


def _json_tokens(value: Any) -> int:  # noqa: ANN401 -- stored JSON
    if isinstance(value, str):
        return len(value.encode(errors="replace")) // BYTES_PER_TOKEN + 1
    if isinstance(value, dict):
        return sum(_json_tokens(key) + _json_tokens(item) for key, item in value.items())
    return sum(map(_json_tokens, value)) if isinstance(value, list | tuple) else 1
