"""What the arguments of a call may be, and what is wrong with them, for the model."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

__all__ = ["describe", "schema_of"]


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of arguments; made once, not for every turn."""
    return model.model_json_schema()


def describe(exc: ValidationError) -> str:
    """The first problem, and where it is."""
    first = exc.errors(include_url=False)[0]
    return f"{'.'.join(str(step) for step in first['loc']) or 'arguments'}: {first['msg']}"
