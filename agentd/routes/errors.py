"""HTTP status by error family; every error body is ``{message, code}``."""

from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web
from pydantic import ValidationError

from agentd.errors import AgentError, NotFound, Refused
from agentd.tools.desktop import describe_problem
from computer.errors import ComputerError
from computer.errors import Refused as ComputerRefused

__all__ = ["error_middleware", "error_response"]

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
    except (Refused, ComputerRefused) as exc:
        return error_response(404 if isinstance(exc, NotFound) else 400, str(exc), exc.code)
    except (AgentError, ComputerError) as exc:
        return error_response(503, str(exc), exc.code)
    except ConnectionError:
        raise
    except Exception:
        log.exception("request failed", action="request_failed", method=request.method, path=request.path)
        return error_response(500, "Something went wrong inside agentd; its log says what.", "internal")
