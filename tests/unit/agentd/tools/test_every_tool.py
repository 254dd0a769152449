"""What holds of every tool of a workspace, whichever it is."""

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from agentd.tools.registry import Registry
from agentd.wire.link import ToolCallParams

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "tools.md"
NONSENSE: list[dict[str, Any]] = [
    {"no_such_argument": 1},
    {"path": 5, "command": [], "actions": "x", "process_id": {}, "edits": 7, "action": None},
    {"path": "\x00", "command": "\x00", "actions": [{}], "process_id": "", "edits": [{}], "action": "dance"},
]


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """Those of a daemon that was not started."""
    return Daemon(AgentdSettings(runtime_dir=tmp_path / "run", data_dir=tmp_path / "data")).registry


def test_every_tool_has_a_schema_a_name_that_vendors_take_and_a_place_in_the_reference(
    registry: Registry,
) -> None:
    """The issue: JSON Schema, and a row in docs/reference/tools.md."""
    text = DOCUMENT.read_text()
    for definition in registry.definitions():
        Draft202012Validator.check_schema(definition.input_schema)
        assert definition.input_schema["type"] == "object"
        assert definition.input_schema["additionalProperties"] is False, definition.name
        assert definition.description
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", definition.name)
        assert f"## `{definition.name}`" in text


@pytest.mark.parametrize("arguments", NONSENSE)
async def test_nonsense_is_answered_with_an_error_result(
    registry: Registry, arguments: dict[str, Any]
) -> None:
    """The issue: error results instead of exceptions; nothing is started for them."""
    for definition in registry.definitions():
        call = ToolCallParams(call_id="1", name=definition.name, arguments=arguments)
        result = await registry.get(definition.name).run(call)

        assert result.is_error, definition.name
        assert result.content, definition.name
