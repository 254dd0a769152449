"""Ids, arguments, results and files on their way to a model."""

import base64
from typing import Any

import pytest

from chatd.prompt.convert import (
    Media,
    describe_call,
    parse_arguments,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.wire import FilePart, ToolCallPart, ToolResultPart

PICTURE = base64.b64encode(b"\x89PNG").decode()


@pytest.mark.parametrize(
    ("given", "safe"), [("toolu_1-a", "toolu_1-a"), ("a.b/c é", "a_b_c__"), ("", "call")]
)
def test_tool_ids_use_the_common_alphabet(given: str, safe: str) -> None:
    """Every vendor refuses ids of another vendor's making otherwise."""
    assert safe_tool_id(given) == safe


@pytest.mark.parametrize(
    ("text", "args", "is_invalid"),
    [
        ("", {}, False),
        ("  ", {}, False),
        ('{"a": 1}', {"a": 1}, False),
        ('{"command":', {}, True),
        ("[]", {}, True),
        ("null", {}, True),
        ("[" * 100_000, {}, True),
    ],
)
def test_arguments_are_an_object_or_refused(text: str, args: dict[str, Any], *, is_invalid: bool) -> None:
    """A cut-off call must not run with empty arguments."""
    found, problem = parse_arguments(text)
    assert (found, problem is not None) == (args, is_invalid)


RESULTS: list[tuple[dict[str, Any], str, bool, bool]] = [
    ({"result": None}, "{}", False, False),
    ({"result": {"output": "text"}}, "text", False, False),
    ({"result": {"output": "text", "more": 1}}, '{"output": "text", "more": 1}', False, False),
    ({"result": [1, 2]}, "[1, 2]", False, False),
    ({"result": "bare"}, "bare", False, False),
    ({"result": {"error": "no"}, "is_error": True}, "no", False, True),
    ({"result": {"why": "no"}, "is_error": True}, '{"why": "no"}', False, True),
    (
        {"result": {"data": PICTURE, "mime_type": "image/png", "text": "t"}, "is_media": True},
        "t",
        True,
        False,
    ),
    (
        {
            "result": {"data": PICTURE, "mime_type": "image/png", "text": "t"},
            "is_media": True,
            "is_error": True,
        },
        "t",
        True,
        True,
    ),
    ({"result": {"data": "%%", "mime_type": "image/png", "text": "t"}, "is_media": True}, "t", False, False),
    (
        {"result": {"file_id": "f", "mime_type": "image/png", "text": ""}, "is_media": True},
        "The pic",
        False,
        False,
    ),
]


@pytest.mark.parametrize(("fields", "text", "has_media", "is_error"), RESULTS)
def test_results_are_read_as_text_and_picture(
    fields: dict[str, Any], text: str, *, has_media: bool, is_error: bool
) -> None:
    """A picture is never text: damaged ones become a sentence."""
    found = read_result(ToolResultPart(tool_call_id="c", tool_name="t", **fields))
    assert found.text.startswith(text)
    assert PICTURE not in found.text
    assert (found.media is not None, found.is_error) == (has_media, is_error)


@pytest.mark.parametrize(
    ("media_type", "data", "expected"),
    [
        ("image/png", PICTURE, Media(media_type="image/png", data=PICTURE)),
        ("application/pdf", PICTURE, Media(media_type="application/pdf", data=PICTURE)),
        ("text/plain", base64.b64encode("hé".encode()).decode(), "[file 'n']\nhé"),
        ("image/png", None, "[file 'n' (image/png): content not available]"),
        ("application/octet-stream", None, "[file 'n': content not available]"),
        ("video/mp4", PICTURE, "[file 'n' (video/mp4): this model cannot read it]"),
    ],
)
def test_files_become_what_a_model_can_read(media_type: str, data: str | None, expected: Media | str) -> None:
    """Pictures and PDFs as they are, text as text, the rest as a sentence."""
    assert read_file_part(FilePart(media_type=media_type, data=data, name="n")) == expected


def test_described_calls_are_bounded() -> None:
    """Prose in place of a call must not flood the prompt."""
    part = ToolCallPart(tool_call_id="c", tool_name="t", args={"text": "x" * 10_000})
    assert len(describe_call(part)) < 2_100
