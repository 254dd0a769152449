"""
Faults at random moments, against real servers: what is killed comes back or is named, and nothing is left.

FAULT_ROUNDS sets the number of rounds (10), of which each kind of fault gets its share; FAULT_SEED
repeats a run.
"""

import asyncio
import functools
import gc
import json
import logging
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import av
import psutil
import pytest

from computer.recording.encoder import FRAGMENT_MS
from computer.recording.orders import RecordOrder
from computer.recording.process import Recorder
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall, ComputerResult
from tests.integration.agentd.command import Command, Running
from tests.support.descriptors import count_descriptors

log = logging.getLogger(__name__)
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "10"))
SEED = int(os.environ.get("FAULT_SEED", "0")) or random.randrange(1, 2**31)  # noqa: S311
SIGNALS = (signal.SIGKILL, signal.SIGSEGV)
# Seconds. Generous: other tests share the machine.
LIMIT_S = 60
# Seconds within which a fault comes after the call has begun: before, in the middle, after.
SPREAD_S = 0.25
CALL = ComputerCall.model_validate(
    {
        "actions": [
            {"action": "left_click", "coordinate": [400, 300]},
            {"action": "type", "text": "echo hello\n"},
            {"action": "wait", "duration_ms": 50},
        ]
    }
)
pytestmark = pytest.mark.timeout(120 + 12 * ROUNDS)


@dataclass(frozen=True)
class Traces:
    """What may leak: of one process, and of one session's mark."""

    descriptors: int
    threads: int
    children: int


def _traces() -> Traces:
    own = psutil.Process()
    # Pictures are a bounded pool, and what a failed call had goes with its traceback.
    gc.collect()
    return Traces(
        descriptors=count_descriptors()[1],
        threads=own.num_threads(),
        children=len(own.children(recursive=True)),
    )


def _zombies(pid: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _belonging(text: bytes) -> list[int]:
    """Processes with *text* in their environment, however far they have gone."""
    return [pid for pid in psutil.pids() if text in _environ(pid)]


def _x_clients(pid: int, number: int) -> int:
    """Connections that an X server has open on its own socket."""
    path = f"/tmp/.X11-unix/X{number}"
    return sum(connection.laddr == path for connection in psutil.Process(pid).net_connections(kind="unix"))


async def _settle(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not is_so():  # noqa: ASYNC110  the kernel has no event for it
            await asyncio.sleep(0.05)


def _names_it(result: ComputerResult) -> bool:
    """Whether a result that did not work says why, and shows the next screen."""
    text = " ".join((*result.warnings, result.error or ""))
    return ("restarted" in text or "lost in the middle" in text) and result.screenshot is not None


@pytest.mark.parametrize("role", ["xvnc", "openbox"])
async def test_members_killed_at_random_moments(runtime_dir: Path, role: str) -> None:
    """Required: the next action works or names the restart; no descriptor, thread, child or client leaks."""
    dice = random.Random(f"{SEED}{role}")  # noqa: S311
    log.warning("FAULT_SEED=%s", SEED)  # pytest shows it when the test fails
    environment = {"PATH": os.environ["PATH"], "HOME": str(runtime_dir / "home")}
    session = DesktopSession(
        SessionSettings(runtime_dir=runtime_dir / "s", backend="xvnc"), base_environment=environment
    )
    await session.perform(CALL)
    # One of each kind, so that what is made once and kept is there before it is counted.
    await _one_round(session, role, dice)
    await session.stop()
    await session.perform(CALL)
    await session.open(["xterm"])
    before = _traces()
    for number in range(max(1, ROUNDS * 2 // 5)):
        async with asyncio.timeout(LIMIT_S):
            await _one_round(session, role, dice)
            # A minute without deaths is needed for the loop detector to forget; a stop is as good.
            if number % 3 == 2:
                await session.stop()
                await session.perform(CALL)
    await _settle(lambda: not _zombies(os.getpid()))
    await session.open(["xterm"])
    after = _traces()
    clients = _x_clients(session.status().pids["xvnc"], int(str(session.status().display)[1:]))
    mark = f"COMPUTER_SESSION={session.environment()['COMPUTER_SESSION']}".encode()
    display, server = str(session.status().display)[1:], session.status().pids["xvnc"]
    await session.stop()

    assert after.descriptors <= before.descriptors + 1
    assert after.threads <= before.threads + 2
    assert clients <= 8
    assert _belonging(mark) == []
    assert not _holds(display, server)


async def _one_round(session: DesktopSession, role: str, dice: random.Random) -> None:
    pid = session.status().pids[role]
    performing = asyncio.ensure_future(session.perform(CALL))
    await asyncio.sleep(dice.uniform(0, SPREAD_S))
    with suppress(ProcessLookupError):
        os.kill(pid, dice.choice(SIGNALS))
    hit = await performing
    following = await session.perform(CALL)

    assert hit.error is None or _names_it(hit)
    assert following.error is None or _names_it(following)


def _holds(display: str, pid: int) -> bool:
    """Whether the lock of a display is still that of a server; others take numbers meanwhile."""
    try:
        return int(Path(f"/tmp/.X{display}-lock").read_text()) == pid
    except (OSError, ValueError):
        return False


@asynccontextmanager
async def _daemon(command: Command) -> AsyncIterator[tuple[Running, aiohttp.ClientSession]]:
    running = Running(command, "daemon")
    connector = aiohttp.UnixConnector(path=str(command.runtime_dir / "agentd.sock"))
    try:
        async with aiohttp.ClientSession(connector=connector) as client:
            await _answering(client)
            yield running, client
    finally:
        await asyncio.to_thread(running.close)


async def _answering(client: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            with suppress(aiohttp.ClientError):
                async with client.get("http://agentd/api/v0/health") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(0.05)


async def _act(client: aiohttp.ClientSession) -> dict[str, Any]:
    body = json.loads(CALL.model_dump_json())
    async with client.post("http://agentd/api/v0/desktop/main/action", json=body) as response:
        answer: dict[str, Any] = await response.json()
        return answer


@pytest.mark.parametrize("also", [None, "xvnc"], ids=["daemon", "daemon and server"])
async def test_daemon_killed_at_random_moments(runtime_dir: Path, also: str | None) -> None:
    """Required: no orphan wherever it has gone, no lock; and the next daemon's first action works."""
    dice = random.Random(f"{SEED}{also}")  # noqa: S311
    log.warning("FAULT_SEED=%s", SEED)  # pytest shows it when the test fails
    command = Command(runtime_dir)
    home = f"HOME={runtime_dir}".encode()
    for _ in range(max(1, ROUNDS // 10)):
        async with _daemon(command) as (running, client):
            answer = await _act(client)
            assert answer["error"] is None
            body = {"argv": ["sh", "-c", "setsid sleep 4321 & exec sleep 4322"]}
            async with client.post("http://agentd/api/v0/desktop/main/open", json=body) as response:
                await response.read()
            async with client.get("http://agentd/api/v0/desktop") as response:
                status = (await response.json())[0]
            acting = asyncio.ensure_future(_act(client))
            await asyncio.sleep(dice.uniform(0, SPREAD_S))
            for pid in [status["pids"][also]] if also else []:
                os.kill(pid, signal.SIGSTOP)
            running.process.send_signal(dice.choice(SIGNALS))
            for pid in [status["pids"][also]] if also else []:
                os.kill(pid, signal.SIGKILL)
            with suppress(aiohttp.ClientError, TimeoutError, KeyError):
                await acting
        await _settle(lambda: not [pid for pid in _belonging(home) if "COMPUTER_SESSION=" in _text(pid)])
        await _settle(functools.partial(_is_free, status["display"][1:], status["pids"]["xvnc"]))
        await _settle(lambda: not (command.runtime_dir / "desktop-main" / "rfb.sock").exists())
    async with _daemon(command) as (_, client):
        answer = await _act(client)

    assert answer["error"] is None
    assert [report["action"] for report in answer["reports"]] == [step.action for step in CALL.actions]


def _is_free(display: str, pid: int) -> bool:
    return not _holds(display, pid)


def _text(pid: int) -> str:
    return _environ(pid).decode(errors="replace")


def _held_up_s(pid: int) -> float:
    """Seconds for which the threads of a process wanted a core and got none."""
    waits = [path.read_text().split()[1] for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(map(int, waits)) / 1e9


def _length_s(film: Path) -> float:
    with av.open(str(film)) as file:
        return max(frame.time or 0.0 for frame in file.decode(video=0))


async def test_recorder_killed_at_random_moments(runtime_dir: Path, tmp_path: Path) -> None:
    """Required: the film plays to within 1 s of the kill, less time that it was held up; nothing is left."""
    dice = random.Random(f"{SEED}recorder")  # noqa: S311
    log.warning("FAULT_SEED=%s", SEED)
    session = DesktopSession(
        SessionSettings(runtime_dir=runtime_dir / "s", backend="xvnc", width=640, height=480),
        base_environment={"PATH": os.environ["PATH"], "HOME": str(runtime_dir / "home")},
    )
    await session.perform(CALL)
    display, authority = str(session.status().display), session.environment()["XAUTHORITY"]
    before = _traces()
    missing = []
    for number in range(max(2, ROUNDS // 5)):
        film = tmp_path / f"{number}.mp4"
        recorder = await Recorder.start(RecordOrder(display=display, authority=authority, path=str(film)))
        began = time.monotonic()
        acting = asyncio.ensure_future(session.perform(CALL))
        await asyncio.sleep(dice.uniform(0, 4 * SPREAD_S))
        held_up_s = _held_up_s(recorder.pid)
        killed = time.monotonic()
        os.kill(recorder.pid, dice.choice(SIGNALS))
        assert await recorder.stop() is None
        assert (await acting).error is None
        # It has begun once one fragment is there, which stands for the time before.
        due_s = killed - began + FRAGMENT_MS / 1000 - held_up_s
        missing.append(due_s - await asyncio.to_thread(_length_s, film))
    after = _traces()
    clients = _x_clients(session.status().pids["xvnc"], int(display[1:]))
    await session.stop()

    assert max(missing) <= 1.0
    assert _zombies(os.getpid()) == []
    assert after.descriptors <= before.descriptors + 1
    assert after.children == before.children
    assert clients <= 8
