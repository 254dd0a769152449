"""Local API: programs that were opened at a desktop, and the size of its screen."""

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from agentd.acting import Chore
from agentd.routes.desktop import DESKTOPS, HANDS, read_object, session_of
from computer.session import DesktopSession

__all__ = ["ScreenRequest", "routes"]

routes = web.RouteTableDef()

DESKTOP = "/api/v0/desktop/{name}"
Pixels = Annotated[StrictInt, Field(ge=64, le=8192)]


class ScreenRequest(BaseModel):
    """Size that the screen should have, in native pixels."""

    model_config = ConfigDict(extra="forbid")

    width: Pixels
    height: Pixels


@routes.get(DESKTOP + "/apps")
async def list_apps(request: web.Request) -> web.Response:
    """Programs that were opened here and run, oldest first; the desktop is not started by asking."""
    return _apps(session_of(request))


@routes.post(DESKTOP + r"/apps/{pid:\d{1,10}}/end")
async def end_app(request: web.Request) -> web.Response:
    """End a program with its process group; the answer lists those that still run."""
    pid = int(request.match_info["pid"])
    chore = Chore(name="end_program", arguments={"pid": pid})
    name = request.match_info["name"]
    await request.app[HANDS].manage(chore, lambda session: session.stop_app(pid), desktop=name)
    return _apps(session_of(request))


@routes.post(DESKTOP + "/screen")
async def resize_screen(request: web.Request) -> web.Response:
    """Give the screen another size; whoever acts by an older picture is refused once."""
    wish = ScreenRequest.model_validate(await read_object(request))
    name = request.match_info["name"]
    chore = Chore(name="resize_screen", arguments=wish.model_dump())
    await request.app[HANDS].manage(
        chore, lambda session: session.resize_screen(wish.width, wish.height), desktop=name
    )
    return web.json_response(request.app[DESKTOPS].status(name).model_dump(mode="json"))


def _apps(session: DesktopSession) -> web.Response:
    return web.json_response([app.model_dump(mode="json") for app in session.apps()])
