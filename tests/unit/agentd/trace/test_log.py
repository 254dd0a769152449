"""The action log as a watcher of calls."""

from pathlib import Path
from typing import Any

from agentd.acting import Hands, Origin
from agentd.desktops import Desktops
from agentd.settings import AgentdSettings
from agentd.trace import log as module
from agentd.trace.log import ActionLog
from computer.errors import StartFailed
from computer.wire import ComputerCall, ComputerResult, DesktopStatus

CLICK = ComputerCall.model_validate({"actions": [{"action": "left_click", "coordinate": [1, 2]}]})


class _Session:
    problem: Exception | None = None

    def status(self) -> DesktopStatus:
        """It does not run yet, so there is nothing to see before."""
        return DesktopStatus(name="main", state="stopped", backend="fake", geometry="4x3")

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """Do nothing."""
        if self.problem is not None:
            raise self.problem
        return ComputerResult()


def _log(tmp_path: Path) -> tuple[ActionLog, Hands, _Session]:
    session = _Session()
    make: Any = lambda *_: session  # noqa: E731
    desktops = Desktops(AgentdSettings(runtime_dir=tmp_path / "r"), make=make)
    log = ActionLog(desktops, tmp_path / "actions", max_picture_bytes=1000)
    return log, Hands(desktops, [log]), session


async def test_calls_are_numbered_over_restarts_and_told_by_chat(tmp_path: Path) -> None:
    """Ours: the log goes on where it was; a chat's part can be had alone."""
    log, hands, _ = _log(tmp_path)
    await hands.perform(CLICK, origin=Origin(actor="agent", chat_id="c", call_id="1", vendor_call_id="v"))
    await hands.perform(CLICK)
    await log.close()
    log, hands, _ = _log(tmp_path)
    await hands.perform(CLICK)
    every, of_chat = await log.entries("main"), await log.entries("main", chat_id="c")
    await log.close()

    assert [entry.number for entry in every] == [1, 2, 3]
    assert [(entry.id, entry.actor, entry.vendor_call_id) for entry in of_chat] == [("1", "agent", "v")]


async def test_call_that_raises_is_logged_with_its_reason(tmp_path: Path) -> None:
    """Ours: what could not be done is a part of what happened."""
    log, hands, session = _log(tmp_path)
    session.problem = StartFailed("no server")
    try:
        await hands.perform(CLICK)
    except StartFailed:
        (entry,) = await log.entries("main")
    await log.close()

    assert (entry.error, entry.error_code) == ("no server", "start_failed")


async def test_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """Ours: told once in the daemon's log; the work goes on."""
    (tmp_path / "actions").write_text("a file where a directory should be")
    log, hands, _ = _log(tmp_path)
    result = await hands.perform(CLICK)
    await log.close()

    assert result == ComputerResult()


async def test_logs_of_earlier_desktops_are_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    """Ours: with a desktop for each chat there is one log more with each chat."""
    monkeypatch.setattr(module, "MAX_LOGS", 3)
    for name in "abcdef":
        (tmp_path / "actions" / name).mkdir(parents=True)
    log, hands, _ = _log(tmp_path)
    await hands.perform(CLICK)
    await log.close()

    assert len(list((tmp_path / "actions").iterdir())) == 3
    assert (tmp_path / "actions" / "main").is_dir()
