"""The daemon's local API beside the same calls in process, and what the daemon costs at rest."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from agentd.cli.client import local_client
from agentd.cli.exits import CliError
from computer.display.x11 import connect
from computer.display.x11.authority import read_cookie
from computer.display.x11.connection import disconnect
from tests.bench.desk import Desk
from tests.bench.screen import paint, terminals, touch

R = TypeVar("R")

SIZE = (1280, 800)
MAIN = "from agentd.cli import main; main()"
ROOT = Path(__file__).parents[2]
START_S = 50
# Seconds in which a daemon with nothing to do is watched.
IDLE_S = 40

ACTIONS: dict[str, dict[str, object]] = {
    "move": {"action": "mouse_move", "coordinate": [30, 780]},
    "click": {"action": "back_click", "coordinate": [30, 780]},
    "key": {"action": "key", "text": "shift"},
    "unchanged screen": {"action": "screenshot"},
}
LOOK = ACTIONS["unchanged screen"]

pytestmark = [
    pytest.mark.parametrize("desk", [SIZE], indirect=True, ids=["1280x800"]),
    pytest.mark.usefixtures("desk"),
]


class RunningDaemon:
    """`agentd daemon` as a process of its own, with the same screen, and a client of its socket."""

    def __init__(self, home: Path) -> None:
        self._runner, self._stack, runtime = asyncio.Runner(), AsyncExitStack(), home / "run"
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
        variables |= {"AGENTD_RUNTIME_DIR": str(runtime), "AGENTD_DESKTOP_BACKEND": "xvnc"}
        # Whose files hold still: the daemon watches them for context.
        variables |= {"AGENTD_WORKING_DIR": str(ROOT)}
        self.process = psutil.Popen(
            [sys.executable, "-c", MAIN, "daemon"], env=variables, cwd=home, stderr=subprocess.DEVNULL
        )
        self._client = self._run(self._stack.enter_async_context(local_client(runtime)))
        name = self._start_desktop()
        self.painter = connect(name, read_cookie(runtime / "desktop-main" / "Xauthority", name))
        paint(self.painter, SIZE)
        for argv in terminals(SIZE, "/dev/null"):
            self.ask("open", {"argv": argv})
        self.ask("action", {"action": "wait_settled", "quiet_ms": 1_000, "timeout_ms": 20_000})

    def ask(self, path: str, body: object | None = None) -> Any:
        """Post to the main desktop's API."""
        return self._run(self._client.request("POST", f"/api/v0/desktop/main/{path}", body))

    def get_png(self) -> bytes:
        """Picture of the main desktop."""
        picture: bytes = self._run(self._client.request("GET", "/api/v0/desktop/main/screenshot"))
        return picture

    def touch(self) -> None:
        """Change a pixel of every row."""
        touch(self.painter, SIZE[0] - 2, 0, 1, SIZE[1])

    def close(self) -> None:
        """End it and all that it started."""
        disconnect(self.painter)
        self._run(self._stack.aclose())
        self._runner.close()
        self.process.terminate()
        self.process.wait(timeout=START_S)

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        # Runner.run prepares for Ctrl-C each time, and writes the whole answer into an error meanwhile.
        return self._runner.get_loop().run_until_complete(work)

    def _start_desktop(self) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(CliError):
                return str(self.ask("up")["display"])
            time.sleep(0.1)
        pytest.fail("the daemon did not start")


@pytest.fixture(scope="module")
def daemon() -> Iterator[RunningDaemon]:
    """A daemon with a desktop."""
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        running = RunningDaemon(Path(home))
        yield running
        running.close()


@pytest.mark.parametrize("what", ACTIONS)
class TestCalls:
    """Each call in process and through the socket, JSON and all."""

    def test_ours_in_process(self, benchmark: BenchmarkFixture, desk: Desk, what: str) -> None:
        """Through ``DesktopSession``."""
        benchmark.group = f"{what}, in process and through the daemon"
        call = desk.call(ACTIONS[what], screenshot=ACTIONS[what] is LOOK)
        benchmark.pedantic(lambda: desk.run(desk.session.perform(call)), rounds=200, warmup_rounds=3)

    def test_through_the_daemon(self, benchmark: BenchmarkFixture, daemon: RunningDaemon, what: str) -> None:
        """Through its Unix socket."""
        benchmark.group = f"{what}, in process and through the daemon"
        benchmark.pedantic(lambda: daemon.ask("action", ACTIONS[what]), rounds=200, warmup_rounds=3)


@pytest.mark.benchmark(group="a new screenshot, in process and through the daemon")
def test_screenshot_ours_in_process(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A new picture each time."""
    call = desk.call(LOOK)
    benchmark.pedantic(
        lambda: desk.run(desk.session.perform(call)), setup=desk.touch_all, rounds=30, warmup_rounds=2
    )


@pytest.mark.benchmark(group="a new screenshot, in process and through the daemon")
def test_screenshot_through_the_daemon_as_json(benchmark: BenchmarkFixture, daemon: RunningDaemon) -> None:
    """The whole result, its picture in base64."""
    benchmark.pedantic(lambda: daemon.ask("action", LOOK), setup=daemon.touch, rounds=30, warmup_rounds=2)


@pytest.mark.benchmark(group="a new screenshot, in process and through the daemon")
def test_screenshot_through_the_daemon_as_png(benchmark: BenchmarkFixture, daemon: RunningDaemon) -> None:
    """The picture alone."""
    benchmark.pedantic(daemon.get_png, setup=daemon.touch, rounds=30, warmup_rounds=2)


@pytest.mark.benchmark(group="unchanged screen, in process and through the daemon")
def test_through_the_daemon_as_png(benchmark: BenchmarkFixture, daemon: RunningDaemon) -> None:
    """The picture alone."""
    benchmark.pedantic(daemon.get_png, rounds=200, warmup_rounds=2)


@pytest.mark.benchmark(group="seconds in which nothing happens and nobody watches")
def test_idle_daemon(benchmark: BenchmarkFixture, daemon: RunningDaemon) -> None:
    """Its share of one core."""
    time.sleep(2)
    before = sum(daemon.process.cpu_times()[:2])
    benchmark.pedantic(time.sleep, args=(IDLE_S,), rounds=1)
    used = sum(daemon.process.cpu_times()[:2]) - before
    benchmark.extra_info["percent of a core"] = round(100 * used / IDLE_S, 3)
