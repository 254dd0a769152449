"""Every word that the vendors' SDKs have for the end of an answer has a meaning."""

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from anthropic.types import StopReason
from anthropic.types.beta import BetaStopReason
from google.genai.types import FinishReason as GeminiReason
from openai.types.chat.chat_completion_chunk import Choice
from openai.types.responses.response import IncompleteDetails

from chatd.provider import anthropic_stream, gemini_stream, openai_chat_stream, openai_responses_stream
from chatd.provider.protocol import FinishReason, finish_of
from chatd.wire import Usage


def words_of(annotation: Any) -> set[str]:
    """The literals of an optional field."""
    return {word for option in get_args(annotation) for word in get_args(option)}


TABLES: list[tuple[str, Mapping[str, FinishReason], set[str]]] = [
    ("anthropic", anthropic_stream.FINISH_REASONS, {*get_args(StopReason), *get_args(BetaStopReason)}),
    ("google", gemini_stream.FINISH_REASONS, {reason.value for reason in GeminiReason}),
    (
        "openai",
        openai_responses_stream.INCOMPLETE_REASONS,
        words_of(IncompleteDetails.model_fields["reason"].annotation),
    ),
    (
        "openai-compat",
        openai_chat_stream.FINISH_REASONS,
        words_of(Choice.model_fields["finish_reason"].annotation),
    ),
]


@pytest.mark.parametrize(("table", "words"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_every_word_of_the_installed_sdk_has_a_meaning(
    table: Mapping[str, FinishReason], words: set[str]
) -> None:
    """Issue: a new version that adds one fails here; compatible servers have some more."""
    assert words
    assert words - set(table) == set()
    assert set(table.values()) <= set(get_args(FinishReason))


@pytest.mark.parametrize(
    ("word", "reason", "kept"),
    [("model_length", "context-exceeded", None), ("odd", "other", "odd"), (None, "other", None)],
)
def test_only_a_word_without_a_meaning_of_ours_is_kept(
    word: str | None, reason: FinishReason, kept: str | None
) -> None:
    """Ours: people read it."""
    finished = finish_of(word, openai_chat_stream.FINISH_REASONS, Usage())

    assert (finished.reason, finished.word) == (reason, kept)
