"""What comes next, from histories written as short rows."""

import uuid
from datetime import UTC, datetime

import pytest

from chatd.loop.decide import Finish, Generate, Next, RunTools, decide
from chatd.wire import Message, Part, TextPart, ToolCallPart, ToolResultPart

CHAT = uuid.UUID(int=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = TextPart(text="x")


def call(name: str, *, provider_executed: bool = False) -> ToolCallPart:
    """A call with the id *name*."""
    return ToolCallPart(tool_call_id=name, tool_name="t", provider_executed=provider_executed)


def result(name: str, *, provider_executed: bool = False) -> ToolResultPart:
    """The answer of the call *name*."""
    return ToolResultPart(tool_call_id=name, tool_name="t", result={}, provider_executed=provider_executed)


U = ("user", (TEXT,))
SYSTEM = ("system", (TEXT,))
ANSWER = ("assistant", (TEXT,))
CALLS = ("assistant", (TEXT, call("a"), call("b")))
RESULT_A, RESULT_B = ("tool", (result("a"),)), ("tool", (result("b"),))
SEARCH = ("assistant", (call("s", provider_executed=True), result("s", provider_executed=True), TEXT))

TABLE: list[tuple[str, list[tuple[str, tuple[Part, ...]]], Next]] = [
    ("nothing at all", [], Generate()),
    ("only a system row", [SYSTEM], Generate()),
    ("a user's message", [U], Generate()),
    ("an answer", [U, ANSWER], Finish()),
    ("an answer, then a user's message", [U, ANSWER, U], Generate()),
    ("two open calls", [U, CALLS], RunTools(2, (call("a"), call("b")))),
    ("one open call", [U, CALLS, RESULT_A], RunTools(2, (call("b"),))),
    ("answers out of order", [U, CALLS, RESULT_B], RunTools(2, (call("a"),))),
    ("all answered", [U, CALLS, RESULT_B, RESULT_A], Generate()),
    ("a result of an earlier message does not count", [U, CALLS, RESULT_A, RESULT_B, CALLS], RunTools(5, ())),
    ("a user's message over open calls", [U, CALLS, U], Generate()),
    ("the vendor's own call is not ours", [U, SEARCH], Finish()),
    ("a stray result", [RESULT_A], Generate()),
]


@pytest.mark.parametrize(("rows", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_history_decides(rows: list[tuple[str, tuple[Part, ...]]], expected: Next) -> None:
    """Spec 6.4: open local calls are run; else the model speaks unless it has spoken."""
    messages = [
        Message.model_validate(
            {"id": number, "chat_id": CHAT, "role": role, "content": content, "created_at": NOW}
        )
        for number, (role, content) in enumerate(rows, start=1)
    ]
    if isinstance(expected, RunTools) and not expected.calls:
        expected = RunTools(expected.message_id, (call("a"), call("b")))

    assert decide(messages) == expected
