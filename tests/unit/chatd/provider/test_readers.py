"""Stream readers at their edges: odd events are survived, nothing is invented."""

from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from chatd.provider.anthropic_stream import AnthropicReader
from chatd.provider.openai_responses_stream import ResponsesReader
from chatd.provider.protocol import PartDone, ProviderEvent, TextDelta, ToolInputDelta

ANTHROPIC: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
RESPONSES: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def fed(*events: dict[str, Any], size: tuple[int, int] | None = None) -> list[ProviderEvent]:
    """Return what the Anthropic reader makes of *events*."""
    reader = AnthropicReader(size)
    return [neutral for event in events for neutral in reader.feed(ANTHROPIC.validate_python(event))]


def start(**block: Any) -> dict[str, Any]:
    """Return the start of block 0."""
    return {"type": "content_block_start", "index": 0, "content_block": block}


STOP = {"type": "content_block_stop", "index": 0}


def test_text_in_a_blocks_start_is_text() -> None:
    """Some servers put the first words there."""
    first, done = fed(start(type="text", text="Hi"), STOP)
    assert first == TextDelta("Hi")
    assert isinstance(done, PartDone)


def test_whole_input_in_a_blocks_start_is_the_input() -> None:
    """Without fragments behind it; with fragments the fragments count."""
    announced, done = fed(start(type="tool_use", id="c", name="f", input={"a": 1}), STOP)
    assert announced == ToolInputDelta("c", "f", "")
    assert isinstance(done, PartDone)
    assert done.part.args == {"a": 1}  # type: ignore[union-attr]


def test_computer_blocks_without_an_offered_computer_stay_plain_calls() -> None:
    """A function may be named computer; it is not the desktop then."""
    (_, done) = fed(start(type="tool_use", id="c", name="computer", input={"action": "wait"}), STOP)
    assert isinstance(done, PartDone)
    assert done.part.args == {"action": "wait"}  # type: ignore[union-attr]


def test_single_tool_blocks_name_their_action_in_the_input() -> None:
    """The older form maps to the same canonical call and is kept for replay."""
    given = {"action": "wait", "duration": 2}
    (_, done) = fed(start(type="tool_use", id="c", name="computer", input=given), STOP, size=(10, 10))
    assert isinstance(done, PartDone)
    part = done.part
    assert part.args["actions"] == [{"action": "wait", "duration_ms": 2_000}]  # type: ignore[union-attr,index]
    assert part.provider_metadata == {"anthropic": {"name": "computer", "input": given}}


@pytest.mark.parametrize(
    "event",
    [
        STOP,
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "lost"}},
    ],
)
def test_events_of_unopened_blocks_are_ignored(event: dict[str, Any]) -> None:
    """There is nothing to add them to."""
    assert fed(event) == []


def test_empty_text_and_unknown_blocks_leave_no_part() -> None:
    """Blank text is refused on replay; server tools were not asked for."""
    assert fed(start(type="text", text=""), STOP) == []
    assert fed(start(type="container_upload", file_id="f"), STOP) == []


def test_response_items_we_did_not_ask_for_are_ignored() -> None:
    """And so are events that carry nothing for us."""
    reader = ResponsesReader((1, 1))
    item = {
        "type": "code_interpreter_call",
        "id": "ci",
        "status": "completed",
        "container_id": "c",
        "code": "1",
        "outputs": [],
    }
    event = {"type": "response.output_item.done", "output_index": 0, "sequence_number": 0, "item": item}
    assert list(reader.feed(RESPONSES.validate_python(event))) == []
    assert not reader.is_finished
