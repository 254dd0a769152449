"""Results of servers as blocks for chats."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.content import MAX_BLOCKS, MAX_MEDIA_BYTES, MAX_TEXT, outcome_of
from mcp_bridge.wire import AudioBlock, CallOutcome, ImageBlock, TextBlock

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff....").decode()


def _one(item: Any) -> Any:
    (block,) = outcome_of({"content": [item]}).content
    return block


def test_text_pictures_and_sound_stay_what_they_are() -> None:
    """The three kinds that have a block of their own."""
    assert TextBlock(text="hi") == _one({"type": "text", "text": "hi"})
    assert ImageBlock(data=PNG, mime_type="image/png") == _one(
        {"type": "image", "data": PNG, "mimeType": "image/png"}
    )
    assert AudioBlock(data="AAAA", mime_type="audio/wav") == _one(
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    )


@pytest.mark.parametrize(
    ("data", "claimed", "kept"),
    [
        (JPEG, "image/png", "image/jpeg"),
        (f"data:image/png;base64,{PNG}", "image/png", "image/png"),
        (PNG, None, "image/png"),
    ],
)
def test_a_picture_is_what_its_bytes_are(data: str, claimed: str | None, kept: str) -> None:
    """A JPEG labelled PNG, a data URI, no type at all: vendors refuse what is mislabelled."""
    assert kept == _one({"type": "image", "data": data, "mimeType": claimed}).mime_type


@pytest.mark.parametrize(
    "data", ["not base64!", "AAA", None, base64.b64encode(b"<svg onload=x>").decode(), ""]
)
def test_a_picture_that_is_none_becomes_a_sentence(data: Any) -> None:
    """Bad padding, no data, something else: the call's other content is kept."""
    assert _one({"type": "image", "data": data, "mimeType": "image/png"}).type == "text"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "body"}}, ("file:///a", "body")),
        (
            {"type": "resource", "resource": {"uri": "x:/b", "blob": "AAAA", "mimeType": "application/zip"}},
            ("x:/b", "application/zip", "3 bytes"),
        ),
        (
            {
                "type": "resource_link",
                "uri": "x:/c",
                "name": "C",
                "mimeType": "text/plain",
                "description": "d",
            },
            ("x:/c", '"C"', "text/plain", "d"),
        ),
        ({"type": "hologram"}, ("hologram",)),
        ({}, ("unknown type",)),
        ("a string", ("no content",)),
    ],
)
def test_what_can_not_be_shown_is_named(item: Any, words: tuple[str, ...]) -> None:
    """Resources, links and unknown kinds become text that says what they are."""
    text = _one(item).text

    assert all(word in text for word in words)


def test_a_resource_that_is_a_picture_is_shown() -> None:
    """An embedded blob with a picture's bytes."""
    assert _one({"type": "resource", "resource": {"uri": "x:/a", "blob": PNG}}).mime_type == "image/png"


def test_structured_output_alone_becomes_text_too() -> None:
    """Models read text; programs read the value."""
    outcome = outcome_of({"structuredContent": {"a": [1, "ä"]}})

    assert ((TextBlock(text='{"a": [1, "ä"]}'),), {"a": [1, "ä"]}) == (outcome.content, outcome.structured)
    assert outcome_of({"structuredContent": [1]}).structured == {"value": [1]}


def test_giant_output_is_cut_and_says_so() -> None:
    """Text keeps head and tail; media beyond the limit becomes a sentence; items are counted."""
    huge = "a" * MAX_TEXT + "end"
    big = "A" * (MAX_MEDIA_BYTES + 4)
    many = [{"type": "text", "text": "x"}] * (MAX_BLOCKS + 5)
    text = _one({"type": "text", "text": huge}).text

    assert len(text) < MAX_TEXT
    assert "left out" in text
    assert text.endswith("end")
    assert "too large" in _one({"type": "audio", "data": big, "mimeType": "audio/wav"}).text
    assert "5 more items" in outcome_of({"content": many}).content[-1].text  # type: ignore[union-attr]


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["text", "image", "resource", PNG]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "resource", "uri", "blob", "mimeType"]), inner
        )
    ),
    max_leaves=20,
)


@given(ANY, ANY, ANY)
def test_no_result_is_a_crash_and_every_outcome_has_an_encoding(
    content: Any, structured: Any, failed: Any
) -> None:
    """Half surrogates, wrong types at every place: what comes out is always valid and UTF-8."""
    outcome = outcome_of({"content": content, "structuredContent": structured, "isError": failed})

    assert outcome == CallOutcome.model_validate_json(outcome.model_dump_json(by_alias=True).encode())
