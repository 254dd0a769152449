"""What an answer amounts to: to be kept as it is, changed, or the turn's end. Pure."""

from dataclasses import dataclass

from chatd.faults import WINDOW_FULL, FaultKind
from chatd.provider.protocol import MAX_OUTPUT_TOKENS, MAX_PAUSES, Finished
from chatd.store.rows import local_calls
from chatd.wire import ChatError, Part, ReasoningPart, ToolCallPart

__all__ = ["Answer", "judge_answer"]

CUT = (
    f"The answer was cut off at its limit of {MAX_OUTPUT_TOKENS:,} tokens before these arguments were whole, "
    "so the tool was not run. Say less at once: split the work into smaller calls."
)
GO_ON = "Write “go on” for the rest, or ask for less at once."
# Characters of a vendor's own word that people read.
WORD_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    A verdict.

    Args:
        content: what is committed; nothing when there is nothing to keep.
        error: why the turn ends here, if it does.
        notice: what people are told beside an answer that may lack its end.
        is_cut: a call was cut off; a second such answer in a row ends the turn.
    """

    content: tuple[Part, ...] = ()
    error: ChatError | None = None
    notice: str | None = None
    is_cut: bool = False


def judge_answer(content: tuple[Part, ...], finished: Finished | None, *, was_cut: bool = False) -> Answer:
    """
    Judge a whole answer; *was_cut*: so was the one before.

    Reasoning alone is no answer. What a filter let through, or a full window left room for, is
    kept and shown, but nothing that it asks for is done. A call whose arguments were cut off is
    answered with the reason, once: a model that does it again would go on for ever. Words that
    ended before their end are kept, and people are told.
    """
    finished = finished or Finished(reason="other")
    if all(isinstance(part, ReasoningPart) for part in content):
        return Answer(error=_no_answer(finished, has_thought=bool(content)))
    if finished.reason == "content-filter":
        text = "The model's answer was stopped by its content filter."
        return Answer(content=content, error=ChatError(message=text, kind=FaultKind.CONTENT_FILTER))
    if finished.reason == "context-exceeded":
        return Answer(content=content, error=ChatError(message=WINDOW_FULL, kind=FaultKind.CONFIG))
    told = tuple(map(_cut, content)) if finished.reason == "length" else content
    if told == content:
        return Answer(content=content, notice=None if local_calls(content) else _notice(finished))
    text = f"The model's tool calls were cut off twice at {MAX_OUTPUT_TOKENS:,} tokens; the turn was stopped."
    error = ChatError(message=text, kind=FaultKind.CONFIG) if was_cut else None
    return Answer(content=told, error=error, is_cut=True)


def _no_answer(finished: Finished, *, has_thought: bool) -> ChatError:
    kind = FaultKind.GENERIC
    match finished.reason:
        case "content-filter":
            text, kind = "The model's answer was withheld by its content filter.", FaultKind.CONTENT_FILTER
        case "context-exceeded":
            text, kind = WINDOW_FULL, FaultKind.CONFIG
        case "length" if has_thought or finished.usage.reasoning_tokens:
            text = (
                f"The model used up {_limit(finished)} with thinking and gave no answer. "
                "Have it think less, or ask for less at once."
            )
        case "length":
            text = f"The model reached {_limit(finished)} and gave no answer."
        case "paused":
            text = f"{_pauses()} and gave no answer."
        case "other" if finished.word:
            text = f"The model gave no answer. Its vendor gave the reason {_word(finished)}."
        case _:
            text = "The model gave an empty answer."
    return ChatError(message=text, kind=kind)


def _notice(finished: Finished) -> str | None:
    """What people read behind an answer whose end may be missing."""
    match finished.reason:
        case "length":
            return f"The answer was cut off at {_limit(finished)}. {GO_ON}"
        case "paused":
            return f"{_pauses()}; the answer may lack its end. {GO_ON}"
        case "other":
            why = f"the reason {_word(finished)}" if finished.word else "no reason"
            return f"The model broke off here; the answer may lack its end. Its vendor gave {why}. {GO_ON}"
        case _:
            return None


def _limit(finished: Finished) -> str:
    """Which limit it was: servers may have a lower one than we asked for."""
    used = finished.usage.output_tokens
    if used is None or used >= MAX_OUTPUT_TOKENS:
        return f"its limit of {MAX_OUTPUT_TOKENS:,} tokens"
    return f"{used:,} tokens, the limit of its server or of the room left in its context window"


def _pauses() -> str:
    return f"The model's vendor paused {MAX_PAUSES} times while it ran its own tools"


def _word(finished: Finished) -> str:
    return " ".join((finished.word or "").split())[:WORD_CHARACTERS]


def _cut(part: Part) -> Part:
    if isinstance(part, ToolCallPart) and part.invalid is not None:
        return part.model_copy(update={"invalid": CUT})
    return part
