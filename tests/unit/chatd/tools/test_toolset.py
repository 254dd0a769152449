"""One tool call in, one result out, whatever happens."""

import base64
from uuid import UUID

import pytest

from agentd.wire.content import AudioContent, ContentBlock, ImageContent, TextContent, ToolResult
from chatd.provider.protocol import FunctionTool
from chatd.tools.toolset import (
    CallContext,
    LocalTool,
    Observed,
    ToolOutcome,
    Toolset,
    error_outcome,
    outcome_of,
)
from chatd.wire import ToolCallPart, ToolResultPart

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


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


def test_data_stays_data() -> None:
    """Ours: a result without content is its structure."""
    outcome = outcome_of(context("good").call, ToolResult(structured={"output": "x", "exit_code": 0}))

    assert outcome.part.result == {"output": "x", "exit_code": 0}


async def test_every_result_is_cut_at_one_place() -> None:
    """Spec 2: whichever tool gave it, error or not; its shape stays."""

    async def long(context: CallContext) -> ToolOutcome:
        return outcome_of(
            context.call, ToolResult(structured={"output": "x" * 5_000, "exit_code": 1}, is_error=True)
        )

    outcome = await toolset(run_computer=long, result_bytes=1_000).run(context("computer"))

    assert outcome.part.result["exit_code"] == 1
    assert "truncated: 4256 bytes removed" in outcome.part.result["output"]
    assert len(outcome.part.result["output"]) <= 1_000


async def test_names_that_a_model_makes_up_are_no_labels() -> None:
    """Ours: each would be a series of its own for ever."""
    seen: list[Observed] = []
    tools = toolset(observe=seen.append)
    for name in ("good", "made_up_7", "computer"):
        await tools.run(context(name))

    assert [one.tool for one in seen] == ["good", "", "computer"]


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
        (
            (image("not base64!"), TextContent(text="a")),
            False,
            {"output": "a\n[the tool's picture was left out: its base64 is broken]"},
        ),
    ],
)
def test_text_results_are_output_or_error(
    content: tuple[ContentBlock, ...],
    expected: dict[str, str],
    *,
    is_error: bool,
) -> None:
    """Ours: one shape for text, one for failure; a broken picture is left out, never silently."""
    outcome = outcome_of(context().call, ToolResult(content=content, is_error=is_error))

    assert outcome.part.result == expected
    assert (outcome.part.is_error, outcome.part.is_media, outcome.files) == (is_error, False, ())


@pytest.mark.parametrize("is_error", [False, True])
def test_the_first_picture_is_stored_as_a_file(*, is_error: bool) -> None:
    """Ours: bytes go to the file table, the part holds a reference only; the text says what was left out."""
    content = (TextContent(text="see"), image(), image())
    outcome = outcome_of(context().call, ToolResult(content=content, is_error=is_error))
    (file,) = outcome.files

    assert (file.data, file.media_type) == (base64.b64decode(PNG), "image/png")
    text = "see\n[the first of 2 pictures; the others were left out]"
    assert outcome.part.result == {"file_id": str(file.id), "mime_type": "image/png", "text": text}
    assert (outcome.part.is_media, outcome.part.is_error) == (True, is_error)


def test_sound_is_named() -> None:
    """No vendor takes sound as a result; a model must not think that there was none."""
    sound = AudioContent(data="AAAA", mime_type="audio/wav")
    outcome = outcome_of(context().call, ToolResult(content=(sound,)))

    assert outcome.part.result == {"output": "[audio/wav, 3 bytes: sound can't be shown to a model]"}


@pytest.mark.parametrize(
    "mime_type", ["text/html", "text/javascript", "image/svg+xml", "image/png; charset=x", "", "\n"]
)
def test_what_is_no_picture_is_never_stored_as_one(mime_type: str) -> None:
    """Ours: files are served from the page's own origin; a workspace must not plant scripts there."""
    data = base64.b64encode(b"<svg/>").decode()
    outcome = outcome_of(context().call, ToolResult(content=(image(data, mime_type),)))
    named = outcome_of(context().call, ToolResult(content=(image(mime_type=mime_type),)))

    assert outcome.files == ()
    assert not outcome.part.is_media
    assert "left out" in outcome.part.result["output"]
    assert [file.media_type for file in named.files] == ["image/png"]


def test_the_result_part_belongs_to_the_call() -> None:
    """Ours: id and name are the call's own."""
    part = error_outcome(context("broken").call, "x").part

    assert part == ToolResultPart(tool_call_id="c1", tool_name="broken", result={"error": "x"}, is_error=True)


def shy(name: str, **traits: bool) -> LocalTool:
    """A tool with traits."""

    async def run(context: CallContext) -> ToolOutcome:
        return error_outcome(context.call, "x")

    return LocalTool(definition=FunctionTool(name=name, description="", input_schema={}), run=run, **traits)


def test_a_tool_that_must_be_alone_refuses_all_company() -> None:
    """Vector 86: neither runs, two policy errors; unknown and client tools count as company."""
    tools = Toolset(tools={"advisor": shy("advisor", is_exclusive=True), "read": shy("read")})
    asked = [ToolCallPart(tool_call_id=name, tool_name=name) for name in ("advisor", "read", "client")]
    refused = tools.refuse_company(asked)

    assert [refused[name].part.is_error for name in ("advisor", "read", "client")] == [True] * 3
    assert "advisor must be called alone" in refused["read"].part.result["error"]
    assert tools.refuse_company(asked[:1]) == {}
    assert tools.refuse_company(asked[1:]) == {}


def test_only_success_ends_a_turn() -> None:
    """Spec 1.2, 11: a failed proposal is to be mended, so the model goes on."""
    tools = Toolset(tools={"propose": shy("propose", stops_turn=True), "read": shy("read")})

    def part(name: str, *, is_error: bool = False) -> ToolResultPart:
        return ToolResultPart(tool_call_id="c", tool_name=name, result={}, is_error=is_error)

    assert tools.stops_after([part("read"), part("propose")])
    assert not tools.stops_after([part("propose", is_error=True)])
    assert not tools.stops_after([part("read"), part("gone")])
