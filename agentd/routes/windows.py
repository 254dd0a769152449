"""Local API: windows of a desktop session."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt

from agentd.acting import Chore
from agentd.routes.desktop import HANDS, read_object, session_of
from computer.session import DesktopSession
from computer.wire import WindowReport

__all__ = ["CloseRequest", "MoveRequest", "ResizeRequest", "routes"]

T = TypeVar("T")

routes = web.RouteTableDef()

WINDOWS = "/api/v0/desktop/{name}/windows"
# X11 numbers have 32 bits; what is longer names no window.
WINDOW = WINDOWS + r"/{window:\d{1,10}}"


class MoveRequest(BaseModel):
    """Where the upper left corner of what the application draws should be, in native pixels."""

    model_config = ConfigDict(extra="forbid")

    x: StrictInt
    y: StrictInt


class ResizeRequest(BaseModel):
    """Size of what the application draws, in native pixels."""

    model_config = ConfigDict(extra="forbid")

    width: StrictInt
    height: StrictInt


class CloseRequest(BaseModel):
    """With *force*, a window that stays is cut off from the display."""

    model_config = ConfigDict(extra="forbid")

    force: StrictBool = False


@routes.get(WINDOWS)
async def list_windows(request: web.Request) -> web.Response:
    """All windows that the window manager lists, oldest first."""
    return await _list(request)


@routes.post(WINDOW + "/focus")
async def focus(request: web.Request) -> web.Response:
    """Raise a window and give it the keyboard."""
    number = _number(request)
    return _respond(await _change(request, "focus", {}, lambda session: session.focus_window(number)))


@routes.post(WINDOW + "/move")
async def move(request: web.Request) -> web.Response:
    """Move a window."""
    wish = MoveRequest.model_validate(await read_object(request))
    number = _number(request)
    return _respond(
        await _change(
            request, "move", wish.model_dump(), lambda session: session.move_window(number, wish.x, wish.y)
        )
    )


@routes.post(WINDOW + "/resize")
async def resize(request: web.Request) -> web.Response:
    """Give a window a size."""
    wish = ResizeRequest.model_validate(await read_object(request))
    number = _number(request)
    return _respond(
        await _change(
            request,
            "resize",
            wish.model_dump(),
            lambda session: session.resize_window(number, wish.width, wish.height),
        )
    )


@routes.post(WINDOW + "/close")
async def close(request: web.Request) -> web.Response:
    """Close a window and see that it has gone; the windows that are left."""
    body = await read_object(request) if request.can_read_body else {}
    wish = CloseRequest.model_validate(body)
    number = _number(request)
    await _change(
        request, "close", wish.model_dump(), lambda session: session.close_window(number, force=wish.force)
    )
    return await _list(request)


async def _list(request: web.Request) -> web.Response:
    windows = await session_of(request).windows()
    return web.json_response([window.model_dump(mode="json") for window in windows])


async def _change(
    request: web.Request,
    name: str,
    arguments: Mapping[str, object],
    work: Callable[[DesktopSession], Awaitable[T]],
) -> T:
    chore = Chore(name=f"{name}_window", arguments={"window": _number(request), **arguments})
    return await request.app[HANDS].manage(chore, work, desktop=request.match_info["name"])


def _number(request: web.Request) -> int:
    return int(request.match_info["window"])


def _respond(report: WindowReport) -> web.Response:
    return web.json_response(report.model_dump(mode="json"))
