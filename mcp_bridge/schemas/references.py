"""References within one schema: that each leads somewhere, and that they follow when it is moved."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from mcp_bridge.errors import SchemaUnusable
from mcp_bridge.schemas.dialect import SCHEMA_LISTS, SCHEMA_MAPS, SINGLE_SCHEMAS

__all__ = ["check_references", "inline_top", "moved_below"]

# Definitions stay at the top wherever the rest goes.
_STAY = ("#/$defs/", "#/definitions/")
# Keywords beside a top-level reference that don't change what it means.
_HARMLESS = frozenset({"$ref", "$defs", "definitions", "title", "description"})


def check_references(schema: dict[str, Any]) -> None:
    """
    See that every reference leads to a schema in this document, and not only to itself.

    Raises:
        SchemaUnusable: one does not.
    """
    for node in _nodes(schema):
        if "$dynamicRef" in node:
            raise SchemaUnusable("its input schema has a $dynamicRef, which vendors don't know")
        if "$ref" in node:
            _follow(schema, node["$ref"])


def _follow(schema: dict[str, Any], reference: str) -> dict[str, Any]:
    """What *reference* leads to, through further references."""
    seen = set()
    while True:
        if reference in seen:
            raise SchemaUnusable(f"the reference {reference[:100]!r} in its input schema leads to itself")
        seen.add(reference)
        target = _target(schema, reference)
        # A node with more than a reference is a schema of its own; at the root it is what is asked for.
        if not isinstance(target, dict) or "$ref" not in target or set(target) - _HARMLESS:
            return target if isinstance(target, dict) else {}
        reference = target["$ref"]


def _target(schema: dict[str, Any], reference: str) -> object:
    if reference == "#":
        return schema
    node: object = schema
    if not reference.startswith("#/"):
        raise SchemaUnusable(f"the reference {reference[:100]!r} in its input schema leads out of it")
    for step in reference[2:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise SchemaUnusable(f"the reference {reference[:100]!r} in its input schema leads nowhere")
    if not isinstance(node, dict | bool):
        raise SchemaUnusable(f"the reference {reference[:100]!r} in its input schema leads to no schema")
    return node


def inline_top(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that is only a reference to one of its definitions, as that definition."""
    if "$ref" not in schema or set(schema) - _HARMLESS:
        return schema
    kept = {key: value for key, value in schema.items() if key != "$ref"}
    return {**_follow(schema, schema["$ref"]), **kept}


def moved_below(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """*schema* as it must read when it is the property *name*; definitions are referred to at the top."""

    def moved(reference: str) -> str:
        if reference.startswith(_STAY):
            return reference
        return f"#/properties/{name}{reference[1:]}"

    return _mapped(schema, moved)


def _mapped(node: dict[str, Any], moved: Callable[[str], str]) -> dict[str, Any]:
    def one(value: Any) -> Any:  # noqa: ANN401 -- a schema
        return _mapped(value, moved) if isinstance(value, dict) else value

    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref":
            result[key] = moved(value)
        elif key in SINGLE_SCHEMAS:
            result[key] = one(value)
        elif key in SCHEMA_LISTS:
            result[key] = [one(item) for item in value]
        elif key in SCHEMA_MAPS:
            result[key] = {name: one(item) for name, item in value.items()}
        else:
            result[key] = value
    return result


def _nodes(node: object) -> Iterator[dict[str, Any]]:
    if not isinstance(node, dict):
        return
    yield node
    for key, value in node.items():
        if key in SINGLE_SCHEMAS:
            yield from _nodes(value)
        elif key in SCHEMA_LISTS:
            for item in value:
                yield from _nodes(item)
        elif key in SCHEMA_MAPS:
            for item in value.values():
                yield from _nodes(item)
