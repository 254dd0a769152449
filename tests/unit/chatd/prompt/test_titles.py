"""Titles: what a model is shown, and what of its answer is one."""

import uuid
from datetime import UTC, datetime

import pytest

from chatd.prompt.titles import is_first_message, read_title, title_sample
from chatd.wire import Message, Role, TextPart, Visibility


def said(role: Role, text: str, visibility: Visibility = "both") -> Message:
    """A message with one text."""
    return Message(
        id=1,
        chat_id=uuid.UUID(int=1),
        role=role,
        content=(TextPart(text=text),),
        visibility=visibility,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Fix the wheel", "Fix the wheel"),
        ('  "Fix\n the  wheel." ', "Fix the wheel"),
        ("\u201cFix the wheel\u201d", "Fix the wheel"),
        ('{"title": "Fix the wheel"}', "Fix the wheel"),
        ("{broken", None),
        ("", None),
        ('""', None),
        ("one two three four five six seven eight nine", None),
        ("x" * 100, "x" * 80),
    ],
)
def test_an_answer_is_cleaned_or_refused(answer: str, title: str | None) -> None:
    """Spec 10: quotes and spaces go, 80 characters, 8 words at most."""
    assert read_title(answer) == title


def test_a_sample_shows_the_first_turn_and_the_last_ones() -> None:
    """Spec 10: the gap is noted; one message and the whole are bounded; hidden rows are not shown."""
    turns = [
        m for n in range(6) for m in (said("user", f"q{n}"), said("assistant", f"a{n}"), said("tool", "t"))
    ]
    hidden = said("user", "secret", "model")

    lines = title_sample([*turns, hidden]).splitlines()
    assert lines[:3] == ["user: q0", "assistant: a0", "[…]"]
    assert lines[3:] == [line for n in (3, 4, 5) for line in (f"user: q{n}", f"assistant: a{n}")]
    assert len(title_sample([said("user", "x" * 9_000)])) == 1_006
    assert len(title_sample([said("user", "x" * 900)] * 40)) <= 6_000
    assert title_sample([hidden]) == ""


def test_the_moment_is_the_first_message() -> None:
    """Spec 10: exactly one visible user message and no reply."""
    ask = said("user", "x")

    assert is_first_message([said("user", "hidden", "model"), ask])
    assert not is_first_message([ask, ask])
    assert not is_first_message([ask, said("assistant", "y")])
    assert not is_first_message([])
