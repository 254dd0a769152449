"""HTTP status by error family. Every error body is ``{message, detail?, code}``."""

import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, get_origin

import structlog
from aiohttp import web
from pydantic import BaseModel, ValidationError

from chatd.errors import (
    AgentUnavailable,
    BadRequest,
    ChatdError,
    ControlHeld,
    Forbidden,
    InvalidState,
    KeyReused,
    LastAdmin,
    NotFound,
    NotInControl,
    QueueFull,
    TooLarge,
    TooManyRequests,
    TransitionNotAllowed,
    Unauthorised,
    UsageLimitReached,
)
from chatd.routes.bounds import Busy, TooSlow, read_within
from chatd.store.outages import is_outage
from chatd.store.sqlite_faults import explain_fault

__all__ = ["error_body", "error_middleware", "note_begun", "read_body", "read_query", "status_of"]

ModelT = TypeVar("ModelT", bound=BaseModel)
log = structlog.get_logger("chatd.http")

# Seconds; whoever is refused for a moment comes back after it.
RETRY_SOON = {"Retry-After": "1"}
_BEGUN = web.RequestKey("the answer that has begun", web.StreamResponse)

# First match wins; families stand behind their members.
STATUS: tuple[tuple[type[ChatdError], int], ...] = (
    (TooLarge, 413),
    (TooSlow, 408),
    (Busy, 429),
    (BadRequest, 400),
    (Unauthorised, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (InvalidState, 409),
    (ControlHeld, 409),
    (NotInControl, 409),
    (TransitionNotAllowed, 409),
    (UsageLimitReached, 409),
    (KeyReused, 409),
    (LastAdmin, 409),
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


async def note_begun(request: web.Request, response: web.StreamResponse) -> None:
    """For an app's ``on_response_prepare``: from here on an error can't be told any more."""
    request[_BEGUN] = response


@web.middleware
async def error_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """
    Answer typed errors; an unforeseen one is logged and told without its text.

    An answer that breaks off in its middle ends with its connection: nobody takes a part for the whole,
    and nobody waits for the rest.
    """
    try:
        return await handler(request)
    except Exception as exc:
        begun: web.StreamResponse | None = request.get(_BEGUN)
        if isinstance(exc, ConnectionError) and (request.transport is None or request.transport.is_closing()):
            # Who asked has gone; nobody reads what comes.
            return begun or web.Response()
        if begun is None:
            return _answer(request, exc)
        log.exception("answer broke off", action="answer_cut", method=request.method, path=request.path)
        if request.transport is not None:
            request.transport.abort()
        return begun


def _answer(request: web.Request, exc: Exception) -> web.StreamResponse:
    if isinstance(exc, ChatdError):
        return web.json_response(_body_of(exc), status=status_of(exc), headers=_when(exc))
    if isinstance(exc, web.HTTPException):
        if exc.status < 400:
            raise exc
        return web.json_response(error_body(exc.reason, "http_error"), status=exc.status, headers=_allow(exc))
    if (text := explain_fault(exc)) is not None:
        log.error("database fails", action="database_failed", path=request.path, reason=text)
        return web.json_response(error_body(text, "database_failed"), status=503, headers=RETRY_SOON)
    if is_outage(exc):
        log.warning("database away", action="request_waits", path=request.path, reason=str(exc)[:200])
        body = error_body("The database can't be reached; try again.", "database_unavailable")
        return web.json_response(body, status=503, headers=RETRY_SOON)
    log.error(
        "request failed", action="request_failed", method=request.method, path=request.path, exc_info=exc
    )
    body = error_body("Something went wrong inside chatd; its log says what.", "internal")
    return web.json_response(body, status=500)


def _body_of(error: ChatdError) -> dict[str, Any]:
    body = error_body(str(error), error.code)
    if isinstance(error, UsageLimitReached):
        names = ("spent_micros", "limit_micros", "resets_at")
        body |= {name: getattr(error, name) for name in names}
    return body


def _when(error: ChatdError) -> dict[str, str]:
    """When to come again: whole seconds, rounded up, so that who waits so long is let in."""
    if isinstance(error, TooManyRequests):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
    return RETRY_SOON if status_of(error) in {429, 503} else {}


def _allow(exc: web.HTTPException) -> dict[str, str]:
    return {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else {}


async def read_body(request: web.Request, model: type[ModelT]) -> ModelT:
    """
    The request's JSON body as *model*; nothing is taken for something else: 0 is no false, "1" no 1.

    Raises:
        BadRequest: not JSON, or not what the route takes; the text names the field.
    """
    try:
        async with read_within():
            raw = await request.json()
    except (ValueError, LookupError, RecursionError) as exc:
        # Besides bad JSON: a number of thousands of digits, a charset that does not exist.
        raise BadRequest(f"the body is not JSON: {exc}") from exc
    # As Python's values first: what is no text at all (lone surrogates) is then told by its field.
    _validated(lambda: model.model_validate(raw), whole="body")
    return _validated(lambda: model.model_validate_json(json.dumps(raw), strict=True), whole="body")


def read_query(request: web.Request, model: type[ModelT]) -> ModelT:
    """
    The request's query as *model*; a name that may be repeated is a list there.

    Raises:
        BadRequest: not what the route takes; the text names the parameter.
    """
    raw: dict[str, Any] = {}
    for name in request.query:
        field = model.model_fields.get(name)
        is_list = field is not None and get_origin(field.annotation) is list
        raw[name] = request.query.getall(name) if is_list else request.query[name]
    return _validated(lambda: model.model_validate(raw), whole="query")


def _validated(read: Callable[[], ModelT], *, whole: str) -> ModelT:
    try:
        return read()
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or whole
        raise BadRequest(f"{where}: {first['msg']}") from exc
