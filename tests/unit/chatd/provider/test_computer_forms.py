"""The computer's forms, by the installed SDKs' own types: a version that adds an action fails here."""

import importlib
from dataclasses import replace
from types import ModuleType
from typing import Any, get_args

import pytest
from anthropic.types import AnthropicBetaParam, ComputerMemberName
from anthropic.types.beta import BetaComputerToolset20260801, BetaComputerToolsetConfigs
from openai.types.responses import ComputerAction, ComputerTool, ComputerUsePreviewTool
from openai.types.responses import computer_action as openai_actions
from pydantic import BaseModel

from chatd.provider import anthropic_prompt, openai_responses_prompt
from chatd.provider.computer_forms import FORMS, ComputerForm, anthropic_form, is_preview_model
from chatd.provider.computer_map_anthropic import canonical_from_anthropic
from chatd.provider.computer_map_openai import canonical_from_openai
from chatd.provider.protocol import ComputerSpec, ModelRequest, PromptMessage
from chatd.wire import ToolCallPart, ToolResultPart
from computer.wire import ComputerCall

SIZE = (1280, 800)
COMPUTER = ComputerSpec(model_size=SIZE, description="d", input_schema={})
MEMBERS = get_args(ComputerMemberName)
# A value of each field that the vendors' actions have.
VALUES: dict[str, Any] = {
    "coordinate": [0, 0], "start_coordinate": [5, 5], "region": [0, 0, 10, 10], "text": "a", "duration": 1,
    "scroll_direction": "down", "scroll_amount": 2, "repeat": 2,
}  # fmt: skip
OPENAI_VALUES: dict[str, Any] = {
    "x": 0, "y": 0, "button": "left", "keys": ["SHIFT"], "path": [{"x": 0, "y": 0}, {"x": 1, "y": 1}],
    "scroll_x": 0, "scroll_y": 100, "text": "a",
}  # fmt: skip


def _anthropic_input(name: str) -> type[BaseModel]:
    module: ModuleType = importlib.import_module(f"anthropic.types.computer_{name}_input")
    found = next(v for k, v in vars(module).items() if k.startswith("Computer") and k.endswith("Input"))
    assert issubclass(found, BaseModel)
    return found


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_anthropics_toolset_is_understood(name: str) -> None:
    """Issue: each with all its fields; (0, 0) is a point, seconds are seconds."""
    fields = set(_anthropic_input(name).model_fields)
    assert fields <= set(VALUES), "a field that the table does not know"
    mapped = canonical_from_anthropic(name, {field: VALUES[field] for field in fields}, SIZE)

    assert mapped.invalid is None
    for action in mapped.args["actions"]:
        if "coordinate" in fields:
            assert action["coordinate"] == [0, 0]
        if "duration" in fields:
            assert action["duration_ms"] == 1_000


# Fields of the vendor's tools that say nothing here: which display, whose calls, when it is loaded.
_UNUSED = {
    "allowed_callers", "cache_control", "defer_loading", "display_number", "input_examples", "strict",
}  # fmt: skip


def _tool(form: ComputerForm, **schema: Any) -> dict[str, Any]:
    computer = replace(COMPUTER, input_schema=schema)
    request = ModelRequest(model="m", system="", messages=(), computer=computer)
    (tool,) = anthropic_prompt.build_tools(request, form)
    return tool


def test_what_the_desktop_cannot_do_is_switched_off() -> None:
    """Issue: by the schema of the workspace's daemon; ours can do everything."""
    schema = ComputerCall.model_json_schema()
    older = {name: kind for name, kind in schema["$defs"].items() if name not in {"Zoom", "HoldKey"}}
    off = {"enabled": False}

    for told in (schema, {}, {"$defs": {"Other": {"properties": {}}, "Any": True}}):
        assert set(_tool("toolset", **told)) == {"type"}
    assert _tool("toolset", **{"$defs": older})["configs"] == {"hold_key": off, "zoom": off}
    BetaComputerToolset20260801.model_validate(_tool("toolset", **{"$defs": older}), strict=True)
    assert [_tool("single", **one)["enable_zoom"] for one in (schema, {"$defs": older})] == [True, False]


def test_the_forms_are_those_of_the_installed_sdk() -> None:
    """Issue: types, fields and headers letter by letter, every member in the newest."""
    assert FORMS["toolset"].actions == set(MEMBERS) == set(BetaComputerToolsetConfigs.model_fields)
    fields = BetaComputerToolset20260801.model_fields
    assert get_args(fields["type"].annotation) == (FORMS["toolset"].type,)
    # Cache marks stand on messages; members are loaded at once.
    assert set(fields) == {"type", "configs", "cache_control"}
    for config in BetaComputerToolsetConfigs.model_fields.values():
        (kind, _) = get_args(config.annotation)
        assert set(kind.model_fields) == {"enabled", "defer_loading"}
    for form, version in (("single", "20251124"), ("20250124", "20250124"), ("20241022", "20241022")):
        module = importlib.import_module(f"anthropic.types.beta.beta_tool_computer_use_{version}")
        tool = getattr(module, f"BetaToolComputerUse{version}")
        assert get_args(tool.model_fields["type"].annotation) == (FORMS[form].type,)  # type: ignore[index]
        assert set(tool.model_fields) - _UNUSED == set(_tool(form))  # type: ignore[arg-type]
        headers = [value for option in get_args(AnthropicBetaParam) for value in get_args(option)]
        assert FORMS[form].beta in headers  # type: ignore[index]


@pytest.mark.parametrize("form", list(FORMS))
def test_a_tool_is_written_as_its_version_wants(form: ComputerForm) -> None:
    """Issue: zoom only where there is one; the toolset has no size."""
    tool = _tool(form)

    assert tool["type"] == FORMS[form].type
    assert ("enable_zoom" in tool) == (form == "single")
    assert ("display_width_px" in tool) == (form != "toolset")


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("claude-3-5-sonnet-20241022", "20241022"),
        ("claude-3-7-sonnet-latest", "20250124"),
        ("claude-opus-4-20250514", "20250124"),
        ("claude-opus-4-1-20250805", "20250124"),
        ("claude-sonnet-4-5", "20250124"),
        ("claude-haiku-4-5-20251001", "20250124"),
        ("claude-opus-4-5", "single"),
        ("claude-opus-4-8", "single"),
        ("claude-sonnet-4-6", "single"),
        ("claude-opus-5-5", "toolset"),
        ("claude-fable-5", "toolset"),
        ("rehearsal", "toolset"),
    ],
)
def test_each_model_gets_the_form_that_it_takes(model: str, form: str) -> None:
    """Issue: by name; what is newer than the table gets the newest."""
    assert anthropic_form(model) == form


def _turn(action: dict[str, Any]) -> tuple[PromptMessage, ...]:
    call = ToolCallPart(tool_call_id="c", tool_name="computer", args={"actions": [action]})
    picture = {"data": "iVBORw0K", "mime_type": "image/png", "text": ""}
    result = ToolResultPart(tool_call_id="c", tool_name="computer", result=picture, is_media=True)
    return (
        PromptMessage(role="assistant", content=(call,)),
        PromptMessage(role="tool", content=(result,)),
    )


def test_an_action_that_a_version_lacks_is_told_in_prose() -> None:
    """Issue: a history of a newer model must not teach an older one what it can't do."""
    messages = _turn({"action": "zoom", "region": [0, 0, 9, 9]})
    request = ModelRequest(model="m", system="", messages=messages, computer=COMPUTER)
    kinds = {form: anthropic_prompt.build_messages(request, form)[0]["content"][0]["type"] for form in FORMS}

    assert kinds == {"toolset": "tool_use", "single": "tool_use", "20250124": "text", "20241022": "text"}


OPENAI = list(get_args(get_args(ComputerAction)[0]))


@pytest.mark.parametrize("kind", OPENAI, ids=lambda kind: kind.__name__)
def test_every_action_of_openai_is_understood(kind: type[BaseModel]) -> None:
    """Issue: each with all its fields; pixels are not notches."""
    fields = set(kind.model_fields) - {"type"}
    assert fields <= set(OPENAI_VALUES), "a field that the table does not know"
    (name,) = get_args(kind.model_fields["type"].annotation)
    given = {"type": name} | {field: OPENAI_VALUES[field] for field in fields}
    mapped = canonical_from_openai({"actions": [given]}, SIZE)

    assert mapped.invalid is None
    if name == "scroll":
        assert mapped.args["actions"][0]["scroll_amount"] == 1
    assert {kind.__name__ for kind in OPENAI} < set(openai_actions.__all__)


def test_the_preview_has_a_size_and_one_action_at_a_time() -> None:
    """Issue: ``computer`` and ``computer_use_preview``, each in its own form."""
    messages = _turn({"action": "left_click", "coordinate": [0, 0]})
    new, old = (
        ModelRequest(model=model, system="", messages=messages, computer=COMPUTER)
        for model in ("gpt-5.5", "computer-use-preview-2025-03-11")
    )
    (tool,), (preview,) = openai_responses_prompt.build_tools(new), openai_responses_prompt.build_tools(old)
    calls = [openai_responses_prompt.build_input(request)[0] for request in (new, old)]

    ComputerTool.model_validate(tool)
    ComputerUsePreviewTool.model_validate(preview)
    assert (preview["display_width"], preview["display_height"]) == SIZE
    assert ("actions" in calls[0], "action" in calls[0]) == (True, False)
    assert ("actions" in calls[1], calls[1]["action"]["type"]) == (False, "click")
    assert [is_preview_model(name) for name in ("gpt-5.5", "computer-use-preview")] == [False, True]
