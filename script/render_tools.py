"""Write docs/reference/tools.md from the tools that chats and MCP clients have; ``--check`` only compares."""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import mcp_types as types

from agentd.app import Daemon
from agentd.mcp_server.resources import RESOURCES
from agentd.settings import AgentdSettings
from agentd.wire.content import ToolDefinition
from chatd.provider.catalog import Catalog
from chatd.provider.protocol import FunctionTool
from chatd.store.store import Store
from chatd.stream.hub import Hub
from chatd.tools.advisor import ADVISOR
from chatd.tools.attach import ATTACH_FILE
from chatd.tools.offering import by_name
from chatd.tools.plans import PROPOSE_PLAN
from chatd.tools.questions import ASK_USER_QUESTION
from chatd.tools.skills import SKILL_TOOLS
from chatd.tools.steering import SteeringTools
from chatd.tools.subagents import SubagentTools
from chatd.tools.toolset import Toolset
from chatd.wire import Chat

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "tools.md"
HEAD = """# Tools

What a chat's model may call, beside the tools of MCP servers and those that a client declares.
Made from the code by `script/render_tools.py`.
A failure is a result that the model reads; a long result is cut in its middle, by the model's window.
"""


SERVED = """# The desktop as an MCP server

What other MCP clients may call (`agentd mcp serve`, `/mcp`): the main desktop, under all leases and limits.
With `AGENTD_MCP_SERVE=desktop,files` the workspace's other tools above as well.
"""


async def _workspace_tools() -> tuple[tuple[ToolDefinition, ...], list[types.Tool]]:
    """Those of chats, and those that MCP clients are served."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        daemon = Daemon(AgentdSettings(runtime_dir=home / "run", data_dir=home / "data"))
        return daemon.registry.definitions(), [tool.definition for tool in daemon.mcp_tools.values()]


def _control_tools() -> list[FunctionTool]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    chat = Chat(
        id=UUID(int=0), owner_id=UUID(int=0), title="", status="waiting", root_chat_id=UUID(int=0),
        last_model_config_id=UUID(int=0), created_at=now, updated_at=now,
    )  # fmt: skip
    store = cast("Store", None)
    tools = SubagentTools(
        chat, store=store, catalog=cast("Catalog", None), hub=Hub(), wait_timeout_s=0
    ).tools()
    tools += SteeringTools(chat, store=store).tools()
    return [
        *Toolset(tools=by_name(tools)).definitions(),
        PROPOSE_PLAN,
        ASK_USER_QUESTION,
        ATTACH_FILE,
        ADVISOR,
        *SKILL_TOOLS,
    ]


def _type(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    if "$ref" in schema:
        schema = {**defs[schema["$ref"].rpartition("/")[2]], **schema}
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [_type(part, defs) for part in schema.get("anyOf") or schema["oneOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if schema.get("type") == "array":
        items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_type(items, defs)}"
    return str(schema.get("type", "any"))


LIMITS = {
    "minimum": "≥ {}", "maximum": "≤ {}", "exclusiveMinimum": "> {}", "minLength": "at least {} characters",
    "maxLength": "at most {} characters", "minItems": "at least {}", "maxItems": "at most {}",
}  # fmt: skip


def _notes(schema: dict[str, Any]) -> str:
    parts = [schema, *(part for part in schema.get("anyOf", ()) if part.get("type") != "null")]
    limits = [
        words.format(f"{part[name]:,}") for part in parts for name, words in LIMITS.items() if name in part
    ]
    default = schema.get("default")
    told = [f"default `{default}`"] if default not in (None, [], {}, ()) else []
    description = schema.get("description", "").rstrip(".")
    return "; ".join([text for text in (description, ", ".join(limits + told)) if text])


def _rows(schema: dict[str, Any]) -> Iterator[str]:
    defs, required = schema.get("$defs", {}), schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        mark = "" if name in required else " (optional)"
        yield f"| `{name}`{mark} | {_type(field, defs)} | {_notes(field)} |".replace("\n", " ")


def _actions(schema: dict[str, Any]) -> Iterator[str]:
    """What the computer does: each action with its fields."""
    defs = schema["$defs"]
    for model in defs.values():
        action = model.get("properties", {}).get("action")
        if action is None:
            continue
        fields = [f"`{name}`" for name in model["properties"] if name != "action"]
        what = model.get("description", "").replace("\n", " ")
        yield f"| {_type(action, defs)} | {', '.join(fields) or '-'} | {what} |"


def _section(tool: ToolDefinition | FunctionTool, where: str) -> str:
    lines = [f"## `{tool.name}`", "", f"{where}. {' '.join(tool.description.split())}", ""]
    rows = list(_rows(tool.input_schema))
    if rows:
        lines += ["| argument | type | |", "|---|---|---|", *rows, ""]
    if tool.name == "computer":
        lines += ["| action | fields | |", "|---|---|---|", *_actions(tool.input_schema), ""]
    timeout_s = getattr(tool, "timeout_s", None)
    if timeout_s is not None:
        lines += [f"Takes {timeout_s:,.0f} s at most.", ""]
    return "\n".join(lines)


def _served(tools: list[types.Tool]) -> str:
    """Tools and resources of the MCP server; `computer` is told above."""
    lines = [SERVED, "## Tools", ""]
    for tool in tools:
        text = " ".join((tool.description or "").split())
        lines += [f"### `{tool.name}`", "", text if tool.name != "computer" else "As for chats, above.", ""]
        rows = list(_rows(tool.input_schema)) if tool.name != "computer" else []
        if rows:
            lines += ["| argument | type | |", "|---|---|---|", *rows, ""]
    lines += ["## Resources", "", "| address | type | |", "|---|---|---|"]
    lines += [
        f"| `{each.uri}` | `{each.mime_type}` | {each.title}. {each.description} |" for each in RESOURCES
    ]
    return "\n".join([*lines, ""])


def render() -> str:
    """The whole document."""
    workspace, served = asyncio.run(_workspace_tools())
    sections = [_section(tool, "In the workspace") for tool in workspace]
    sections += [_section(tool, "In the control plane") for tool in _control_tools()]
    return HEAD + "\n" + "\n".join([*sections, _served(served)])


def main(arguments: list[str]) -> int:
    """Write it, or say that it is out of date."""
    fresh = render()
    if "--check" in arguments:
        return 0 if DOCUMENT.read_text() == fresh else 1
    DOCUMENT.write_text(fresh)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
