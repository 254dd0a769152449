"""What an answer amounts to."""

from typing import Any

import pytest

from chatd.loop.answer import judge_answer
from chatd.provider.protocol import Finished
from chatd.wire import Part, ReasoningPart, TextPart, ToolCallPart

TEXT = TextPart(text="x")
THOUGHT = ReasoningPart(text="hm", provider_metadata={"anthropic": {"signature": "s"}})
CALL = ToolCallPart(tool_call_id="a", tool_name="t", args={})
TORN = ToolCallPart(tool_call_id="b", tool_name="t", args={}, invalid="no JSON")


@pytest.mark.parametrize(
    ("content", "reason", "kind", "kept"),
    [
        ((TEXT,), "stop", None, 1),
        ((THOUGHT, TEXT, CALL), "tool-calls", None, 3),
        ((), "stop", "generic", 0),
        ((THOUGHT,), "stop", "generic", 0),
        ((), "content-filter", "content_filter", 0),
        ((TEXT, CALL), "content-filter", "content_filter", 2),
        ((TEXT,), "length", None, 1),
        ((CALL,), "length", None, 1),
        ((TEXT, TORN), "tool-calls", None, 2),
    ],
)
def test_empty_and_filtered_answers_are_errors_that_people_see(
    content: tuple[Part, ...], reason: Any, kind: str | None, kept: int
) -> None:
    """Spec 1.2, 9, BUGS 16: never success without content; what a filter let through is kept."""
    answer = judge_answer(content, Finished(reason=reason))

    assert (answer.error.kind if answer.error else None) == kind
    assert len(answer.content) == kept
    assert not answer.is_cut


def test_a_call_that_was_cut_off_is_told_once_and_then_ends_the_turn() -> None:
    """BUGS 15: max_tokens inside a tool call was repeated 24 times elsewhere."""
    first = judge_answer((TEXT, CALL, TORN), Finished(reason="length"))
    second = judge_answer((TORN,), Finished(reason="length"), was_cut=first.is_cut)

    assert (first.error, first.is_cut) == (None, True)
    assert first.content[:2] == (TEXT, CALL)
    (*_, torn) = first.content
    assert isinstance(torn, ToolCallPart)
    assert "cut off at its limit" in (torn.invalid or "")
    assert second.error is not None
    assert second.error.kind == "config"
