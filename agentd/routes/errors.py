"""HTTP status by error family; every error body is ``{message, code}``."""

from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web
from pydantic import ValidationError

from agentd.errors import AgentError, ControlHeld, NotFound, NotInControl, Refused, TooMany
from agentd.tools.answers import describe_problem
from computer.errors import ComputerError, WindowNotFound
from computer.errors import Refused as ComputerRefused
from context_push.errors import ContextError, SourceNotFound
from context_push.errors import Refused as ContextRefused

__all__ = ["error_middleware", "error_response", "note_begun"]

# Refusals that mean: there is no such thing.
# Of refusals; the rest are 400.
STATUS: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((NotFound, WindowNotFound, SourceNotFound), 404),
    ((ControlHeld, NotInControl), 409),
    ((TooMany,), 429),
)

_BEGUN = web.RequestKey("the answer that has begun", web.StreamResponse)

log = structlog.get_logger("agentd.http")


def error_response(
    status: int, message: str, code: str, *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """One error, as every route gives it."""
    return web.json_response({"message": message, "code": code}, status=status, headers=headers)


async def note_begun(request: web.Request, response: web.StreamResponse) -> None:
    """For an app's ``on_response_prepare``: from here on an error can't be told any more."""
    request[_BEGUN] = response


@web.middleware
async def error_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """
    Turn typed errors into responses: refusals 4xx, the rest 503.

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


def _answer(request: web.Request, exc: Exception) -> web.Response:
    match exc:
        case web.HTTPException():
            allow = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else None
            return error_response(exc.status, exc.reason, "http_error", headers=allow)
        case ValidationError():
            return error_response(400, describe_problem(exc), "bad_request")
        case Refused() | ComputerRefused() | ContextRefused():
            return error_response(_status_of(exc), str(exc), exc.code)
        case AgentError() | ComputerError() | ContextError():
            return error_response(503, str(exc), exc.code)
    log.error(
        "request failed", action="request_failed", method=request.method, path=request.path, exc_info=exc
    )
    return error_response(500, "Something went wrong inside agentd; its log says what.", "internal")


def _status_of(exc: Exception) -> int:
    return next((status for kinds, status in STATUS if isinstance(exc, kinds)), 400)
