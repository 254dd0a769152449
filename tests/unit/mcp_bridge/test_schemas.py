"""Offered schemas: legal for every vendor, meaning the same, and arguments on the way back."""

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.errors import SchemaUnusable
from mcp_bridge.schemas import MAX_SCHEMA_BYTES, WRAPPER, offer_schema

TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
# Schemas that servers in the field send, and arguments they take and refuse.
FIELD: dict[str, tuple[Any, dict[str, Any], dict[str, Any] | None]] = {
    "nothing": ({}, {"a": 1}, None),
    "no type": ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": 1}),
    "empty properties": ({"type": "object", "properties": {}}, {}, None),
    "definitions": (
        {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": TREE}},
        {"root": {"children": [{"children": []}]}},
        {"root": {"children": [1]}},
    ),
    "one of on top": (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1},
        {"a": 1, "b": 2},
    ),
    "any of on top, with definitions": (
        {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/definitions/b"}],
         "$defs": {"a": {"type": "object", "required": ["a"]}},
         "definitions": {"b": {"type": "object", "required": ["b"]}}},
        {"b": 1},
        {"c": 1},
    ),
    "reference on top": (
        {"$ref": "#/definitions/args",
         "definitions": {"args": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
        {"n": 1},
        {"n": "x"},
    ),
    "itself": (
        {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}},
         "not": {"required": ["x"]}},
        {"next": {"next": {"v": 1}}},
        {"next": {"x": 1}},
    ),
    "odd property names": (
        {"type": "object", "properties": {"a b": {"type": "integer"}, "$ref": {"type": "string"}},
         "required": ["a b"]},
        {"a b": 1, "$ref": "x"},
        {"a b": "x"},
    ),
    "draft 7 tuple": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
         "properties": {"p": {"type": "array", "items": [{"type": "integer"}], "additionalItems": False}}},
        {"p": [1]},
        {"p": [1, 2]},
    ),
    "draft 4 bounds": (
        {"type": "object", "properties": {"n": {"minimum": 3, "exclusiveMinimum": True, "type": "number"}}},
        {"n": 4},
        {"n": 3},
    ),
    "array without items": ({"properties": {"l": {"type": "array"}}}, {"l": [1, "a"]}, {"l": 1}),
    "dependencies": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"]}},
        {"a": 1, "b": 1},
        {"a": 1},
    ),
    "nulls of a generator": (
        {"type": "object", "properties": None, "required": None, "description": None},
        {"x": 1},
        None,
    ),
    "nullable on top": (
        {"type": ["object", "null"], "properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": 1}
    ),
    "additional": ({"type": "object", "additionalProperties": {"type": "integer"}}, {"z": 1}, {"z": "x"}),
}  # fmt: skip


def _anthropic(schema: dict[str, Any]) -> None:
    """2020-12, an object on top without alternatives, property names of a small alphabet."""
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & set(schema)
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"])


def _openai(schema: dict[str, Any]) -> None:
    """Besides, no enum or not on top, properties is an object, every array has items."""
    assert schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema)
    assert isinstance(schema["properties"], dict)
    for node in _walk(schema):
        assert node.get("type") != "array" or isinstance(node["items"], dict | bool)


def _google(schema: dict[str, Any]) -> None:
    """Besides, a reference leads to a definition of the document."""
    for node in _walk(schema):
        if isinstance(node.get("$ref"), str):
            found: Any = schema
            for step in node["$ref"].removeprefix("#").split("/")[1:]:
                found = found[step]


VENDORS = {"anthropic": _anthropic, "openai": _openai, "google": _google}


def _walk(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("case", FIELD)
def test_every_vendor_takes_what_is_offered(vendor: str, case: str) -> None:
    """Whatever the server sent, as each vendor checks it."""
    VENDORS[vendor](offer_schema(FIELD[case][0]).schema)


@pytest.mark.parametrize("case", FIELD)
def test_what_is_offered_means_the_same(case: str) -> None:
    """Arguments that the server takes fit what is offered and come back unchanged; wrong ones do not."""
    raw, good, bad = FIELD[case]
    offered = offer_schema(raw)
    validator = jsonschema.Draft202012Validator(offered.schema)

    def given_by_model(arguments: dict[str, Any]) -> dict[str, Any]:
        return {WRAPPER: arguments} if offered.is_wrapped else arguments

    assert validator.is_valid(given_by_model(good))
    assert good == offered.restore(given_by_model(good))
    assert bad is None or not validator.is_valid(given_by_model(bad))


@pytest.mark.parametrize(
    "raw",
    [
        False,
        [],
        "object",
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": "string"}},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "required": [1]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"minLength": -1}}},
        {"type": "object", "description": "x" * MAX_SCHEMA_BYTES},
        {"type": "object", "default": float("nan")},
    ],
)
def test_a_schema_without_meaning_is_refused_with_a_reason(raw: Any) -> None:
    """Offering it would fail every request, or mean something else."""
    with pytest.raises(SchemaUnusable) as refusal:
        offer_schema(raw)

    assert str(refusal.value)


def test_a_schema_of_great_depth_is_refused_not_a_crash() -> None:
    """A hostile server nests a thousand levels."""
    raw: dict[str, Any] = {"type": "object"}
    for _ in range(1_000):
        raw = {"type": "object", "properties": {"a": raw}}

    with pytest.raises(SchemaUnusable):
        offer_schema(raw)


def test_a_model_that_forgot_the_wrapper_is_understood() -> None:
    """The arguments themselves are then what was meant."""
    offered = offer_schema(FIELD["one of on top"][0])

    assert offered.restore({"a": 1}) == {"a": 1}


KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "enum",
        "minimum",
        "not",
        "format",
        "x",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["object", "array", "#", "#/$defs/a", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | st.sampled_from(["a", "b c"]), inner)
    ),
    max_leaves=20,
)


@given(st.dictionaries(KEYWORDS, JSON))
def test_anything_is_offered_legally_or_refused(raw: dict[str, Any]) -> None:
    """No schema ends in a crash, and none that is offered would fail a vendor's request."""
    try:
        offered = offer_schema(json.loads(json.dumps(raw)))
    except SchemaUnusable:
        return

    for check in VENDORS.values():
        check(offered.schema)
