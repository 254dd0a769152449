"""What an answer amounts to."""

from typing import Any

import pytest

from chatd.loop.answer import judge_answer
from chatd.provider.protocol import Finished
from chatd.wire import Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, Usage

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
        ((THOUGHT,), "length", "generic", 0),
        ((TEXT,), "context-exceeded", "config", 1),
        ((TEXT, TORN), "context-exceeded", "config", 2),
        ((THOUGHT,), "context-exceeded", "config", 0),
        ((TEXT,), "paused", None, 1),
        ((), "paused", "generic", 0),
        ((TEXT,), "other", None, 1),
        ((), "other", "generic", 0),
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


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (Finished(reason="length"), ["limit of 32,000 tokens", "go on"]),
        (Finished(reason="length", usage=Usage(output_tokens=32_000)), ["limit of 32,000 tokens"]),
        (Finished(reason="length", usage=Usage(output_tokens=500)), ["500 tokens", "server"]),
        (Finished(reason="paused"), ["paused 10 times", "go on"]),
        (Finished(reason="other", word="MALFORMED\nRESPONSE"), ["MALFORMED RESPONSE", "go on"]),
        (Finished(reason="other"), ["no reason", "go on"]),
    ],
)
def test_an_answer_that_may_lack_its_end_is_kept_and_people_are_told(
    finished: Finished, words: list[str]
) -> None:
    """Issue: the person sees what happens and why; the limit is named, and what to do."""
    answer = judge_answer((THOUGHT, TEXT), finished)

    assert (answer.content, answer.error) == ((THOUGHT, TEXT), None)
    assert [word for word in words if word not in (answer.notice or "")] == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [((TEXT,), "stop"), ((TEXT, CALL), "length"), ((TEXT, TORN), "length"), ((), "length")],
)
def test_nobody_is_told_of_an_answer_that_is_whole_or_goes_on(content: tuple[Part, ...], reason: Any) -> None:
    """Ours: behind calls the model speaks again, and an error says everything."""
    assert judge_answer(content, Finished(reason=reason)).notice is None


def test_what_the_vendor_ran_itself_is_no_call_to_wait_for() -> None:
    """Ours: a search whose answer was cut off ends the turn as any other."""
    search = ToolCallPart(tool_call_id="s", tool_name="web_search", provider_executed=True)
    found = ToolResultPart(tool_call_id="s", tool_name="web_search", provider_executed=True)

    assert "cut off" in (judge_answer((search, found), Finished(reason="length")).notice or "")


@pytest.mark.parametrize(
    ("content", "finished", "words"),
    [
        ((THOUGHT,), Finished(reason="length"), "limit of 32,000 tokens with thinking"),
        ((), Finished(reason="length", usage=Usage(reasoning_tokens=9)), "with thinking"),
        ((), Finished(reason="length"), "reached its limit of 32,000 tokens"),
        ((), Finished(reason="paused"), "paused 10 times"),
        ((), Finished(reason="other", word="NO_IMAGE"), "NO_IMAGE"),
        ((), Finished(reason="context-exceeded"), "context window"),
        ((), None, "empty"),
    ],
)
def test_no_answer_says_why(content: tuple[Part, ...], finished: Finished | None, words: str) -> None:
    """Issue: empty answers are visible errors; a limit that thinking used up is named."""
    error = judge_answer(content, finished).error

    assert error is not None
    assert words in error.message


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
