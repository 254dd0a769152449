"""When a history is summarised, and what stands in its place."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from chatd.prompt.compaction import (
    QUOTE_BYTES,
    SUMMARY_BYTES,
    Pressure,
    context_tokens,
    default_threshold,
    fit_for_summary,
    newest_usage,
    summary_parts,
)
from chatd.prompt.message import PromptMessage
from chatd.wire import FilePart, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart, Usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def message(role: Role, *parts: Part, at: int = 1, **fields: Any) -> Message:
    """A row."""
    return Message(id=at, chat_id=uuid.UUID(int=1), role=role, content=parts, created_at=NOW, **fields)


def exchange(name: str, value: Any, *, is_media: bool = False) -> list[PromptMessage]:
    """A call and its result."""
    call = ToolCallPart(tool_call_id=name, tool_name="t", args={})
    result = ToolResultPart(tool_call_id=name, tool_name="t", result=value, is_media=is_media)
    return [
        PromptMessage(role="assistant", content=(call,)),
        PromptMessage(role="tool", content=(result,)),
    ]


ASK = PromptMessage(role="user", content=(TextPart(text="ask"),))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, 0),
        (Usage(), 0),
        (Usage(input_tokens=5, cache_read_tokens=6, cache_creation_tokens=7, output_tokens=8), 18),
        (Usage(input_tokens=-5, cache_read_tokens=6), 6),
        (Usage(total_tokens=9), 9),
        (Usage(input_tokens=0, total_tokens=9), 9),
        (Usage(total_tokens=-1), 0),
    ],
)
def test_the_prompt_is_what_fills_the_window(usage: Usage | None, tokens: int) -> None:
    """Spec 3.2, 1: input and cached tokens, positives only; the total where nothing else is told."""
    assert context_tokens(usage) == tokens


@pytest.mark.parametrize(
    ("tokens", "limit", "threshold", "is_high"),
    [
        (70, 100, 70, True),
        (69, 100, 70, False),
        (0, 100, 0, False),
        (1, 100, 0, True),
        (500, 0, 0, False),
        (500, 100, 100, False),
    ],
)
def test_it_is_time_at_the_threshold(tokens: int, limit: int, threshold: int, is_high: bool) -> None:
    """Spec 3.1, 3.2: at it or above; 100 is off; without a window or a count never."""
    assert Pressure(tokens=tokens, limit_tokens=limit, threshold=threshold).is_high is is_high


@pytest.mark.parametrize(("window", "threshold"), [(None, 70), (200_000, 70), (500_000, 30)])
def test_large_windows_are_summarised_earlier(window: int | None, threshold: int) -> None:
    """Chat spec 8: 70 percent, 30 of windows of half a million tokens."""
    assert default_threshold(window) == threshold


def test_the_newest_answer_tells() -> None:
    """Spec 3.2: its prompt held all that came before."""
    usage = Usage(input_tokens=3)
    history = [
        message("assistant", usage=Usage(input_tokens=9)),
        message("assistant", usage=usage),
        message("tool"),
    ]

    assert newest_usage(history) == usage
    assert newest_usage([]) is None


def test_what_the_user_asked_is_handed_down_word_for_word() -> None:
    """BUGS 30: ten summaries later the task is still the user's own words; nothing adds up."""
    history = [message("user", TextPart(text="do it")), message("assistant", TextPart(text="doing"))]
    texts = []
    for _ in range(3):
        (part,) = summary_parts("S", history)
        assert isinstance(part, TextPart)
        texts.append(part.text)
        history = [
            message("user", part, visibility="model"),
            message("assistant", TextPart(text="on it")),
        ]

    assert texts[0].endswith("do it")
    assert texts[0] == texts[1] == texts[2]


def test_an_unanswered_message_stays_whole() -> None:
    """Ours: a summary may come before its answer; files and all."""
    file = FilePart(media_type="image/png", file_id="x")
    history = [
        message("user", TextPart(text="first")),
        message("assistant", TextPart(text="done")),
        message("user", TextPart(text="look"), file),
    ]
    summary, *rest = summary_parts("S", history)

    assert rest == [TextPart(text="look"), file]
    assert isinstance(summary, TextPart)
    assert "first" not in summary.text


def test_a_summary_is_bounded() -> None:
    """BUGS 32: by bytes, whatever the model writes and the user wrote."""
    history = [message("user", TextPart(text="é" * 100_000)), message("assistant", TextPart(text="ok"))]
    (part,) = summary_parts("ü" * 100_000, history)

    assert isinstance(part, TextPart)
    assert len(part.text.encode()) < SUMMARY_BYTES + QUOTE_BYTES + 1_000


def test_what_fits_is_not_touched() -> None:
    """Ours: the vendor's cache of the prompt serves once more."""
    messages = (ASK, *exchange("a", {"output": "x" * 100}))

    assert fit_for_summary(messages, 1_000) == messages
    assert fit_for_summary(messages, 0) == messages


def test_bulk_goes_before_exchanges_do() -> None:
    """BUGS 28: pictures and long results first; call and result stay together."""
    picture = {"mime_type": "image/png", "data": "AAAA", "text": "seen"}
    messages = (ASK, *exchange("a", picture, is_media=True), *exchange("b", {"output": "x" * 90_000}))
    lean = fit_for_summary(messages, 4_000)

    assert [m.role for m in lean] == ["user", "assistant", "tool", "assistant", "tool"]
    (first,), (second,) = lean[2].content, lean[4].content
    assert isinstance(first, ToolResultPart)
    assert isinstance(second, ToolResultPart)
    assert (first.is_media, first.result) == (False, {"output": "seen\n[a picture was left out]"})
    assert "truncated" in second.result["output"]


def test_old_exchanges_go_whole_behind_the_first_message() -> None:
    """BUGS 7, 28: never between a call and its result; the newest stay."""
    pairs = [part for n in range(50) for part in exchange(f"c{n}", {"output": "y" * 1_500})]
    lean = fit_for_summary((ASK, *pairs), 10_000)

    assert lean[0] == ASK
    assert [m.role for m in lean[1:]] == ["assistant", "tool"] * ((len(lean) - 1) // 2)
    assert lean[-1] == pairs[-1]
    assert 3 < len(lean) < len(pairs)


def test_a_refused_prompt_is_halved_whatever_we_count() -> None:
    """BUGS 28: the vendor knows better than our estimate, also where nobody told the window."""
    pairs = [part for n in range(20) for part in exchange(f"c{n}", {"output": "y" * 600})]

    assert len(fit_for_summary((ASK, *pairs), 0, is_refused=True)) < 25
