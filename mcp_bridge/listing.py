"""
Tools as a server lists them: what can be offered, and why the rest can't.

One bad tool never costs the others.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_bridge.errors import SchemaUnusable
from mcp_bridge.naming import offered_name
from mcp_bridge.schemas import OfferedSchema, offer_schema
from mcp_bridge.wire import BridgedTool, RejectedTool

__all__ = ["MAX_TOOLS", "Listing", "OfferedTool", "read_tools", "readable_entries"]

# Tools of one server. Vendors take 128 functions and fewer; a thousand is a mistake or an attack.
MAX_TOOLS = 1_000
# Reasons kept for people; of 10,000 tools each is too many.
MAX_REJECTED = 50
# Bytes of all schemas of one server.
MAX_TOTAL_BYTES = 2 * 1024 * 1024
# Characters of a description; OpenAI's limit, and what follows goes into the schema.
MAX_DESCRIPTION = 1_024
MAX_WHOLE_DESCRIPTION = 16_384
# Characters of a tool's own name; MCP recommends 128.
MAX_NAME = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool as offered, and how its arguments go back."""

    tool: BridgedTool
    schema: OfferedSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What one server has."""

    tools: tuple[OfferedTool, ...] = ()
    rejected: tuple[RejectedTool, ...] = ()


def readable_entries(entries: Sequence[object]) -> tuple[list[dict[str, Any]], list[RejectedTool]]:
    """Entries of ``tools/list`` that have a name and a schema; why the others have not."""
    kept: list[dict[str, Any]] = []
    rejected: list[RejectedTool] = []
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            rejected.append(RejectedTool(tool=str(name)[:MAX_NAME], reason="it has no usable name"))
            continue
        schema = entry.get("inputSchema")
        schema = {} if schema is None or schema is True else schema
        if not isinstance(schema, dict):
            rejected.append(RejectedTool(tool=name, reason="its input schema is no object"))
            continue
        kept.append({**entry, "inputSchema": schema})
    return kept, rejected


def read_tools(server: str, entries: Iterable[dict[str, Any]], rejected: Sequence[RejectedTool]) -> Listing:
    """
    Offer a server's tools under legal names with legal schemas.

    *entries* have a name and a schema each, in the server's order; *rejected* were refused before.
    """
    tools: dict[str, OfferedTool] = {}
    refused = list(rejected)
    seen: set[str] = set()
    room = MAX_TOTAL_BYTES
    for entry in entries:
        name = entry["name"]
        try:
            _check_place(name, seen, len(tools))
            schema = offer_schema(entry["inputSchema"])
            room = _fill(room, schema.schema)
        except SchemaUnusable as exc:
            refused.append(RejectedTool(tool=name[:MAX_NAME], reason=str(exc)))
            continue
        seen.add(name)
        tool = _bridged(server, entry, schema, taken=tools)
        tools[tool.tool.name] = tool
    return Listing(tools=tuple(tools.values()), rejected=_few(refused))


def _check_place(name: str, seen: set[str], count: int) -> None:
    if name in seen:
        raise SchemaUnusable("the server lists this name twice; the first counts")
    if count >= MAX_TOOLS:
        raise SchemaUnusable(f"the server has more than {MAX_TOOLS:,} tools")


def _fill(room: int, schema: dict[str, Any]) -> int:
    left = room - len(json.dumps(schema))
    if left < 0:
        raise SchemaUnusable(f"this server's input schemas have more than {MAX_TOTAL_BYTES:,} bytes")
    return left


def _bridged(
    server: str, entry: dict[str, Any], offered: OfferedSchema, *, taken: dict[str, OfferedTool]
) -> OfferedTool:
    notes = entry.get("annotations")
    notes = notes if isinstance(notes, dict) else {}
    read_only = notes.get("readOnlyHint")
    description, schema = _described(_words(entry.get("description")), offered.schema)
    tool = BridgedTool(
        name=offered_name(server, entry["name"], taken),
        server=server,
        tool=entry["name"],
        title=_words(entry.get("title") or notes.get("title")) or None,
        description=description,
        input_schema=schema,
        read_only=read_only if isinstance(read_only, bool) else None,
    )
    return OfferedTool(tool=tool, schema=offered)


def _described(text: str, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What does not fit into the description goes on in the schema's own, which has no limit."""
    if len(text) <= MAX_DESCRIPTION:
        return text, schema
    cut = text.rfind(" ", 0, MAX_DESCRIPTION - 1)
    cut = cut if cut > MAX_DESCRIPTION // 2 else MAX_DESCRIPTION - 1
    rest = text[cut:MAX_WHOLE_DESCRIPTION].strip()
    own = schema.get("description")
    return f"{text[:cut]}…", {**schema, "description": f"…{rest}\n{own}" if own else f"…{rest}"}


def _words(value: object) -> str:
    return value.encode(errors="replace").decode().strip() if isinstance(value, str) else ""


def _few(rejected: list[RejectedTool]) -> tuple[RejectedTool, ...]:
    if len(rejected) <= MAX_REJECTED:
        return tuple(rejected)
    more = len(rejected) - MAX_REJECTED
    note = RejectedTool(tool=f"{more:,} more", reason=rejected[-1].reason)
    return (*rejected[:MAX_REJECTED], note)
