"""Local API: desktop sessions."""

import os
from typing import Annotated, Any

import pybase64
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.acting import Chore, Hands
from agentd.calls import CallTable
from agentd.control import HELD, Control
from agentd.desktops import Desktops, workspace_environment
from agentd.errors import BadRequest
from agentd.tools.answering import answer_call
from agentd.tools.desktop import computer_tool
from agentd.wire.content import ImageContent, TextContent, ToolResult
from agentd.wire.link import ToolCallParams
from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult

__all__ = ["CALLS", "CONTROL", "DESKTOPS", "HANDS", "OpenRequest", "read_object", "routes", "session_of"]

CONTROL: web.AppKey[Control] = web.AppKey("control", Control)
DESKTOPS: web.AppKey[Desktops] = web.AppKey("desktops", Desktops)
CALLS: web.AppKey[CallTable] = web.AppKey("calls", CallTable)
HANDS: web.AppKey[Hands] = web.AppKey("hands", Hands)
routes = web.RouteTableDef()

# Seconds for a program's first window; one that shows none (a command, a slow start) goes on.
LAUNCH_S = 3.0
# Characters of an id that makes an action happen once.
MAX_ID_CHARACTERS = 200
# Seconds for one call; it may hold or wait for five minutes.
CALL_LIMIT_S = 330.0
# The kernel ends a string at NUL.
Argument = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class OpenRequest(BaseModel):
    """Launch a program inside the desktop session."""

    model_config = ConfigDict(extra="forbid")

    argv: list[Argument] = Field(min_length=1, max_length=1000)
    cwd: Argument | None = None


def session_of(request: web.Request) -> DesktopSession:
    """
    The session that a route names.

    Raises:
        NotFound: there is no such desktop.
    """
    return request.app[DESKTOPS].get(request.match_info["name"])


async def _perform(request: web.Request, call: ComputerCall) -> ComputerResult:
    return await request.app[HANDS].perform(call, desktop=request.match_info["name"])


def _ensured(request: web.Request) -> DesktopSession:
    """The session that a route names, made if there is none of that name."""
    return request.app[DESKTOPS].ensure(request.match_info["name"])


async def _perform_once(request: web.Request, call: ComputerCall, number: object) -> ToolResult:
    if not isinstance(number, str) or not 1 <= len(number) <= MAX_ID_CHARACTERS:
        msg = f"id: must be a string of 1 to {MAX_ID_CHARACTERS} characters"
        raise BadRequest(msg)
    name = request.match_info["name"]
    request.app[DESKTOPS].get(name)
    params = ToolCallParams(
        call_id=f"local/{name}/{number}",
        name="computer",
        arguments=call.model_dump(mode="json"),
        actor="local",
        timeout_s=CALL_LIMIT_S,
    )
    return await answer_call(request.app[CALLS], computer_tool(request.app[HANDS], name), params)


async def read_object(request: web.Request) -> dict[str, Any]:
    """
    The body of a request.

    Raises:
        BadRequest: it is no JSON object.
    """
    try:
        body = await request.json()
    except (ValueError, RecursionError) as exc:
        msg = f"the body is not JSON: {exc}"
        raise BadRequest(msg) from exc
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


@routes.get("/api/v0/desktop")
async def list_desktops(request: web.Request) -> web.Response:
    """Every session's status."""
    desktops = request.app[DESKTOPS]
    control = request.app[CONTROL]
    statuses = [control.describe(desktops.status(name)).model_dump(mode="json") for name in desktops.names()]
    return web.json_response(statuses)


@routes.post("/api/v0/desktop/{name}/up")
async def up(request: web.Request) -> web.Response:
    """Start the session, unless it runs; a new name makes a new session."""
    await _ensured(request).ensure_running()
    return _status_response(request)


@routes.post("/api/v0/desktop/{name}/environment")
async def environment(request: web.Request) -> web.Response:
    """Start the session, unless it runs; the variables that make a program one of its own."""
    session = _ensured(request)
    await session.ensure_running()
    base = workspace_environment(os.environ)
    variables = {key: value for key, value in session.environment().items() if base.get(key) != value}
    return web.json_response(variables)


@routes.post("/api/v0/desktop/{name}/down")
async def down(request: web.Request) -> web.Response:
    """Stop the session and everything it started; the next need starts it again."""
    await session_of(request).stop()
    return _status_response(request)


@routes.get("/api/v0/desktop/{name}/screenshot")
async def screenshot(request: web.Request) -> web.Response:
    """The screen as PNG bytes."""
    call = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    result = await _perform(request, call)
    if result.screenshot is None:
        return _result_response(result)
    picture = pybase64.b64decode(result.screenshot.data)
    return web.Response(body=picture, content_type=result.screenshot.media_type)


@routes.post("/api/v0/desktop/{name}/action")
async def action(request: web.Request) -> web.Response:
    """
    Perform one canonical action, or a whole ``ComputerCall``.

    With an ``id`` exactly once: a repeat gets the first answer, also from a daemon that was started since.
    """
    body = await read_object(request)
    number = body.pop("id", None)
    if "actions" not in body:
        body = {"actions": [body], "screenshot": body.get("action") in ("screenshot", "zoom")}
    # Validated before the session is touched: a junk body must not start a desktop.
    call = ComputerCall.model_validate(body)
    if number is None:
        return _result_response(await _perform(request, call))
    return _tool_response(await _perform_once(request, call, number))


@routes.post("/api/v0/desktop/{name}/open")
async def open_program(request: web.Request) -> web.Response:
    """Launch a program and wait a moment for its first window; one that fails at once is an error."""
    wish = OpenRequest.model_validate(await read_object(request))
    _ensured(request)
    report = await request.app[HANDS].manage(
        Chore(name="open", arguments=wish.model_dump()),
        lambda session: session.launch(wish.argv, cwd=wish.cwd, timeout_s=LAUNCH_S),
        desktop=request.match_info["name"],
    )
    return web.json_response(report.model_dump(mode="json"))


def _status_response(request: web.Request) -> web.Response:
    status = request.app[DESKTOPS].status(request.match_info["name"])
    status = request.app[CONTROL].describe(status)
    return web.json_response(status.model_dump(mode="json"))


def _result_response(result: ComputerResult) -> web.Response:
    if result.error is None:
        # A picture is a megabyte of text, which the json module writes twenty times as slowly.
        return web.json_response(text=result.model_dump_json())
    status = STATUS.get(result.error_code or "", 503)
    body = result.model_dump(mode="json") | {"message": result.error, "code": result.error_code}
    return web.json_response(body, status=status)


def _tool_response(result: ToolResult) -> web.Response:
    """The same body as without an id, from what is kept of an answer."""
    body = dict(result.structured or {})
    for block in result.content:
        if isinstance(block, ImageContent):
            body["screenshot"] = {
                **(body.get("screenshot") or {}),
                "data": block.data,
                "media_type": block.mime_type,
            }
    if not result.is_error:
        return web.json_response(body)
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    body |= {
        "message": body.get("error") or "\n".join(texts),
        "code": body.get("error_code") or body.get("code") or "failed",
    }
    return web.json_response(body, status=STATUS.get(body["code"], 503))


# Failures that are the caller's: asking again the same way cannot help.
STATUS = {"invalid_action": 400, "out_of_bounds": 400, "tripwire_tripped": 400, "unknown_key": 400, HELD: 409}
