"""What a chat without a computer gets answered."""

import json

import pytest

from chatd.rehearsal.brain import SPAWN_TOOL, WAIT_TOOL, decide, read_or_none
from chatd.rehearsal.conversation import Conversation, Entry, Picture, ToolOutput, ToolUse, chunked
from chatd.rehearsal.turn import error_text

TOOLS = frozenset({SPAWN_TOOL, WAIT_TOOL, "other"})
TEXT = "Open a terminal and run `uname -a`"


def _root(*results: tuple[str, object], text: str = TEXT, tools: frozenset[str] = TOOLS) -> Conversation:
    """A conversation in which each of *results* (tool, JSON) has come back."""
    entries = [
        Entry(role="user", text="earlier"),
        Entry(role="assistant", text="yes"),
        Entry(role="user", text=text),
    ]
    for number, (name, result) in enumerate(results):
        call_id = f"call_{number}"
        entries.append(Entry(role="assistant", calls=(ToolUse(call_id=call_id, name=name),)))
        entries.append(Entry(role="tool", outputs=(ToolOutput(call_id=call_id, text=json.dumps(result)),)))
    return Conversation(model="rehearsal", entries=tuple(entries), tools=tools)


SPAWNED = (SPAWN_TOOL, {"chat_id": "c1", "title": "t", "status": "running"})


def test_a_desktop_instruction_is_delegated_whole() -> None:
    """Ours: the child gets the user's own words."""
    reply = decide(_root())

    (call,) = reply.calls
    assert (reply.text, reply.finish) == ("I'll do that on the desktop.", "tool-calls")
    assert (call.name, call.arguments) == (SPAWN_TOOL, {"prompt": TEXT, "title": "run `uname -a`"})


@pytest.mark.parametrize(
    "results",
    [
        [SPAWNED],
        [(SPAWN_TOOL, {"output": '{"chat_id": "c1"}'})],
        [SPAWNED, (WAIT_TOOL, {"timed_out": True, "chat_id": "c1"})],
    ],
)
def test_the_agent_is_waited_for(results: list[tuple[str, object]]) -> None:
    """Ours: after the start, and again after a time-out."""
    (call,) = decide(_root(*results)).calls

    assert (call.name, call.arguments) == (WAIT_TOOL, {"chat_id": "c1"})


def test_the_report_is_passed_on() -> None:
    """Ours: with the words that say whose report it is."""
    result = {"chat_id": "c1", "title": "t", "report": "It says:\n\nLinux", "status": "waiting"}

    reply = decide(_root(SPAWNED, (WAIT_TOOL, result)))

    assert reply.text == "The agent at the desktop reports:\n\nIt says:\n\nLinux"
    assert reply.finish == "stop"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (
            [(SPAWN_TOOL, {"error": "no workspace"})],
            "I could not start an agent at the desktop: no workspace",
        ),
        ([SPAWNED, (WAIT_TOOL, {"error": "gone"})], "I could not get the agent's report: gone"),
        ([SPAWNED, (WAIT_TOOL, {"status": "error"})], "ended without a report (status: error)"),
        ([(SPAWN_TOOL, "the workspace is gone")], "I could not start an agent at the desktop:"),
        ([(SPAWN_TOOL, {"title": "t"})], "I could not start an agent at the desktop:"),
        ([SPAWNED, (WAIT_TOOL, "the workspace is gone")], "I could not get the agent's report:"),
        ([SPAWNED, *[(WAIT_TOOL, {"timed_out": True, "chat_id": "c1"})] * 60], "stopped waiting after 60"),
    ],
)
def test_failures_are_told_honestly(results: list[tuple[str, object]], expected: str) -> None:
    """Ours: no success is pretended, and nothing waits for ever."""
    reply = decide(_root(*results))

    assert expected in reply.text
    assert reply.calls == ()


def test_other_text_gets_an_introduction_with_an_echo() -> None:
    """Ours: the model says what it is and what it understands."""
    reply = decide(_root(text="What is the capital of France?"))

    assert "rehearsal model" in reply.text
    assert "You wrote: What is the capital of France?" in reply.text
    assert len(reply.chunks) > 3


def test_saying_needs_no_tool() -> None:
    """Ours: "say" is answered at once."""
    assert decide(_root(text="say hello", tools=frozenset())).text == "hello"


def test_a_desktop_instruction_without_a_desktop_is_refused_kindly() -> None:
    """Ours: no tool, no promise."""
    reply = decide(_root(tools=frozenset()))

    assert "no tool for one" in reply.text
    assert reply.calls == ()


def test_a_note_after_a_tool_result_is_no_new_instruction() -> None:
    """Ours: some vendors' tool results need a user's message for their text."""
    conversation = _root(SPAWNED)
    noted = Conversation(
        model="rehearsal", entries=(*conversation.entries, Entry(role="user", text="a note")), tools=TOOLS
    )

    assert decide(noted).calls[0].name == WAIT_TOOL


def test_an_agent_that_cannot_be_waited_for_is_mentioned() -> None:
    """Ours: the user learns that something was started."""
    reply = decide(_root(SPAWNED, tools=frozenset({SPAWN_TOOL})))

    assert "no way to wait" in reply.text


def test_an_error_without_a_flag_is_an_error() -> None:
    """Ours: protocols without a flag carry it as a word."""
    output = ToolOutput(call_id="c", text="Error: no such tool")

    assert error_text(output) == "no such tool"
    assert error_text(ToolOutput(call_id="c", text="fine")) is None


def test_an_answer_is_cut_at_the_token_limit() -> None:
    """Vendors: the finish reason says that the limit cut it."""
    conversation = Conversation(
        model="m", entries=(Entry(role="user", text="say " + "x" * 400),), max_output_tokens=10
    )

    reply = decide(conversation)

    assert (reply.text, reply.finish) == ("x" * 40, "length")


def test_a_broken_picture_is_as_good_as_none() -> None:
    """Ours: another screenshot is asked for."""
    assert read_or_none(Picture(media_type="image/png", data="bm90IGEgcGljdHVyZQ==")) is None
    assert read_or_none(Picture(media_type="image/png", data="%%%")) is None


def test_chunks_join_to_the_text() -> None:
    """Ours: cutting loses nothing."""
    text = "word " * 40

    assert "".join(chunk.text for chunk in chunked(text)) == text
