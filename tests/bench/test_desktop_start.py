"""From nothing to a first screenshot: our session, beside the bare programs that it starts."""

import asyncio
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from computer.display.x11 import X11Display
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
# What is started keeps things in its home, and makes that where it may.
HOME = tempfile.TemporaryDirectory(prefix="bench-home-")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": HOME.name, "LANG": "C.UTF-8"}


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        yield Path(directory)


def test_start_to_screenshot_ours(benchmark: BenchmarkFixture, directory: Path) -> None:
    """Server, cookie, window manager, proof of closure, guard, driver, picture."""
    benchmark.group = "desktop start to first screenshot, 1280x800"
    with asyncio.Runner() as runner:
        session = DesktopSession(
            SessionSettings(runtime_dir=directory / "s", backend="xvnc"), base_environment=ENVIRONMENT
        )
        benchmark.pedantic(
            lambda: runner.run(session.perform(LOOK)),
            setup=lambda: runner.run(session.stop()),
            rounds=15,
            warmup_rounds=1,
        )
        runner.run(session.stop())


def test_start_to_screenshot_bare_programs(benchmark: BenchmarkFixture, directory: Path) -> None:
    """Xvnc by -displayfd, openbox by its start-up command, one capture: what no session can beat."""
    benchmark.group = "desktop start to first screenshot, 1280x800"
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        reader, writer = os.pipe()
        server = subprocess.Popen(
            ["Xvnc", "-displayfd", str(writer), "-geometry", "1280x800", "-rfbport", "-1",
             "-rfbunixpath", str(directory / "r"), "-SecurityTypes", "None", "-nolisten", "tcp"],
            pass_fds=(writer,), env=ENVIRONMENT, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writer)
        number = b""
        while not number.endswith(b"\n"):
            number += os.read(reader, 10)
        os.close(reader)
        display = f":{int(number)}"
        ready = directory / "ready"
        ready.unlink(missing_ok=True)
        manager = subprocess.Popen(
            ["openbox", "--sm-disable", "--startup", f"touch {ready}"],
            env=ENVIRONMENT | {"DISPLAY": display}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        running.extend((server, manager))
        while not ready.exists():
            time.sleep(0.002)
        screen = X11Display(display)
        screen.capture()
        screen.close()

    def stop() -> None:
        while running:
            process = running.pop()
            process.terminate()
            process.wait()

    benchmark.pedantic(start, setup=stop, rounds=15, warmup_rounds=1)
    stop()


def test_death_of_the_server_is_noticed(benchmark: BenchmarkFixture, directory: Path) -> None:
    """From SIGKILL of Xvnc to the session's word that it does not run; beside it the kernel's."""
    benchmark.group = "a killed server, until it is told"
    told: asyncio.Queue[str] = asyncio.Queue()
    with asyncio.Runner() as runner:
        session = DesktopSession(
            SessionSettings(runtime_dir=directory / "s", backend="xvnc"),
            on_change=lambda status: told.put_nowait(status.state),
            base_environment=ENVIRONMENT,
        )

        async def come_up() -> None:
            await session.stop()
            await session.perform(LOOK)
            while not told.empty():
                told.get_nowait()

        async def kill_and_wait() -> None:
            os.kill(session.status().pids["xvnc"], signal.SIGKILL)
            while await told.get() == "running":
                pass

        benchmark.pedantic(
            lambda: runner.run(kill_and_wait()),
            setup=lambda: runner.run(come_up()),
            rounds=10,
        )
        runner.run(session.stop())


def test_death_of_a_child_is_noticed_by_a_pidfd(benchmark: BenchmarkFixture) -> None:
    """What the kernel takes to tell of a killed child."""
    benchmark.group = "a killed server, until it is told"
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        children.append(subprocess.Popen(["sleep", "600"]))

    def kill_and_wait() -> None:
        child = children.pop()
        descriptor = os.pidfd_open(child.pid)
        child.kill()
        select.select([descriptor], [], [])
        os.close(descriptor)
        child.wait()

    benchmark.pedantic(kill_and_wait, setup=start, rounds=10)
