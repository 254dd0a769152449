"""What an answer amounts to: to be kept as it is, changed, or the turn's end. Pure."""

from dataclasses import dataclass

from chatd.provider.protocol import MAX_OUTPUT_TOKENS, Finished
from chatd.wire import ChatError, Part, ReasoningPart, ToolCallPart

__all__ = ["Answer", "judge_answer"]

CUT = (
    f"The answer was cut off at its limit of {MAX_OUTPUT_TOKENS:,} tokens before these arguments were whole, "
    "so the tool was not run. Say less at once: split the work into smaller calls."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    A verdict.

    Args:
        content: what is committed; nothing when there is nothing to keep.
        error: why the turn ends here, if it does.
        is_cut: a call was cut off; a second such answer in a row ends the turn.
    """

    content: tuple[Part, ...] = ()
    error: ChatError | None = None
    is_cut: bool = False


def judge_answer(content: tuple[Part, ...], finished: Finished | None, *, was_cut: bool = False) -> Answer:
    """
    Judge a whole answer; *was_cut*: so was the one before.

    Reasoning alone is no answer. What a filter let through is kept and shown, but nothing
    that it asks for is done. A call whose arguments were cut off is answered with the
    reason, once: a model that does it again would go on for ever.
    """
    reason = finished.reason if finished is not None else "other"
    is_filtered = reason == "content-filter"
    if all(isinstance(part, ReasoningPart) for part in content):
        text = (
            "The model's answer was withheld by its content filter."
            if is_filtered
            else "The model gave an empty answer."
        )
        return Answer(error=ChatError(message=text, kind="content_filter" if is_filtered else "generic"))
    if is_filtered:
        text = "The model's answer was stopped by its content filter."
        return Answer(content=content, error=ChatError(message=text, kind="content_filter"))
    told = tuple(map(_cut, content)) if reason == "length" else content
    if told == content:
        return Answer(content=content)
    text = f"The model's tool calls were cut off twice at {MAX_OUTPUT_TOKENS:,} tokens; the turn was stopped."
    error = ChatError(message=text, kind="config") if was_cut else None
    return Answer(content=told, error=error, is_cut=True)


def _cut(part: Part) -> Part:
    if isinstance(part, ToolCallPart) and part.invalid is not None:
        return part.model_copy(update={"invalid": CUT})
    return part
