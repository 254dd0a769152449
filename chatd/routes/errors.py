"""HTTP status by error family. Every error body is ``{message, detail?, code}``."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from aiohttp import web
from pydantic import BaseModel, ValidationError

from chatd.errors import (
    AgentUnavailable,
    BadRequest,
    ChatdError,
    Forbidden,
    InvalidState,
    NotFound,
    QueueFull,
    TransitionNotAllowed,
    Unauthorised,
)

__all__ = ["error_body", "error_middleware", "read_body", "status_of"]

ModelT = TypeVar("ModelT", bound=BaseModel)
log = structlog.get_logger("chatd.http")

# First match wins; families stand behind their members.
STATUS: tuple[tuple[type[ChatdError], int], ...] = (
    (BadRequest, 400),
    (Unauthorised, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (InvalidState, 409),
    (TransitionNotAllowed, 409),
    (QueueFull, 429),
    (AgentUnavailable, 400),
)


def status_of(error: ChatdError) -> int:
    """The HTTP status of *error*; 500 for what no table row names."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def error_body(message: str, code: str, detail: str | None = None) -> dict[str, Any]:
    """One error as JSON."""
    body = {"message": message, "code": code}
    return body if detail is None else body | {"detail": detail}


@web.middleware
async def error_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer typed errors; an unforeseen one is logged and told without its text."""
    try:
        return await handler(request)
    except ChatdError as exc:
        return web.json_response(error_body(str(exc), exc.code), status=status_of(exc))
    except web.HTTPException as exc:
        if exc.status < 400:
            raise
        return web.json_response(error_body(exc.reason, "http_error"), status=exc.status, headers=_allow(exc))
    except (ConnectionError, TimeoutError):
        raise
    except Exception:
        log.exception("request failed", action="request_failed", method=request.method, path=request.path)
        body = error_body("Something went wrong inside chatd; its log says what.", "internal")
        return web.json_response(body, status=500)


def _allow(exc: web.HTTPException) -> dict[str, str]:
    return {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else {}


async def read_body(request: web.Request, model: type[ModelT]) -> ModelT:
    """
    The request's JSON body as *model*.

    Raises:
        BadRequest: not JSON, or not what the route takes; the text names the field.
    """
    try:
        raw = await request.json()
    except (ValueError, LookupError, RecursionError) as exc:
        # Besides bad JSON: a number of thousands of digits, a charset that does not exist.
        raise BadRequest(f"the body is not JSON: {exc}") from exc
    try:
        return model.model_validate(raw)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "body"
        raise BadRequest(f"{where}: {first['msg']}") from exc
