"""What is set aside of a history, and where vendors' words point."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from chatd.prompt.quarantine import pointed_at, pointed_item, set_aside
from chatd.wire import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

META = {"openai": {"encrypted_content": "x"}}


@pytest.mark.parametrize(
    ("words", "item"),
    [
        ("messages.12.content.0.tool_use.id: String should match pattern", 12),
        ("messages.3: `tool_use` ids were found without `tool_result` blocks", 3),
        ("Invalid 'input[7].content[0].image_url'", 7),
        ("{'message': 'bad', 'param': 'messages.[4].content'}", 4),
        ("* GenerateContentRequest.contents[2].parts[0].inline_data.data", 2),
        ("There were 400 messages", None),
        ("messages: 5 too many", 5),
        ("", None),
    ],
)
def test_where_words_point(words: str, item: int | None) -> None:
    """Vendors' own ways to name a place in a request."""
    assert pointed_item(words) == item


def test_an_id_points_at_its_rows() -> None:
    """OpenAI names items by id alone."""

    def row(number: int, *content: Part) -> Message:
        return Message(
            id=number, chat_id=UUID(int=1), role="assistant", content=content, created_at=datetime.now(UTC)
        )

    item = {"openai": {"items": [{"id": "ws_6", "type": "web_search_call"}]}}
    rows = [row(1, TextPart(text="x")), row(2, TextPart(text="x", provider_metadata=item))]

    assert pointed_at("Item 'ws_6' was provided without its required 'reasoning' item: 'rs_6'", rows) == [1]
    assert pointed_at("no id here", rows) == []


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (TextPart(text="x"), None),
        (TextPart(text="x", provider_metadata=META), TextPart(text="x")),
        (ReasoningPart(text="x", provider_metadata=META), ReasoningPart(text="x")),
        (ToolCallPart(tool_call_id="a", tool_name="t", args={"a": 1}), None),
        (ToolResultPart(tool_call_id="a", tool_name="t", result={"output": "x"}), None),
        (
            ToolCallPart(tool_call_id="a", tool_name="web_search", provider_executed=True),
            TextPart(text="[web_search, run by the model's vendor, was set aside]"),
        ),
        (
            ToolResultPart(
                tool_call_id="a", tool_name="computer", is_media=True, result={"file_id": "f", "text": "ok"}
            ),
            ToolResultPart(
                tool_call_id="a",
                tool_name="computer",
                result={"output": "ok\n[its picture was set aside]"},
            ),
        ),
        (
            FilePart(media_type="image/png", file_id="f"),
            TextPart(text="[the file image/png was set aside: the model's vendor refused it]"),
        ),
    ],
)
def test_only_what_a_vendor_may_take_offence_at_goes(part: Part, kept: Part | None) -> None:
    """Words, arguments and results stay; twice is as once."""
    made = set_aside([part])

    assert made == (None if kept is None else (kept,))
    assert kept is None or set_aside([kept]) is None
