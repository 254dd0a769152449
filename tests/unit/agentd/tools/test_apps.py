"""The apps tool: what it takes, what it does, what it answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentd.acting import Hands
from agentd.control import Control
from agentd.desktops import Desktops
from agentd.lease import Party
from agentd.settings import AgentdSettings
from agentd.tools.apps import NEEDS, apps_tool
from agentd.wire.content import TextContent, ToolResult
from agentd.wire.link import ToolCallParams
from computer.errors import InvalidAction, WindowNotFound
from computer.wire import AppInfo, LaunchReport, WindowInfo, WindowReport

WINDOW = WindowInfo(
    id=7, title="t", window_class="X", pid=5, bounds=(0, 0, 9, 9), frame=(0, 0, 9, 9), active=True,
    minimized=False,
)  # fmt: skip


class _Session:
    """A desktop that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def launch(self, argv: Sequence[str], *, cwd: str | None, timeout_s: float) -> LaunchReport:
        """Note."""
        self.asked.append(("launch", tuple(argv), cwd))
        return LaunchReport(pid=5, window=WINDOW, warning=None)

    def apps(self) -> tuple[AppInfo, ...]:
        """One."""
        return (AppInfo(pid=5, argv=("xterm",)),)

    async def stop_app(self, pid: int) -> None:
        """Only 5 is there."""
        self.asked.append(("end", pid))
        if pid != 5:
            raise InvalidAction("no program of ours")

    async def release_input(self) -> None:
        """Nothing is held."""

    async def windows(self) -> tuple[WindowInfo, ...]:
        """One."""
        return (WINDOW,)

    async def focus_window(self, number: int) -> WindowReport:
        """Only 7 is there."""
        self.asked.append(("focus", number))
        if number != 7:
            raise WindowNotFound("there is no window")
        return WindowReport(window=WINDOW)

    async def move_window(self, number: int, x: int, y: int) -> WindowReport:
        """Note."""
        self.asked.append(("move", number, x, y))
        return WindowReport(window=WINDOW)

    async def resize_window(self, number: int, width: int, height: int) -> WindowReport:
        """Note."""
        self.asked.append(("resize", number, width, height))
        return WindowReport(window=WINDOW)

    async def close_window(self, number: int, *, force: bool) -> None:
        """Note."""
        self.asked.append(("close", number, force))


async def _run(
    tmp_path: Path, arguments: dict[str, Any], *, holder: str | None = None, **settings: Any
) -> tuple[ToolResult, Any, Desktops]:
    session = _Session()
    make: Any = lambda *_: session  # noqa: E731
    desktops = Desktops(AgentdSettings(runtime_dir=tmp_path, **settings), make=make)
    call = ToolCallParams(call_id="1", name="apps", arguments=arguments, chat_id="c", root_chat_id="r")
    control = Control(desktops, idle_s=600)
    if holder is not None:
        await control.take("main", Party(seat="page", name=holder))
    try:
        return await apps_tool(Hands(desktops, control=control), desktops).run(call), session, desktops
    finally:
        await control.close()


@pytest.mark.parametrize(
    ("arguments", "asked", "key"),
    [
        (
            {"action": "open", "argv": ["xterm", "-e", "-n"], "cwd": "/"},
            ("launch", ("xterm", "-e", "-n"), "/"),
            "pid",
        ),
        ({"action": "list"}, None, "apps"),
        ({"action": "end", "pid": 5}, ("end", 5), "apps"),
        ({"action": "windows"}, None, "windows"),
        ({"action": "focus", "window": 7}, ("focus", 7), "window"),
        ({"action": "move", "window": 7, "x": 0, "y": -5}, ("move", 7, 0, -5), "window"),
        ({"action": "resize", "window": 7, "width": 9, "height": 8}, ("resize", 7, 9, 8), "window"),
        ({"action": "close", "window": 7, "force": True}, ("close", 7, True), "windows"),
    ],
    ids=lambda value: value["action"] if isinstance(value, dict) else "",
)  # fmt: skip
async def test_each_action_is_done_and_answered(
    tmp_path: Path, arguments: dict[str, Any], asked: Any, key: str
) -> None:
    """Required: programs and windows; 0 is a place."""
    result, session, _ = await _run(tmp_path, arguments)

    assert not result.is_error
    assert session.asked == ([asked] if asked else [])
    assert result.structured is not None
    assert key in result.structured


@pytest.mark.parametrize("action", [name for name, needs in NEEDS.items() if needs])
async def test_what_is_missing_is_named(tmp_path: Path, action: str) -> None:
    """Ours: nothing is done."""
    result, session, _ = await _run(tmp_path, {"action": action})

    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert all(name in result.content[0].text for name in NEEDS[action])
    assert session.asked == []


@pytest.mark.parametrize("arguments", [{"action": "end", "pid": 6}, {"action": "focus", "window": 8}])
async def test_refusal_of_the_desktop_is_told_to_the_model(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Ours: a result to read, not an exception."""
    result, _, _ = await _run(tmp_path, arguments)

    assert result.is_error


@pytest.mark.parametrize(
    ("arguments", "is_refused"),
    [({"action": "close", "window": 7}, True), ({"action": "open", "argv": ["xterm"]}, True),
     ({"action": "windows"}, False), ({"action": "list"}, False)],
)  # fmt: skip
async def test_while_a_person_has_control_the_agent_only_looks(
    tmp_path: Path, arguments: dict[str, Any], is_refused: bool
) -> None:
    """Required: one control lease; refusal, not queueing."""
    result, session, _ = await _run(tmp_path, arguments, holder="Ada")

    assert result.is_error == is_refused
    assert session.asked == []
    if is_refused:
        assert "Ada has control" in str(result.content[0])


async def test_desktop_is_that_of_the_chat(tmp_path: Path) -> None:
    """Required: the scope holds for every tool."""
    _, _, desktops = await _run(tmp_path, {"action": "list"}, desktop_scope="chat")

    assert desktops.names() == ["main", "chat-r"]
