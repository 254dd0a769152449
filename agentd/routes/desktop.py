"""Local API: desktop sessions."""

import base64
from typing import Annotated, Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.desktops import Desktops
from agentd.errors import BadRequest
from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult

__all__ = ["DESKTOPS", "OpenRequest", "routes"]

DESKTOPS: web.AppKey[Desktops] = web.AppKey("desktops", Desktops)
routes = web.RouteTableDef()

# Seconds for a program's first window; one that shows none (a command, a slow start) goes on.
LAUNCH_S = 3.0
# The kernel ends a string at NUL.
Argument = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class OpenRequest(BaseModel):
    """Launch a program inside the desktop session."""

    model_config = ConfigDict(extra="forbid")

    argv: list[Argument] = Field(min_length=1, max_length=1000)
    cwd: Argument | None = None


def _session(request: web.Request) -> DesktopSession:
    return request.app[DESKTOPS].get(request.match_info["name"])


async def _json_object(request: web.Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except (ValueError, RecursionError) as exc:
        msg = f"the body is not JSON: {exc}"
        raise BadRequest(msg) from exc
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


@routes.get("/api/v0/health")
async def health(_: web.Request) -> web.Response:
    """Alive."""
    return web.json_response({"status": "ok"})


@routes.get("/api/v0/desktop")
async def list_desktops(request: web.Request) -> web.Response:
    """Every session's status."""
    desktops = request.app[DESKTOPS]
    statuses = [desktops.status(name).model_dump(mode="json") for name in desktops.names()]
    return web.json_response(statuses)


@routes.post("/api/v0/desktop/{name}/up")
async def up(request: web.Request) -> web.Response:
    """Start the session, unless it runs."""
    await _session(request).ensure_running()
    return _status_response(request)


@routes.post("/api/v0/desktop/{name}/down")
async def down(request: web.Request) -> web.Response:
    """Stop the session and everything it started; the next need starts it again."""
    await _session(request).stop()
    return _status_response(request)


@routes.get("/api/v0/desktop/{name}/screenshot")
async def screenshot(request: web.Request) -> web.Response:
    """The screen as PNG bytes."""
    call = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    result = await _session(request).perform(call)
    if result.screenshot is None:
        return _result_response(result)
    picture = base64.b64decode(result.screenshot.data)
    return web.Response(body=picture, content_type=result.screenshot.media_type)


@routes.post("/api/v0/desktop/{name}/action")
async def action(request: web.Request) -> web.Response:
    """Perform one canonical action, or a whole ``ComputerCall``."""
    body = await _json_object(request)
    if "actions" not in body:
        body = {"actions": [body], "screenshot": body.get("action") in ("screenshot", "zoom")}
    # Validated before the session is touched: a junk body must not start a desktop.
    call = ComputerCall.model_validate(body)
    return _result_response(await _session(request).perform(call))


@routes.post("/api/v0/desktop/{name}/open")
async def open_program(request: web.Request) -> web.Response:
    """Launch a program and wait a moment for its first window; one that fails at once is an error."""
    wish = OpenRequest.model_validate(await _json_object(request))
    report = await _session(request).launch(wish.argv, cwd=wish.cwd, timeout_s=LAUNCH_S)
    return web.json_response(report.model_dump(mode="json"))


def _status_response(request: web.Request) -> web.Response:
    status = request.app[DESKTOPS].status(request.match_info["name"])
    return web.json_response(status.model_dump(mode="json"))


def _result_response(result: ComputerResult) -> web.Response:
    status = 200
    if result.error is not None:
        status = 400 if result.error_code in REFUSAL_CODES else 503
    body = result.model_dump(mode="json")
    if result.error is not None:
        body |= {"message": result.error, "code": result.error_code}
    return web.json_response(body, status=status)


# Failures that are the caller's: asking again the same way cannot help.
REFUSAL_CODES = frozenset({"invalid_action", "out_of_bounds", "unknown_key"})
