"""What a route takes and gives, written beside its handler; OpenAPI is made of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel

__all__ = ["Operation", "describe", "operation_of"]

Handler = TypeVar("Handler", bound=Callable[[web.Request], Awaitable[web.StreamResponse]])
_ATTRIBUTE = "__operation__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One route's contract. *answer* is a type that pydantic knows; None: no body."""

    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    answer: Any = None
    status: int = 200
    errors: Mapping[int, str] = field(default_factory=dict)
    # Media type of a body or an answer that is no JSON.
    media_type: str | None = None
    # Media types of a body that is no JSON.
    raw_body: tuple[str, ...] = ()
    is_stream: bool = False


def describe(**fields: Any) -> Callable[[Handler], Handler]:  # noqa: ANN401 -- Operation's fields
    """Attach an ``Operation`` to a handler."""

    def attach(handler: Handler) -> Handler:
        setattr(handler, _ATTRIBUTE, Operation(**fields))
        return handler

    return attach


def operation_of(handler: object) -> Operation | None:
    """What was attached."""
    return getattr(handler, _ATTRIBUTE, None)
