"""What is told of an agent."""

import pytest

from chatd.tools.family import progress_of
from chatd.wire import Chat, Message, Part, TextPart, ToolCallPart, ToolResultPart


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([TextPart(text="a\n b \n\n")], "running: b"),
        ([TextPart(text="a"), ToolCallPart(tool_call_id="c", tool_name="execute")], "running: calls execute"),
        ([ToolResultPart(tool_call_id="c", tool_name="execute")], "running: execute answered"),
        ([TextPart(text="x" * 500)], "running: " + "x" * 200),
        ([TextPart(text=" ")], "running"),
        ([], "running"),
    ],
)
def test_the_newest_line_is_the_last_thing_said_or_done(parts: list[Part], line: str) -> None:
    """Ours: words, a call, or what came of one; bounded."""
    chat = Chat.model_construct(status="running")

    assert progress_of(chat, [Message.model_construct(role="assistant", content=tuple(parts))]) == line
