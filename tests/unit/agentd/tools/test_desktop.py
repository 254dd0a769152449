"""The computer tool's results, as the model reads them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agentd.acting import Hands
from agentd.desktops import Desktops
from agentd.settings import AgentdSettings
from agentd.tools.desktop import computer_tool, to_tool_result
from agentd.wire.content import ImageContent, TextContent, ToolResult
from agentd.wire.link import ToolCallParams
from computer.errors import StartFailed
from computer.wire import ActionReport, ComputerCall, ComputerResult, ScreenshotData

SHOT = ScreenshotData(
    data="aGVsbG8=",
    model_size=(1280, 800),
    native_size=(1280, 800),
    taken_at=datetime(2026, 1, 1, tzinfo=UTC),
)
CLICK = ActionReport(action="left_click", output="Clicked at (1, 2).", native_point=(1, 2))
DEAF = ActionReport(action="type", output="Typed 2 characters.", warning="the screen did not change")
PICTURE = ImageContent(data="aGVsbG8=", mime_type="image/png")

TABLE: list[tuple[str, ComputerResult, list[TextContent | ImageContent], bool]] = [
    ("nothing", ComputerResult(), [], False),
    ("picture alone", ComputerResult(screenshot=SHOT), [PICTURE], False),
    ("one report", ComputerResult(reports=(CLICK,)), [TextContent(text="Clicked at (1, 2).")], False),
    (
        "warnings come after the reports",
        ComputerResult(reports=(DEAF, CLICK), screenshot=SHOT),
        [
            TextContent(text="Typed 2 characters.\nClicked at (1, 2).\nWarning: the screen did not change"),
            PICTURE,
        ],
        False,
    ),
    (
        "failure comes last, with the picture",
        ComputerResult(reports=(CLICK,), error="it is gone", error_code="display_lost", screenshot=SHOT),
        [TextContent(text="Clicked at (1, 2).\nFailed: it is gone"), PICTURE],
        True,
    ),
    (
        "failure alone",
        ComputerResult(error="(9, 9) is outside", error_code="out_of_bounds"),
        [TextContent(text="Failed: (9, 9) is outside")],
        True,
    ),
]


@pytest.mark.parametrize(
    ("result", "content", "is_error"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_result_becomes_sentences_and_a_picture(
    result: ComputerResult, content: list[TextContent | ImageContent], is_error: bool
) -> None:
    """Ours: sentences first, then the picture."""
    told = to_tool_result(result)

    assert tuple(content) == told.content
    assert is_error == told.is_error


def test_structured_result_is_json_without_the_picture() -> None:
    """Ours: base64 travels once."""
    told = to_tool_result(ComputerResult(reports=(CLICK,), screenshot=SHOT))

    text = json.dumps(told.structured)
    assert SHOT.data not in text
    assert told.structured is not None
    assert told.structured["reports"][0]["native_point"] == [1, 2]
    assert told.structured["screenshot"]["model_size"] == [1280, 800]


def _never(*_: object) -> NoReturn:
    raise AssertionError("no desktop is needed for this")


def _call(arguments: dict[str, Any]) -> ToolCallParams:
    return ToolCallParams(call_id="1", name="computer", arguments=arguments)


def _tool(tmp_path: Path, make: Any = _never) -> Any:
    return computer_tool(Hands(Desktops(AgentdSettings(runtime_dir=tmp_path), make=make)))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"actions": []},
        {"actions": "screenshot"},
        {"actions": [{"action": "explode"}]},
        {"actions": [{"action": "left_click", "coordinate": [1]}]},
        {"actions": [{"action": "screenshot"}] * 101},
        {"actions": [{"action": "screenshot"}], "colour": "red"},
    ],
)
async def test_bad_arguments_are_told_to_the_model_without_a_desktop(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    """Ours: a result to read, not an exception; nothing is started for it."""
    told: ToolResult = await _tool(tmp_path).run(_call(arguments))

    assert told.is_error
    assert isinstance(told.content[0], TextContent)
    assert told.content[0].text


class _Dead:
    async def perform(self, call: ComputerCall) -> ComputerResult:
        """There is no X server."""
        raise StartFailed("Xvnc ended at once")


async def test_desktop_that_does_not_come_up_is_told_to_the_model(tmp_path: Path) -> None:
    """Ours: the model may say so, or do without."""
    request = _call({"actions": [{"action": "screenshot"}]})
    told = await _tool(tmp_path, lambda *_: _Dead()).run(request)

    assert told == ToolResult(
        content=(TextContent(text="Xvnc ended at once"),),
        is_error=True,
        structured={"error": "Xvnc ended at once", "error_code": "start_failed"},
    )


def test_definition_carries_the_schema_of_the_call(tmp_path: Path) -> None:
    """Ours: what the tool checks is what it says."""
    definition = _tool(tmp_path).definition

    assert (definition.name, definition.origin) == ("computer", "desktop")
    assert definition.input_schema == ComputerCall.model_json_schema()
