"""What every body of the API has in common."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from chatd import routes
from chatd.routes.describe import operation_of


def _bodies() -> Iterator[type[BaseModel]]:
    for module in pkgutil.iter_modules(routes.__path__):
        found = vars(importlib.import_module(f"chatd.routes.{module.name}"))
        for value in found.values():
            operation = operation_of(value)
            if operation is not None and operation.body is not None:
                yield operation.body


def _numbers() -> list[tuple[type[BaseModel], str]]:
    return [
        (body, name)
        for body in dict.fromkeys(_bodies())
        for name, schema in body.model_json_schema()["properties"].items()
        if {"integer", "number"} & {part.get("type") for part in (schema, *schema.get("anyOf", ()))}
    ]


@pytest.mark.parametrize(("body", "field"), _numbers(), ids=lambda value: getattr(value, "__name__", value))
def test_a_truth_value_is_no_number(body: type[BaseModel], field: str) -> None:
    """Python takes true for 1, JSON does not: a client that sends it made a mistake."""
    problems: list[Any] = []
    try:
        # As ``read_body`` does.
        body.model_validate_json(json.dumps({field: True}), strict=True)
    except ValidationError as exc:
        problems = [error["loc"][0] for error in exc.errors()]

    assert field in problems
