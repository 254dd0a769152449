"""HTTP status by error family; every error body is ``{message, code}``."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import ValidationError

from agentd.errors import AgentError, NotFound, Refused
from agentd.tools.desktop import describe_problem
from computer.errors import ComputerError
from computer.errors import Refused as ComputerRefused

__all__ = ["error_middleware", "error_response"]


def error_response(status: int, message: str, code: str) -> web.Response:
    """One error, as every route gives it."""
    return web.json_response({"message": message, "code": code}, status=status)


@web.middleware
async def error_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn typed errors into responses: refusals 4xx, the rest 503."""
    try:
        return await handler(request)
    except web.HTTPException as exc:
        return error_response(exc.status, exc.reason, "http_error")
    except ValidationError as exc:
        return error_response(400, describe_problem(exc), "bad_request")
    except NotFound as exc:
        return error_response(404, str(exc), exc.code)
    except (Refused, ComputerRefused) as exc:
        return error_response(400, str(exc), exc.code)
    except (AgentError, ComputerError) as exc:
        return error_response(503, str(exc), exc.code)
