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

__all__ = ["error_middleware", "error_response"]

# Refusals that mean: there is no such thing.
# Of refusals; the rest are 400.
STATUS: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((NotFound, WindowNotFound, SourceNotFound), 404),
    ((ControlHeld, NotInControl), 409),
    ((TooMany,), 429),
)

log = structlog.get_logger("agentd.http")


def error_response(
    status: int, message: str, code: str, *, headers: Mapping[str, str] | None = None
) -> web.Response:
    """One error, as every route gives it."""
    return web.json_response({"message": message, "code": code}, status=status, headers=headers)


@web.middleware
async def error_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn typed errors into responses: refusals 4xx, the rest 503."""
    try:
        return await handler(request)
    except web.HTTPException as exc:
        allow = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else None
        return error_response(exc.status, exc.reason, "http_error", headers=allow)
    except ValidationError as exc:
        return error_response(400, describe_problem(exc), "bad_request")
    except (Refused, ComputerRefused, ContextRefused) as exc:
        return error_response(_status_of(exc), str(exc), exc.code)
    except (AgentError, ComputerError, ContextError) as exc:
        return error_response(503, str(exc), exc.code)
    except ConnectionError:
        raise
    except Exception:
        log.exception("request failed", action="request_failed", method=request.method, path=request.path)
        return error_response(500, "Something went wrong inside agentd; its log says what.", "internal")


def _status_of(exc: Exception) -> int:
    return next((status for kinds, status in STATUS if isinstance(exc, kinds)), 400)
