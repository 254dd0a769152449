"""The ``apps`` tool: programs and windows of the desktop of the chat that asks."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, model_validator

from agentd.acting import Chore, Hands
from agentd.desktops import Desktops, Use
from agentd.errors import BadRequest, ControlHeld, DesktopBusy
from agentd.tools.answers import Arguments, data_tool
from agentd.tools.desktop import origin_of
from agentd.tools.registry import Tool
from agentd.wire.link import ToolCallParams
from computer.errors import ComputerError
from computer.session import DesktopSession

__all__ = ["AppsCall", "apps_tool"]

DESCRIPTION = (
    "Programs and windows of this workspace's desktop. open starts a program there and waits a moment for "
    "its first window; list and end are for programs opened so; windows lists all windows with their "
    "numbers, which focus, move, resize and close take. What is seen to have happened is returned."
)
# Seconds for a program's first window; one that shows none goes on.
LAUNCH_S = 5.0
# The kernel ends a string at NUL.
Argument = Annotated[str, Field(pattern=r"^[^\x00]*$")]
# What changes nothing, and what the rest is called in the action log.
LOOKS = frozenset({"list", "windows"})
CHORES = {
    "open": "open",
    "end": "end_program",
    "focus": "focus_window",
    "move": "move_window",
    "resize": "resize_window",
    "close": "close_window",
}
NEEDS: dict[str, tuple[str, ...]] = {
    "open": ("argv",),
    "list": (),
    "end": ("pid",),
    "windows": (),
    "focus": ("window",),
    "move": ("window", "x", "y"),
    "resize": ("window", "width", "height"),
    "close": ("window",),
}


class AppsCall(Arguments):
    """What the tool takes."""

    action: Literal["open", "list", "end", "windows", "focus", "move", "resize", "close"]
    argv: tuple[Argument, ...] | None = Field(
        default=None, min_length=1, max_length=1000, description="open: the program and its arguments."
    )
    cwd: Argument | None = Field(default=None, description="open: where it starts.")
    pid: StrictInt | None = Field(default=None, description="end: as open and list return it.")
    window: StrictInt | None = Field(default=None, ge=0, lt=2**32, description="As windows returns it.")
    x: StrictInt | None = Field(default=None, description="move: left edge, native pixels.")
    y: StrictInt | None = Field(default=None, description="move: upper edge, native pixels.")
    width: StrictInt | None = None
    height: StrictInt | None = None
    force: bool = Field(default=False, description="close: cut a window off that stays.")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "AppsCall":
        missing = [name for name in NEEDS[self.action] if getattr(self, name) is None]
        if missing:
            msg = f"{self.action} needs {', '.join(missing)}"
            raise ValueError(msg)
        return self


def apps_tool(hands: Hands, desktops: Desktops) -> Tool:
    """The tool, bound to what acts on the daemon's desktops; while a person has control, it only looks."""

    async def run(wish: AppsCall, call: ToolCallParams) -> dict[str, Any]:
        work: Callable[[DesktopSession], Awaitable[dict[str, Any]]]
        work = lambda session: _RUNS[wish.action](session, wish)  # noqa: E731 -- typed above
        name = desktops.name_for(call.root_chat_id or call.chat_id, call.chat_id)
        try:
            if wish.action in LOOKS:
                with desktops.using(name, Use.ACTING):
                    return await work(desktops.ensure(name))
            arguments = wish.model_dump(mode="json", exclude={"action"}, exclude_defaults=True)
            chore = Chore(name=CHORES[wish.action], arguments=arguments)
            return await hands.manage(chore, work, origin=origin_of(call))
        except (ComputerError, ControlHeld, DesktopBusy) as exc:
            raise BadRequest(str(exc)) from exc

    return data_tool("apps", DESCRIPTION, AppsCall, run)


async def _open(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    report = await session.launch(wish.argv or (), cwd=wish.cwd, timeout_s=LAUNCH_S)
    return report.model_dump(mode="json")


async def _list(session: DesktopSession, _: AppsCall) -> dict[str, Any]:
    return {"apps": [app.model_dump(mode="json") for app in session.apps()]}


async def _end(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    await session.stop_app(wish.pid or 0)
    return await _list(session, wish)


async def _windows(session: DesktopSession, _: AppsCall) -> dict[str, Any]:
    return {"windows": [window.model_dump(mode="json") for window in await session.windows()]}


async def _focus(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    return (await session.focus_window(wish.window or 0)).model_dump(mode="json")


async def _move(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    report = await session.move_window(wish.window or 0, wish.x or 0, wish.y or 0)
    return report.model_dump(mode="json")


async def _resize(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    report = await session.resize_window(wish.window or 0, wish.width or 0, wish.height or 0)
    return report.model_dump(mode="json")


async def _close(session: DesktopSession, wish: AppsCall) -> dict[str, Any]:
    await session.close_window(wish.window or 0, force=wish.force)
    return await _windows(session, wish)


_RUNS: dict[str, Callable[[DesktopSession, AppsCall], Awaitable[dict[str, Any]]]] = {
    "open": _open,
    "list": _list,
    "end": _end,
    "windows": _windows,
    "focus": _focus,
    "move": _move,
    "resize": _resize,
    "close": _close,
}
