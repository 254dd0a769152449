"""A daemon is killed at each point of a click; an independent X client counts the clicks."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from Xlib import display as xdisplay

from computer.session import DesktopSession, SessionSettings
from tests.integration.computer.event_log import EventLog

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
LOGGER = HERE.parent / "computer" / "event_log.py"
# Seconds for anything that might hang. Generous: other tests share the machine.
LIMIT_S = 40


@pytest.fixture
async def session(runtime_dir: Path) -> AsyncIterator[DesktopSession]:
    """A desktop that outlives the daemons that use it."""
    settings = SessionSettings(
        name="once", runtime_dir=runtime_dir / "d", width=400, height=300, backend="xvnc"
    )
    base = {"PATH": os.environ["PATH"], "HOME": str(runtime_dir), "PYTHONPATH": str(ROOT)}
    session = DesktopSession(settings, base_environment=base)
    await session.ensure_running()
    yield session
    await session.stop()


@pytest.fixture
async def clicks(
    session: DesktopSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EventLog]:
    """A window over the whole screen that writes down what it receives."""
    path = tmp_path / "events"
    await session.open([sys.executable, str(LOGGER), str(path)])
    monkeypatch.setenv("XAUTHORITY", session.environment()["XAUTHORITY"])
    connection = xdisplay.Display(session.environment()["DISPLAY"])
    log = EventLog(path, connection)
    await log.ready()
    yield log
    connection.close()


async def _daemon(
    session: DesktopSession, ledger: Path, point: str, boot: str, owner: str
) -> tuple[int | None, Any]:
    variables = session.environment()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "click_victim.py"), point, str(ledger), variables["DISPLAY"],
        variables["XAUTHORITY"], boot, owner,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(ledger.parent)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(LIMIT_S):
        out, _ = await process.communicate()
    return process.returncode, json.loads(out) if out else None


@pytest.mark.parametrize(
    ("point", "clicks_before_and_after", "outcome"),
    [
        ("before_intent", (0, 1), "done"),
        ("after_intent", (0, 0), "unknown"),
        ("after_doing", (1, 0), "unknown"),
        ("after_answer", (1, 0), "done"),
    ],
)
async def test_click_happens_at_most_once_wherever_the_daemon_dies(
    session: DesktopSession,
    clicks: EventLog,
    point: str,
    clicks_before_and_after: tuple[int, int],
    outcome: str,
) -> None:
    """Ours: the repeat is done, told again, or unknown with a picture; never a second click."""
    ledger = clicks.path.with_name("calls.db")
    killed = await _daemon(session, ledger, point, "boot-1", "boot-1")
    first = [event for event in await clicks.take() if event["type"] == "press"]
    ended = await _daemon(session, ledger, "", "boot-2", "boot-1")
    second = [event for event in await clicks.take() if event["type"] == "press"]
    answer = ended[1]

    assert killed == (-signal.SIGKILL, None)
    assert clicks_before_and_after == (len(first), len(second))
    assert answer["is_error"] == (outcome == "unknown")
    assert (answer["structured"].get("code") == "outcome_unknown") == (outcome == "unknown")
    assert [block["type"] for block in answer["content"]][-1] == "image"
