"""A whole `agentd up` as a child process, in a home of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

# Seconds. A cold start under load takes a few; a hang must fail long before CI's own limit.
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 15
MAIN = "from agentd.cli import main; main()"


def clean_environment(home: Path) -> dict[str, str]:
    """What a login shell has, and nothing of ours: no DISPLAY, no keys, no settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AGENTD_RUNTIME_DIR": str(home / "run"),
    }


@dataclass
class Up:
    """A running `agentd up`."""

    home: Path
    environment: dict[str, str]
    data: Path
    info: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    family: list[psutil.Process] = field(default_factory=list)

    def start(self) -> None:
        """Start it and read its one line of JSON."""
        log = (self.home / "up.log").open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "up", "--json", "--port", "0", "--data", str(self.data)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        log.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.home / "up.log").read_text()
        self.info = json.loads(line)

    def agentd(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command beside it."""
        return subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def children(self) -> list[psutil.Process]:
        """Everything it started that lives."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> list[psutil.Process]:
        """SIGKILL, as a power cut would; gives the processes that it had started."""
        assert self.process is not None
        family = self.children()
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
        self._close_pipe()
        return family

    def stop(self) -> int:
        """Ctrl-C; gives the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(STOP_TIMEOUT_S)
        self._close_pipe()
        return code

    def _close_pipe(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def xauthority(self) -> str:
        """The cookie file of its desktop."""
        return str(self.home / "run" / "desktop-main" / "Xauthority")


@pytest.fixture
def up() -> Iterator[Up]:
    """A fresh `agentd up`; stopped at the end, whatever happened."""
    home = Path(tempfile.mkdtemp(prefix="agentd-e2e-"))
    instance = Up(home=home, environment=clean_environment(home), data=home / "data")
    instance.start()
    try:
        yield instance
    finally:
        if instance.process is not None and instance.process.poll() is None:
            instance.stop()
        keep_log(home)
        shutil.rmtree(home, ignore_errors=True)


def keep_log(home: Path) -> None:
    """The daemon's log, as an artifact."""
    target = Path("artifacts")
    target.mkdir(exist_ok=True)
    log = home / "up.log"
    if log.exists():
        shutil.copy(log, target / f"{home.name}.log")


def wait_gone(processes: list[psutil.Process], timeout_s: float = 10) -> list[psutil.Process]:
    """Those of *processes* that still live after *timeout_s*."""
    _, alive = psutil.wait_procs(processes, timeout=timeout_s)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def poll(look: Any, *, timeout_s: float, what: str) -> Any:
    """Call *look* until it gives something true."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = look()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"gave up after {timeout_s} s waiting for {what}")
