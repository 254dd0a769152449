"""Content of version 0: every shape that was ever written, and that no part can be taken for an envelope."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from chatd.errors import Misuse
from chatd.store.legacy import is_envelope, read_legacy
from chatd.store.rows import dump_parts, read_content
from chatd.wire import FilePart, Part, ReasoningPart, Role, SourcePart, TextPart, ToolCallPart, ToolResultPart

META = {"anthropic": {"signature": "s"}}
PARTS: tuple[type[BaseModel], ...] = get_args(get_args(Part)[0])


def envelope(kind: str, **data: Any) -> dict[str, Any]:
    """An old block."""
    return {"type": kind, "data": data}


CASES: list[tuple[str, Role, Any, tuple[Part, ...]]] = [
    ("a text", "user", "hello", (TextPart(text="hello"),)),
    ("a system text", "system", "be good", (TextPart(text="be good"),)),
    ("a blank system text", "system", "  ", ()),
    ("parts", "user", [{"type": "text", "text": "x"}], (TextPart(text="x"),)),
    ("an envelope", "user", [envelope("text", text="x")], (TextPart(text="x"),)),
    (
        "metadata survives",
        "assistant",
        [envelope("reasoning", text="r", provider_metadata=META), envelope("text", text="t")],
        (ReasoningPart(text="r", provider_metadata=META), TextPart(text="t")),
    ),
    (
        "a call",
        "assistant",
        [envelope("tool-call", tool_call_id="c", tool_name="t", args={"a": 1}, provider_metadata=META)],
        (ToolCallPart(tool_call_id="c", tool_name="t", args={"a": 1}, provider_metadata=META),),
    ),
    (
        "a source",
        "assistant",
        [envelope("source", url="http://x", title="X")],
        (SourcePart(url="http://x", title="X"),),
    ),
    (
        "a file with an id drops its bytes",
        "user",
        [envelope("file", media_type="image/png", file_id="f", data="QUJD")],
        (FilePart(media_type="image/png", file_id="f"),),
    ),
    (
        "a file without an id keeps them",
        "user",
        [envelope("file", media_type="image/png", data="QUJD")],
        (FilePart(media_type="image/png", data="QUJD"),),
    ),
    ("elements without any type", "assistant", [{"text": "x"}, {}], ()),
    (
        "an unknown block among known ones",
        "user",
        [envelope("text", text="x"), envelope("odd")],
        (TextPart(text="x"),),
    ),
    (
        "a tool row of parts",
        "tool",
        [{"type": "tool-result", "tool_call_id": "c", "tool_name": "t", "result": {"output": "x"}}],
        (ToolResultPart(tool_call_id="c", tool_name="t", result={"output": "x"}),),
    ),
    (
        "an old tool row",
        "tool",
        {"tool_call_id": "c", "tool_name": "t", "result": "x", "is_error": True, "provider_metadata": META},
        (ToolResultPart(tool_call_id="c", tool_name="t", result="x", is_error=True, provider_metadata=META),),
    ),
    (
        "old tool rows in a list",
        "tool",
        [{"tool_call_id": "c", "result": [1]}, {"tool_call_id": "d"}],
        (
            ToolResultPart(tool_call_id="c", tool_name="", result=[1]),
            ToolResultPart(tool_call_id="d", tool_name=""),
        ),
    ),
    ("nothing", "user", None, ()),
    ("an empty list", "assistant", [], ()),
]


@pytest.mark.parametrize(
    ("role", "content", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_old_content_reads_as_parts(role: Role, content: Any, expected: tuple[Part, ...]) -> None:
    """Spec 4.2: strings, envelopes, old tool rows, parts."""
    assert read_content(content, 0, role) == expected


def test_an_unknown_version_is_an_error() -> None:
    """Spec 4.2, rule 1: never guessed."""
    with pytest.raises(Misuse):
        read_content([], 2, "user")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON, st.sampled_from(["system", "user", "assistant", "tool"]))
def test_no_old_content_is_a_failure(content: Any, role: Role) -> None:
    """Ours: a chat with one strange row can still be read."""
    parts = read_legacy(content, role)

    assert read_content(dump_parts(parts), 1, role) == parts


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_no_part_can_look_like_an_envelope(kind: type[BaseModel]) -> None:
    """Spec 4.2: the guard; no part type can serialise with an object under ``data``."""
    schema = kind.model_json_schema(mode="serialization")["properties"].get("data", {"type": "string"})
    kinds = {option.get("type") for option in schema.get("anyOf", [schema])}

    assert kinds <= {"string", "null"}
    assert "additionalProperties" not in kind.model_json_schema()


@settings(deadline=None)
@given(JSON)
def test_an_envelope_is_told_by_its_structure(value: Any) -> None:
    """Spec 4.2: a non-empty list whose first element has an object under ``data``."""
    expected = isinstance(value, dict)

    assert is_envelope([{"type": "text", "data": value}]) == expected
    assert not is_envelope(value) or isinstance(value, list)
    assert json.loads(json.dumps([{"data": value}])) == [{"data": value}]
