"""One tool call in, one result out, whatever happens."""

import base64
import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.wire.content import ContentBlock, ImageContent, TextContent, ToolResult
from chatd.provider.protocol import FunctionTool
from chatd.tools.toolset import (
    MAX_RESULT_CHARACTERS,
    CallContext,
    LocalTool,
    ToolOutcome,
    Toolset,
    error_outcome,
    outcome_of,
)
from chatd.wire import ToolCallPart, ToolResultPart

PNG = base64.b64encode(b"\x89PNG").decode()


def context(name: str = "good", **fields: str) -> CallContext:
    """A call of the tool *name*."""
    call = ToolCallPart.model_validate({"tool_call_id": "c1", "tool_name": name, "args": {}} | fields)
    return CallContext(chat_id=UUID(int=1), message_id=7, call=call)


async def good(context: CallContext) -> ToolOutcome:
    """A tool that works."""
    return outcome_of(context.call, ToolResult(content=(TextContent(text=context.key),)))


async def broken(_: CallContext) -> ToolOutcome:
    """A tool that does not."""
    msg = "no disk"
    raise OSError(msg)


def toolset(**more: object) -> Toolset:
    """Two tools."""
    tools = {
        name: LocalTool(definition=FunctionTool(name=name, description="", input_schema={}), run=run)
        for name, run in (("good", good), ("broken", broken))
    }
    return Toolset(tools=tools, **more)  # type: ignore[arg-type]


async def test_a_tool_s_answer_names_its_call() -> None:
    """Ours: the key is made of chat, message and call, so that a repeat is recognised."""
    outcome = await toolset().run(context())

    assert (outcome.part.tool_call_id, outcome.part.is_error) == ("c1", False)
    assert outcome.part.result == {"output": f"{UUID(int=1)}/7/c1"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (context("nothing"), "'nothing'"),
        (context("good", invalid="not JSON"), "not JSON"),
        (context("broken"), "OSError: no disk"),
        (context("computer"), "'computer'"),
    ],
    ids=["unknown", "invalid", "raising", "no computer"],
)
async def test_what_goes_wrong_is_a_result_that_the_model_reads(call: CallContext, expected: str) -> None:
    """Spec 6.4: an unknown tool and a panic become error results."""
    outcome = await toolset().run(call)

    assert outcome.part.is_error
    assert expected in outcome.part.result["error"]
    assert (outcome.part.tool_call_id, outcome.part.tool_name) == ("c1", call.call.tool_name)


async def test_the_computer_is_guarded_like_any_tool() -> None:
    """Ours: the computer's own runner may fail as well."""
    working = await toolset(run_computer=good).run(context("computer"))
    failing = await toolset(run_computer=broken).run(context("computer"))
    unread = await toolset(run_computer=good).run(context("computer", invalid="no such action"))

    assert [working.part.is_error, failing.part.is_error, unread.part.is_error] == [False, True, True]


async def test_a_chat_without_tools_says_so() -> None:
    """Ours: the model is told what there is."""
    outcome = await Toolset().run(context("x"))

    assert "none" in outcome.part.result["error"]
    assert [tool.name for tool in toolset().definitions()] == ["good", "broken"]


def image(data: str = PNG, mime_type: str = "image/png") -> ImageContent:
    """A picture from a workspace."""
    return ImageContent(data=data, mime_type=mime_type)


@pytest.mark.parametrize(
    ("content", "is_error", "expected"),
    [
        ((), False, {"output": ""}),
        ((), True, {"error": "failed"}),
        ((TextContent(text="a"), TextContent(text="b")), False, {"output": "a\nb"}),
        ((TextContent(text="a"),), True, {"error": "a"}),
        ((image("not base64!"), TextContent(text="a")), False, {"output": "a"}),
    ],
)
def test_text_results_are_output_or_error(
    content: tuple[ContentBlock, ...],
    expected: dict[str, str],
    *,
    is_error: bool,
) -> None:
    """Ours: one shape for text, one for failure; a broken picture is left out."""
    outcome = outcome_of(context().call, ToolResult(content=content, is_error=is_error))

    assert outcome.part.result == expected
    assert (outcome.part.is_error, outcome.part.is_media, outcome.files) == (is_error, False, ())


@pytest.mark.parametrize("is_error", [False, True])
def test_the_first_picture_is_stored_as_a_file(*, is_error: bool) -> None:
    """Ours: bytes go to the file table, the part holds a reference only."""
    content = (TextContent(text="see"), image(), image())
    outcome = outcome_of(context().call, ToolResult(content=content, is_error=is_error))
    (file,) = outcome.files

    assert (file.data, file.media_type) == (b"\x89PNG", "image/png")
    assert outcome.part.result == {"file_id": str(file.id), "mime_type": "image/png", "text": "see"}
    assert (outcome.part.is_media, outcome.part.is_error) == (True, is_error)


@pytest.mark.parametrize(
    "mime_type", ["text/html", "text/javascript", "image/svg+xml", "image/png; charset=x", "", "\n"]
)
def test_what_is_no_picture_is_never_stored_as_one(mime_type: str) -> None:
    """Ours: files are served from the page's own origin; a workspace must not plant scripts there."""
    outcome = outcome_of(context().call, ToolResult(content=(image(mime_type=mime_type),)))

    assert outcome.files == ()
    assert not outcome.part.is_media


@given(
    size=st.integers(0, 3 * MAX_RESULT_CHARACTERS),
    alphabet=st.sampled_from(["abcdefghij", "ä€😀\n", string.digits]),
)
def test_long_text_keeps_head_and_tail_within_the_bound(size: int, alphabet: str) -> None:
    """Spec 6.4: bounded, head and tail kept, a marker tells how much was cut."""
    text = (alphabet * (size // len(alphabet) + 1))[:size]
    outcomes = [
        outcome_of(context().call, ToolResult(content=(TextContent(text=text),))).part.result["output"],
        error_outcome(context().call, text).part.result["error"],
    ]

    for kept in outcomes:
        if size <= MAX_RESULT_CHARACTERS:
            assert kept == text
            continue
        head, rest = kept.split("\n\n[truncated: ")
        number, tail = rest.split(" characters removed; ask for a narrower part]\n\n")
        assert len(kept) <= MAX_RESULT_CHARACTERS
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(number) + len(tail) == size


def test_the_result_part_belongs_to_the_call() -> None:
    """Ours: id and name are the call's own."""
    part = error_outcome(context("broken").call, "x").part

    assert part == ToolResultPart(tool_call_id="c1", tool_name="broken", result={"error": "x"}, is_error=True)
