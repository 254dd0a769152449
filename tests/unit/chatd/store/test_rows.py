"""The leak rule, and titles."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.store.rows import NewMessage, dump_parts, local_calls, message_values, without_internals
from chatd.store.store import TITLE_CHARACTERS, TITLE_WORDS, derive_title
from chatd.wire import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    Part,
    QuestionAnswerPart,
    ReasoningPart,
    SkillPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
    part_list_adapter,
)

SECRET = "c2VjcmV0"
INNER: dict[str, Any] = {"provider_metadata": {"signature": SECRET}}
FILE_ID = str(uuid.uuid4())
CASES: list[tuple[Part, Part]] = [
    (TextPart(text="t", **INNER), TextPart(text="t")),
    (ReasoningPart(text="r", **INNER), ReasoningPart(text="r")),
    (
        ToolCallPart(tool_call_id="c", tool_name="t", args={"a": 1}, args_delta="{", **INNER),
        ToolCallPart(tool_call_id="c", tool_name="t", args={"a": 1}, args_delta="{"),
    ),
    (
        ToolResultPart(tool_call_id="c", tool_name="t", result={"output": "o"}, **INNER),
        ToolResultPart(tool_call_id="c", tool_name="t", result={"output": "o"}),
    ),
    (
        ToolResultPart(
            tool_call_id="c",
            tool_name="t",
            result={"file_id": FILE_ID, "mime_type": "image/png", "text": "x", "data": SECRET},
            is_media=True,
            **INNER,
        ),
        ToolResultPart(
            tool_call_id="c",
            tool_name="t",
            result={"file_id": FILE_ID, "mime_type": "image/png", "text": "x"},
            is_media=True,
        ),
    ),
    (
        FilePart(media_type="image/png", file_id=FILE_ID, name="n", data=SECRET),
        FilePart(media_type="image/png", file_id=FILE_ID, name="n"),
    ),
    (SourcePart(url="http://x", title="X", **INNER), SourcePart(url="http://x", title="X")),
    (
        FileReferencePart(file_name="a.py", start_line=1, end_line=2, content="x"),
        FileReferencePart(file_name="a.py", start_line=1, end_line=2, content="x"),
    ),
    (
        QuestionAnswerPart(question_id=uuid.UUID(FILE_ID), text="Red"),
        QuestionAnswerPart(question_id=uuid.UUID(FILE_ID), text="Red"),
    ),
    (
        ContextFilePart(
            context_file_path="AGENTS.md",
            context_file_content=SECRET,
            context_file_os=SECRET,
            context_file_directory=SECRET,
        ),
        ContextFilePart(context_file_path="AGENTS.md"),
    ),
    (
        SkillPart(
            skill_name="s", skill_description="d", skill_dir=SECRET, context_file_skill_meta_file=SECRET
        ),
        SkillPart(skill_name="s", skill_description="d"),
    ),
]


@pytest.mark.parametrize(("part", "expected"), CASES, ids=[case[0].type for case in CASES])
def test_no_internals_reach_a_client(part: Part, expected: Part) -> None:
    """Spec 4.3: provider metadata, and inline data of files that are stored."""
    public = without_internals(part)

    assert public == expected
    assert SECRET not in public.model_dump_json()


def test_every_part_type_has_a_leak_case() -> None:
    """Ours: a new part type must say what of it is internal."""
    schema = part_list_adapter.json_schema()
    known = set(schema["items"]["discriminator"]["mapping"])

    assert {case[0].type for case in CASES} == known


def test_what_a_client_may_see_is_kept() -> None:
    """Ours: an inline file without an id has nothing else to show; data in a plain result is the tool's."""
    inline = FilePart(media_type="text/plain", data="aGk=")
    plain = ToolResultPart(tool_call_id="c", tool_name="t", result={"data": "mine"})

    assert without_internals(inline) == inline
    assert without_internals(plain) == plain


@pytest.mark.parametrize("part", [case[0] for case in CASES], ids=lambda part: part.type)
def test_stored_parts_read_back_the_same(part: Part) -> None:
    """Ours: the part object is the storage format; metadata survives in storage."""
    stored = json.loads(json.dumps(dump_parts([part])))

    assert part_list_adapter.validate_python(stored) == (part,)
    assert not any(isinstance(value.get("data"), dict) for value in stored)


def test_zero_tokens_are_stored_as_null() -> None:
    """Spec 2.2: zero is stored as NULL in all numeric columns."""
    message = NewMessage(role="assistant", content=(), usage=Usage(input_tokens=5, output_tokens=0))
    values = message_values(message, chat_id=uuid.uuid4(), revision=3, now=datetime.now(UTC))

    assert (values["input_tokens"], values["output_tokens"], values["total_tokens"]) == (5, None, None)
    assert (values["revision"], values["content_version"], values["visibility"]) == (3, 1, "both")


def test_parts_without_a_time_get_that_of_their_row_and_others_keep_theirs() -> None:
    """Spec 1.6: what we make up is stamped when it is stored, and nothing real is overwritten."""
    now, before = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    content: tuple[Part, ...] = (
        ToolResultPart(tool_call_id="a", tool_name="t"),
        ToolResultPart(tool_call_id="b", tool_name="t", created_at=before),
        TextPart(text="x"),
    )
    message = NewMessage(role="assistant", content=content)
    stored = message_values(message, chat_id=uuid.uuid4(), revision=1, now=now)["content"]
    made, real, text = part_list_adapter.validate_python(stored)

    assert [part.created_at for part in (made, real) if isinstance(part, ToolResultPart)] == [now, before]
    assert text == content[2]
    assert without_internals(real) == real


def test_local_calls_are_those_that_the_vendor_does_not_run() -> None:
    """Spec 1.2: provider-executed calls are never answered by us."""
    mine = ToolCallPart(tool_call_id="a", tool_name="t")
    theirs = ToolCallPart(tool_call_id="b", tool_name="t", provider_executed=True)

    assert local_calls([theirs, TextPart(text="x"), mine]) == [mine]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "New Chat"),
        (" \n\t", "New Chat"),
        ("one", "one"),
        (" one \n two ", "one two"),
        ("a b c d e f", "a b c d e f"),
        ("a b c d e f g", "a b c d e f…"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("x" * 80 + " b c d e f g", "x" * 79 + "…"),
        (" ".join(["x" * 12] * 5 + ["y" * 15, "z"]), " ".join(["x" * 12] * 5) + " " + "y" * 14 + "…"),
        (" ".join(["x" * 15] * 5) + " y", " ".join(["x" * 15] * 5 + ["y"])[:79] + "…"),
    ],
)
def test_a_title_is_the_first_words(text: str, expected: str) -> None:
    """Spec 3: the first 6 words, an ellipsis if cut, 80 characters."""
    assert derive_title(text) == expected


@given(st.text(max_size=200))
def test_a_title_is_short_single_line_and_never_blank(text: str) -> None:
    """Ours: whatever a person writes."""
    title = derive_title(text)

    assert title.strip() == title
    assert title
    assert len(title) <= TITLE_CHARACTERS
    assert len(title.splitlines()) == 1
    assert len(title.split()) <= max(TITLE_WORDS, 2)


@given(st.lists(st.text("abc", min_size=1, max_size=30), min_size=1, max_size=12))
def test_a_title_never_grows_past_its_limit_with_the_ellipsis(words: list[str]) -> None:
    """Spec 3: 80 characters, the ellipsis included."""
    assert len(derive_title(" ".join(words))) <= TITLE_CHARACTERS
