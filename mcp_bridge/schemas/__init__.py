"""
A tool's input schema in a form that every model vendor takes, and arguments on the way back.

Nothing is dropped that means something. What vendors refuse at the top of a schema
(alternatives, odd property names) is wrapped into one property, and unwrapped again when the
model calls. A schema that can't be offered without changing its meaning is refused, with a reason.

Source: Anthropic: JSON Schema 2020-12, top level an object without oneOf, anyOf, allOf, property
names ``^[a-zA-Z0-9_.-]{1,64}$``. OpenAI: besides, no enum or not at the top level, properties must
be there, arrays must have items. Google: besides, no reference that leads nowhere.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bridge.errors import SchemaUnusable
from mcp_bridge.schemas.dialect import modernize
from mcp_bridge.schemas.references import check_references, inline_top, moved_below

__all__ = ["MAX_SCHEMA_BYTES", "WRAPPER", "OfferedSchema", "offer_schema"]

# Bytes of one schema as JSON, about 16,000 tokens; a larger one would fill a model's window.
MAX_SCHEMA_BYTES = 65_536
# The property that holds what can't be at the top level.
WRAPPER = "arguments"
# Keywords that some vendor refuses at the top level.
NOT_ON_TOP = ("oneOf", "anyOf", "allOf", "enum", "const", "not", "if", "then", "else", "$ref")
DEFINITIONS = ("$defs", "definitions")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedSchema:
    """What models see; *is_wrapped*: the real arguments are the value of ``WRAPPER``."""

    schema: dict[str, Any]
    is_wrapped: bool = False

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The server's arguments for what a model gave; a model that forgot the wrapper is understood."""
        if not self.is_wrapped:
            return dict(arguments)
        inner = arguments.get(WRAPPER)
        return dict(inner) if isinstance(inner, dict) and len(arguments) == 1 else dict(arguments)


def offer_schema(raw: object) -> OfferedSchema:
    """
    Make a server's input schema legal everywhere.

    Args:
        raw: as the server sent it, whatever it is.

    Raises:
        SchemaUnusable: it can't be offered; says why.
    """
    if raw is None or raw is True:
        raw = {}
    if not isinstance(raw, dict):
        raise SchemaUnusable("its input schema is no object")
    _check_size(raw)
    schema = modernize(raw)
    check_references(schema)
    schema = inline_top(schema)
    schema = _with_type(schema)
    schema.setdefault("properties", {})
    if _must_wrap(schema):
        return OfferedSchema(schema=_wrapped(schema), is_wrapped=True)
    return OfferedSchema(schema=schema)


def _check_size(raw: dict[str, Any]) -> None:
    try:
        size = len(json.dumps(raw, ensure_ascii=False, allow_nan=False).encode(errors="replace"))
    except (ValueError, TypeError, RecursionError) as exc:
        raise SchemaUnusable("its input schema is no JSON, or too deep") from exc
    if size > MAX_SCHEMA_BYTES:
        msg = f"its input schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are offered"
        raise SchemaUnusable(msg)


def _with_type(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments are an object, whether the schema says so or not."""
    kind = schema.get("type", "object")
    kinds = kind if isinstance(kind, list) else [kind]
    if "object" not in kinds:
        raise SchemaUnusable(f"its input schema wants {', '.join(kinds)}; a call's arguments are an object")
    return {"type": "object", **{key: value for key, value in schema.items() if key != "type"}}


def _must_wrap(schema: dict[str, Any]) -> bool:
    if any(keyword in schema for keyword in NOT_ON_TOP):
        return True
    return not all(_PROPERTY.fullmatch(name) for name in schema["properties"])


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = moved_below(schema, WRAPPER)
    hoisted = {key: inner.pop(key) for key in DEFINITIONS if key in inner}
    return {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER], **hoisted}
