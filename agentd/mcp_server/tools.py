"""
What MCP clients may call: the desktop; files and processes where the settings say so.

Everything on the desktop goes through the same hands as the chats' calls, as actor ``mcp``.
"""

import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError

from agentd.acting import Chore, Hands, Origin
from agentd.desktops import MAIN, Desktops
from agentd.errors import NotFound
from agentd.recording import Recordings
from agentd.tools.answers import Arguments, describe_problem, error_result
from agentd.tools.desktop import to_tool_result
from agentd.tools.registry import Registry, Tool
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from agentd.wire.recordings import RecordingList
from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult, WindowInfo

__all__ = ["ACTOR", "ServedTool", "new_call", "served_tools"]

ACTOR = "mcp"
# Seconds for one call; a computer call may hold or wait for up to five minutes.
CALL_TIMEOUT_S = 330.0
# Seconds for a program's first window.
LAUNCH_S = 3.0

READ_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
TOUCHES = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
ARRANGES = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
# Tools of files and processes that change nothing.
READERS = frozenset({"read_file", "list_directory", "process_output", "process_list"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool as MCP clients see it, and what runs it."""

    definition: types.Tool
    run: Callable[[ToolCallParams], Awaitable[ToolResult]]


class Screenshot(Arguments):
    """See the desktop as it is now."""


class Windows(Arguments):
    """List windows, or do something with one; *window* is an id of the list."""

    action: Literal["list", "focus", "move", "resize", "close"] = "list"
    window: StrictInt | None = None
    x: StrictInt | None = Field(default=None, description="move: upper left corner, native pixels")
    y: StrictInt | None = None
    width: StrictInt | None = Field(default=None, description="resize: what the application draws in")
    height: StrictInt | None = None
    force: bool = Field(default=False, description="close: cut off a window that stays")


class Clipboard(Arguments):
    """Read the clipboard, or put text into it."""

    action: Literal["get", "set"] = "get"
    text: str | None = Field(default=None, max_length=1_000_000)


class OpenProgram(Arguments):
    """Start a program at the desktop and wait a moment for its window."""

    argv: list[Annotated[str, Field(pattern=r"^[^\x00]*$")]] = Field(min_length=1, max_length=1_000)
    cwd: str | None = None


class Recording(Arguments):
    """
    Film the desktop. start answers with the recording, stop and list with recordings as they are now.

    It ends by itself when nothing is done for a while, and when it is long or large enough. The film
    stays in the workspace: `agentd desktop record save ID FILE` there.
    """

    action: Literal["start", "stop", "list"] = "list"
    recording: UUID | None = Field(default=None, description="stop: an id of the list")


class WindowList(BaseModel):
    """All windows, oldest first."""

    model_config = ConfigDict(frozen=True)

    windows: tuple[WindowInfo, ...]


def served_tools(
    hands: Hands, desktops: Desktops, recordings: Recordings, registry: Registry, *, with_builtin: bool
) -> dict[str, ServedTool]:
    """
    Every tool by name.

    Args:
        hands: what acts on the desktop.
        desktops: for the list of windows.
        recordings: films of it.
        registry: where the computer tool is, and files and processes.
        with_builtin: files and processes as well.
    """
    desk = _Desk(hands, desktops, recordings)
    windows = WindowList.model_json_schema(mode="serialization")
    films = RecordingList.model_json_schema(mode="serialization")
    tools = [
        _plain(registry.get("computer"), _Look("Computer", TOUCHES, _result_schema())),
        _own("screenshot", _Look("Screenshot", READ_ONLY), Screenshot, desk.screenshot),
        _own("windows", _Look("Windows", ARRANGES, windows), Windows, desk.windows),
        _own("clipboard", _Look("Clipboard", ARRANGES), Clipboard, desk.clipboard),
        _own("open_program", _Look("Open program", TOUCHES), OpenProgram, desk.open),
        _own("recording", _Look("Recording", ARRANGES, films), Recording, desk.recording),
    ]
    if with_builtin:
        tools += _builtin(registry)
    return {tool.definition.name: tool for tool in tools}


def _builtin(registry: Registry) -> Iterable[ServedTool]:
    for definition in registry.definitions():
        if definition.origin == "builtin":
            hints = READ_ONLY if definition.name in READERS else TOUCHES
            yield _plain(registry.get(definition.name), _Look(None, hints))


@dataclass(frozen=True, slots=True)
class _Look:
    """What clients show and go by, besides name and arguments."""

    title: str | None
    annotations: types.ToolAnnotations
    output: dict[str, Any] | None = None


def _plain(tool: Tool, look: _Look) -> ServedTool:
    definition = types.Tool(
        name=tool.definition.name,
        title=look.title,
        description=tool.definition.description,
        input_schema=tool.definition.input_schema,
        output_schema=look.output,
        annotations=look.annotations,
    )
    return ServedTool(definition=definition, run=tool.run)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def _own(
    name: str,
    look: _Look,
    model: type[ArgumentsT],
    work: Callable[[ArgumentsT, Origin], Awaitable[ToolResult]],
) -> ServedTool:
    async def run(call: ToolCallParams) -> ToolResult:
        try:
            given = model.model_validate(call.arguments)
        except ValidationError as exc:
            return error_result(describe_problem(exc))
        return await work(given, Origin(actor=call.actor, call_id=call.call_id))

    definition = types.Tool(
        name=name,
        title=look.title,
        description=model.__doc__,
        input_schema=model.model_json_schema(),
        output_schema=look.output,
        annotations=look.annotations,
    )
    return ServedTool(definition=definition, run=run)


def _result_schema() -> dict[str, Any]:
    """The computer's result without its picture, which travels as an image."""
    schema = ComputerResult.model_json_schema(mode="validation")
    picture = schema["$defs"]["ScreenshotData"]
    picture["properties"].pop("data")
    picture["required"].remove("data")
    return schema


class _Desk:
    """The main desktop, for the tools that are no canonical action."""

    def __init__(self, hands: Hands, desktops: Desktops, recordings: Recordings) -> None:
        self._hands = hands
        self._desktops = desktops
        self._recordings = recordings

    async def _perform(self, origin: Origin, action: dict[str, Any], *, picture: bool) -> ToolResult:
        call = ComputerCall.model_validate({"actions": [action], "screenshot": picture})
        return to_tool_result(await self._hands.perform(call, origin=origin))

    async def screenshot(self, _: Screenshot, origin: Origin) -> ToolResult:
        return await self._perform(origin, {"action": "screenshot"}, picture=True)

    async def clipboard(self, given: Clipboard, origin: Origin) -> ToolResult:
        if given.action == "get":
            return await self._perform(origin, {"action": "get_clipboard"}, picture=False)
        if given.text is None:
            return error_result("set needs a text")
        return await self._perform(origin, {"action": "set_clipboard", "text": given.text}, picture=False)

    async def open(self, given: OpenProgram, origin: Origin) -> ToolResult:
        report = await self._hands.manage(
            Chore(name="open", arguments=given.model_dump()),
            lambda session: session.launch(given.argv, cwd=given.cwd, timeout_s=LAUNCH_S),
            origin=origin,
            desktop=MAIN,
        )
        return ToolResult(structured=report.model_dump(mode="json"))

    async def windows(self, given: Windows, origin: Origin) -> ToolResult:
        if given.action != "list":
            if given.window is None:
                return error_result(f"{given.action} needs a window: an id of the list")
            work = _window_work(given, given.window)
            if work is None:
                return error_result("move needs x and y, resize needs width and height")
            arguments = given.model_dump(exclude={"action"}, exclude_defaults=True)
            chore = Chore(name=f"{given.action}_window", arguments=arguments)
            await self._hands.manage(chore, work, origin=origin, desktop=MAIN)
        found = WindowList(windows=tuple(await self._desktops.get().windows()))
        return ToolResult(structured=found.model_dump(mode="json"))

    async def recording(self, given: Recording, origin: Origin) -> ToolResult:
        """Beginning one is a deed: refused while a person has control, and a line of the log."""
        every = [info for info in await self._recordings.every() if info.desktop == MAIN]
        if given.action == "list":
            found = every
        elif given.action == "start":
            started = await self._hands.manage(
                Chore(name="record", arguments={}),
                lambda _: self._recordings.start(desktop=MAIN),
                origin=origin,
                desktop=MAIN,
            )
            found = [started]
        elif given.recording is None:
            return error_result("stop needs a recording: an id of the list")
        elif given.recording not in {info.id for info in every}:
            raise NotFound(f"no recording {given.recording} of this desktop; list shows those there are")
        else:
            found = [(await self._recordings.stop(given.recording)).recording]
        return ToolResult(structured=RecordingList(recordings=tuple(found)).model_dump(mode="json"))


def _window_work(given: Windows, window: int) -> Callable[[DesktopSession], Awaitable[object]] | None:
    """What does it; None when something is missing."""
    match given:
        case Windows(action="focus"):
            return lambda session: session.focus_window(window)
        case Windows(action="move", x=int(x), y=int(y)):
            return lambda session: session.move_window(window, x, y)
        case Windows(action="resize", width=int(width), height=int(height)):
            return lambda session: session.resize_window(window, width, height)
        case Windows(action="close", force=force):
            return lambda session: session.close_window(window, force=force)
    return None


def new_call(name: str, arguments: dict[str, Any]) -> ToolCallParams:
    """A call that runs once: MCP has no id that outlives a connection."""
    call_id = f"mcp/{uuid.uuid4().hex}"
    return ToolCallParams(
        call_id=call_id, name=name, arguments=arguments, actor=ACTOR, timeout_s=CALL_TIMEOUT_S
    )
