"""A whole `agentd up` as a child process, in a home of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.browser import LIMIT_MS, WIDE, open_browser

ARTIFACTS = Path("artifacts")
# Seconds. A cold start under load takes a few; a hang must fail long before CI's own limit.
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
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

    def start(self, port: int = 0) -> None:
        """Start it and read its one line of JSON."""
        log = (self.home / "up.log").open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "up", "--json", "--port", str(port), "--data", str(self.data)],
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
def home() -> Iterator[Path]:
    """A home directory of its own, with a path short enough for sockets."""
    home = Path(tempfile.mkdtemp(prefix="agentd-e2e-"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


@contextmanager
def running(
    home: Path, *, turns: list[dict[str, Any]] | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Up]:
    """A fresh `agentd up`, whose rehearsal model plays *turns*; stopped at the end, whatever happened."""
    environment = clean_environment(home) | (variables or {})
    if turns is not None:
        scenario = home / "scenario.json"
        scenario.write_text(json.dumps({"turns": turns}))
        environment["CHATD_REHEARSAL_SCENARIO"] = str(scenario)
    instance = Up(home=home, environment=environment, data=home / "data")
    instance.start()
    try:
        yield instance
    finally:
        if instance.process is not None and instance.process.poll() is None:
            instance.stop()
        keep_log(home)


@pytest.fixture
def up(home: Path, request: pytest.FixtureRequest) -> Iterator[Up]:
    """A fresh `agentd up`, with variables as the parameter."""
    with running(home, variables=getattr(request, "param", {})) as instance:
        yield instance


@pytest.fixture
def expected_noise() -> tuple[str, ...]:
    """Words of console messages that are no fault; a module whose pages provoke some says which."""
    return ()


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A Chromium; each page of a test gets a context of its own."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def new_page(browser: Browser, expected_noise: tuple[str, ...]) -> Iterator[Callable[[], Page]]:
    """Makes pages with nothing in common; an error or warning that nobody expects fails the test."""
    problems: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(
            words in message.text for words in expected_noise
        ):
            problems.append(f"{message.type}: {message.text}")

    def make() -> Page:
        page = browser.new_context(viewport=WIDE).new_page()
        page.set_default_timeout(LIMIT_MS)
        page.on("console", on_console)
        page.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
        return page

    ARTIFACTS.mkdir(exist_ok=True)
    yield make
    assert problems == []


@pytest.fixture
def page(new_page: Callable[[], Page]) -> Page:
    """One page in a fresh Chromium."""
    return new_page()


def keep_log(home: Path) -> None:
    """The daemon's log, as an artifact."""
    ARTIFACTS.mkdir(exist_ok=True)
    log = home / "up.log"
    if log.exists():
        shutil.copy(log, ARTIFACTS / f"{home.name}.log")


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
