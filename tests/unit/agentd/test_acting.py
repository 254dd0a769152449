"""The one way to a desktop."""

from pathlib import Path
from typing import Any

import pytest

from agentd.acting import LOCAL, Chore, Hands, Origin
from agentd.desktops import Desktops
from agentd.errors import DesktopBusy, NotFound
from agentd.settings import AgentdSettings
from agentd.turns import Turns
from computer.errors import StartFailed
from computer.wire import ActionReport, ComputerCall, ComputerResult

SECRET = "hunter2"


class _Session:
    """A desktop that answers what it is told to."""

    def __init__(self, answer: ComputerResult | Exception) -> None:
        self.answer = answer

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """Answer."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class _Diary:
    """Writes down what it sees."""

    def __init__(self, name: str, lines: list[Any]) -> None:
        self.name, self.lines = name, lines

    async def begin(self, desktop: str, call: ComputerCall, origin: Origin) -> "_Diary":
        """Before."""
        self.lines.append((self.name, "begin", desktop, origin.actor))
        return self

    async def ended(self, result: ComputerResult | None, error: BaseException | None) -> None:
        """After."""
        self.lines.append((self.name, "ended", result, error))


def _hands(
    tmp_path: Path, answer: ComputerResult | Exception, *names: str, **settings: Any
) -> tuple[Hands, list[Any], Any]:
    lines: list[Any] = []
    session = _Session(answer)
    make: Any = lambda *_: session  # noqa: E731
    desktops = Desktops(AgentdSettings(runtime_dir=tmp_path, **settings), make=make)
    return Hands(desktops, [_Diary(name, lines) for name in names]), lines, session


def _call(*actions: dict[str, object]) -> ComputerCall:
    return ComputerCall.model_validate({"actions": actions})


LOOK = _call({"action": "screenshot"})


async def test_watchers_see_a_call_before_and_after(tmp_path: Path) -> None:
    """Ours: in order, and back."""
    result = ComputerResult()
    hands, lines, _ = _hands(tmp_path, result, "a", "b")
    await hands.perform(LOOK, origin=Origin(actor="agent"))

    assert lines == [
        ("a", "begin", "main", "agent"),
        ("b", "begin", "main", "agent"),
        ("b", "ended", result, None),
        ("a", "ended", result, None),
    ]


async def test_watchers_see_how_a_call_failed(tmp_path: Path) -> None:
    """Ours: a call that raises is a call."""
    lost = StartFailed("no server")
    hands, lines, _ = _hands(tmp_path, lost, "a")
    with pytest.raises(StartFailed):
        await hands.perform(LOOK)

    assert lines == [("a", "begin", "main", "local"), ("a", "ended", None, lost)]


@pytest.mark.parametrize(
    ("scope", "desktop"), [("workspace", "main"), ("chat", "chat-root")], ids=["workspace", "chat"]
)
async def test_chat_acts_on_its_own_desktop_where_that_is_set(
    tmp_path: Path, scope: str, desktop: str
) -> None:
    """Required: AGENTD_DESKTOP_SCOPE; a sub-agent works at the desktop of the chat that it helps."""
    hands, lines, _ = _hands(tmp_path, ComputerResult(), "a", desktop_scope=scope)
    await hands.perform(LOOK, origin=Origin(actor="agent", chat_id="child", root_chat_id="root"))

    assert lines[0] == ("a", "begin", desktop, "agent")


async def test_unknown_desktop_is_no_call(tmp_path: Path) -> None:
    """Ours: nothing to see."""
    hands, lines, _ = _hands(tmp_path, ComputerResult(), "a")
    with pytest.raises(NotFound):
        await hands.perform(LOOK, desktop="other")

    assert lines == []


async def test_secret_is_hidden_in_later_results(tmp_path: Path) -> None:
    """Ours: a secret on the clipboard is not read back, neither by the model nor by the log."""
    hands, _, session = _hands(tmp_path, ComputerResult())
    await hands.perform(_call({"action": "set_clipboard", "text": SECRET, "secret": True}))
    session.answer = ComputerResult(reports=(ActionReport(action="get_clipboard", output=f"<{SECRET}>"),))
    result = await hands.perform(_call({"action": "get_clipboard"}))

    assert result.reports[0].output == "<***>"


async def test_agents_take_turns_and_nobody_else_does(tmp_path: Path) -> None:
    """The issue: one lease in turn; the shell and MCP clients are not agents of chats."""
    turns = Turns(idle_s=1_000, wait_s=0.01)
    session: Any = _Session(ComputerResult())
    desktops = Desktops(AgentdSettings(runtime_dir=tmp_path), make=lambda *_: session)
    hands = Hands(desktops, turns=turns)
    chore = Chore(name="focus_window", arguments={"window": 1})

    async def work(_: Any) -> str:
        return "done"

    agents = [Origin(actor="agent", chat_id=name, root_chat_id="root") for name in "ab"]
    await hands.perform(LOOK, origin=agents[0])
    with pytest.raises(DesktopBusy):
        await hands.perform(LOOK, origin=agents[1])
    with pytest.raises(DesktopBusy):
        await hands.manage(chore, work, origin=agents[1])
    for origin in (LOCAL, Origin(actor="mcp", chat_id="c"), agents[0]):
        assert await hands.perform(LOOK, origin=origin) == ComputerResult()
        assert await hands.manage(chore, work, origin=origin) == "done"
    turns.leave("a")
    await hands.perform(LOOK, origin=agents[1])
