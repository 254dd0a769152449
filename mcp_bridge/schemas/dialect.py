"""
JSON Schema as written over the years, as the 2020-12 that vendors check against.

Keywords of draft 4 to 7 become their successors; what has no meaning in any dialect is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_bridge.errors import SchemaUnusable

__all__ = ["MAX_DEPTH", "SCHEMA_LISTS", "SCHEMA_MAPS", "SINGLE_SCHEMAS", "modernize"]

# Levels of schemas within schemas; vendors refuse far fewer, and recursion must end.
MAX_DEPTH = 48

# Keywords whose value is a schema, a list of schemas, a map from names to schemas.
SINGLE_SCHEMAS = frozenset(
    {
        "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema",
    }
)  # fmt: skip
SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
# Where a document says which dialect it is in, and where it lies; neither is true after the change.
DROPPED = frozenset({"$schema", "$id", "id", "$vocabulary", "$comment"})
TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and float(value) >= 0 and float(value).is_integer()  # type: ignore[arg-type]


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_type(value: object) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)


# What a keyword's value must be; keywords not named here are annotations or unknown, and stay.
VALUES: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    "enum": _is_list,
    "examples": _is_list,
    "required": _is_names,
    "title": _is_text,
    "description": _is_text,
    "pattern": _is_text,
    "format": _is_text,
    "$ref": _is_text,
    "$anchor": _is_text,
    "$dynamicRef": _is_text,
    "$dynamicAnchor": _is_text,
    "minimum": _is_number,
    "maximum": _is_number,
    "exclusiveMinimum": _is_number,
    "exclusiveMaximum": _is_number,
    "multipleOf": lambda value: _is_number(value) and float(value) > 0,  # type: ignore[arg-type]
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "minContains": _is_count,
    "maxContains": _is_count,
    "uniqueItems": _is_flag,
    "deprecated": _is_flag,
    "readOnly": _is_flag,
    "writeOnly": _is_flag,
}


def modernize(schema: dict[str, Any]) -> dict[str, Any]:
    """
    A copy of *schema* in 2020-12, with items on every array.

    Raises:
        SchemaUnusable: a keyword's value makes no sense, or it is too deep.
    """
    return _object(schema, 0)


def _any(schema: object, depth: int) -> Any:  # noqa: ANN401 -- a schema: an object, true or false
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise SchemaUnusable("its input schema holds something that is no schema")
    return _object(schema, depth)


def _object(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise SchemaUnusable(f"its input schema is deeper than {MAX_DEPTH} levels")
    renewed = _renewed({key: value for key, value in schema.items() if key not in DROPPED})
    result = {key: _value(key, value, depth) for key, value in renewed.items()}
    kinds = result.get("type")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        result.setdefault("items", {})
    return result


def _renewed(schema: dict[str, Any]) -> dict[str, Any]:
    """Keywords of older drafts as their successors; null, which some generators write, as nothing."""
    schema = {key: value for key, value in schema.items() if value is not None or key in {"const", "default"}}
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    schema.pop("additionalItems", None)
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and plain in schema:
            schema[exclusive] = schema.pop(plain)
    if isinstance(schema.get("required"), bool):
        # Draft 3, on the property itself: the object's own list is what counts.
        del schema["required"]
    return _without_dependencies(schema)


def _without_dependencies(schema: dict[str, Any]) -> dict[str, Any]:
    dependencies = schema.pop("dependencies", None)
    if isinstance(dependencies, dict):
        for name, value in dependencies.items():
            keyword = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
            schema[keyword] = {**schema.get(keyword, {}), name: value}
    for keyword in ("prefixItems", "allOf", "anyOf", "oneOf"):
        if schema.get(keyword) == []:
            del schema[keyword]
    return schema


def _value(key: str, value: object, depth: int) -> Any:  # noqa: ANN401 -- JSON
    if key in SINGLE_SCHEMAS:
        return _any(value, depth + 1)
    if key in SCHEMA_LISTS:
        if not isinstance(value, list):
            raise SchemaUnusable(f"{key} in its input schema is no list")
        return [_any(item, depth + 1) for item in value]
    if key in SCHEMA_MAPS:
        if not isinstance(value, dict):
            raise SchemaUnusable(f"{key} in its input schema is no object")
        return {name: _any(item, depth + 1) for name, item in value.items()}
    check = VALUES.get(key)
    if check is not None and not check(value):
        raise SchemaUnusable(f"{key} in its input schema has a value that it can't have")
    return list(dict.fromkeys(value)) if key == "required" and isinstance(value, list) else value
