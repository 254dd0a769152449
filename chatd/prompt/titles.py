"""
What a model is asked for a chat's title, and what of its answer is one. Pure.

The first title is made of the first words (``derive_title``); a model's takes its place
while nobody has given another.
"""

import json
from collections.abc import Sequence

from chatd.constants import (
    MAX_TITLE_WORDS,
    TITLE_CHARACTERS,
    TITLE_MESSAGE_CHARACTERS,
    TITLE_SAMPLE_CHARACTERS,
)
from chatd.wire import Message, TextPart

__all__ = ["MAX_TITLE_WORDS", "TITLE_INSTRUCTION", "is_first_message", "read_title", "title_sample"]

# Turns at the end that are shown beside the first.
LAST_TURNS = 3

# What models put round a name all the same.
QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"

TITLE_INSTRUCTION = """\
Name the conversation that follows, for a list of conversations: two to eight words in its own language, that
tell it from others. No quotation marks, no full stop, no word about titles or conversations. Do not answer
what it asks. Reply with the name alone."""


def is_first_message(messages: Sequence[Message]) -> bool:
    """Whether people see one message so far, a user's: the moment to find a title."""
    return [message.role for message in messages if message.visibility != "model"] == ["user"]


def title_sample(messages: Sequence[Message]) -> str:
    """What was said, for a title: the first turn and the last ones, bounded; empty for nothing."""
    turns: list[list[str]] = []
    for message in messages:
        words = " ".join(part.text for part in message.content if isinstance(part, TextPart)).split()
        is_said = message.role in {"user", "assistant"} and message.visibility != "model"
        if not words or not is_said:
            continue
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(f"{message.role}: {' '.join(words)[:TITLE_MESSAGE_CHARACTERS]}")
    shown = turns if len(turns) <= LAST_TURNS + 1 else [turns[0], ["[…]"], *turns[-LAST_TURNS:]]
    return "\n".join(line for turn in shown for line in turn)[:TITLE_SAMPLE_CHARACTERS]


def read_title(answer: str) -> str | None:
    """A model's answer as a title; None when it is none: empty, or too many words."""
    text = answer.strip()
    if text.startswith("{"):
        try:
            text = str(json.loads(text).get("title", ""))
        except ValueError:
            return None
    title = " ".join(text.strip().strip(QUOTES).rstrip(".").split())[:TITLE_CHARACTERS].strip()
    return title if title and len(title.split()) <= MAX_TITLE_WORDS else None
