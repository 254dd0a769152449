"""Replicas and workspaces as real processes that can be killed, stopped and started again."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from tests.support.cluster.postgres_pair import free_port
from tests.support.cluster.proxy import CutProxy

__all__ = ["FAKETIME", "AgentProcess", "Replica", "end_left_over"]

ROOT = Path(__file__).parents[3]
# Where Debian and Ubuntu keep what `apt install libfaketime` brings, on whatever processor.
FAKETIME = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "", "faketime/libfaketime.so.1")


class Replica:
    """
    One chatd; clients come to ``port``, workspaces, other replicas and PostgreSQL are behind proxies.

    Args:
        has_fake_clock: its wall clock can be set wrong (``step_clock``).

    Attributes:
        code: the directory with the packages that the next start runs.
    """

    def __init__(
        self, name: str, folder: Path, settings: dict[str, str], database: CutProxy, *, has_fake_clock: bool
    ) -> None:
        self.name, self.folder, self.database = name, folder, database
        self.settings = settings
        self.code = ROOT
        self.port = free_port()
        self.peers, self.workspaces = CutProxy(self.port), CutProxy(self.port)
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.tokens: dict[str, str] = {}
        self._offset = folder / f"{name}.clock"
        self.has_fake_clock = has_fake_clock and FAKETIME.exists()

    @property
    def url(self) -> str:
        """Where clients come."""
        return f"http://127.0.0.1:{self.port}"

    def step_clock(self, seconds: int) -> bool:
        """Set its wall clock wrong by so much; whether it has one that can be."""
        self._offset.write_text(f"{seconds:+d}s\n")
        return self.has_fake_clock

    async def start(self) -> None:
        """Start, and wait for its line."""
        if not self._offset.exists():
            self.step_clock(0)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LOGNAME": "tester",
            "CHATD_DATA_DIR": str(self.folder / self.name),
            "CHATD_ADVERTISE_URL": f"http://127.0.0.1:{self.peers.port}",
            **self.settings,
        }
        if self.has_fake_clock:
            environment |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self._offset),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        command = "from chatd.cli import main; main()"
        if self.has_fake_clock:
            # The one call that a fake clock breaks: sleeping until a time.
            command = "import threading, time; time.sleep = threading.Event().wait; " + command
        before = self.process
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 -- as fast as a fork
                (
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    sys.executable,
                    "-c",
                    command,
                    "serve",
                    "--port",
                    str(self.port),
                ),
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.code,
                env=environment,
            )
        self.starts += 1
        if before is not None and before.stdout is not None:
            # It ended by itself.
            before.stdout.close()
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        self.tokens = json.loads(line) if line else {}

    @property
    def is_up(self) -> bool:
        """Whether its process runs and printed its line."""
        return self.process is not None and self.process.poll() is None and bool(self.tokens)

    async def end(self, number: int = signal.SIGKILL) -> None:
        """A signal that ends it, and its end."""
        process = self.process
        if process is None:
            return
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, 20)
        if process.poll() is None:
            process.kill()
            await asyncio.to_thread(process.wait)
        assert process.stdout is not None
        process.stdout.close()

    async def keep_up(self, *, pause_s: float = 0.5) -> None:
        """As systemd would: start it again whenever it is not there."""
        while True:
            if self.process is None or self.process.poll() is not None:
                await self.start()
            await asyncio.sleep(pause_s)


def _serve_agent(environment: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith(("AGENTD_", "CHATD_"))]:
        del os.environ[name]
    os.environ.update(environment)
    log = os.open(environment["AGENTD_DATA_DIR"] + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(log, 1)

    async def run() -> None:
        daemon = Daemon(AgentdSettings())
        await daemon.start()
        await asyncio.Event().wait()

    asyncio.run(run())


def end_left_over(folder: Path) -> None:
    """End what killed workspaces left behind on purpose: their keepers, which hold commands."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class AgentProcess:
    """One agentd, forked from a process that has imported everything."""

    def __init__(self, name: str, folder: Path, control_urls: list[str], token: str) -> None:
        self.name = name
        home = folder / name
        home.mkdir()
        # Sockets' paths must be short.
        self.environment = {
            "HOME": str(home),
            "AGENTD_NAME": name,
            "AGENTD_DATA_DIR": str(home / "data"),
            "AGENTD_RUNTIME_DIR": str(home / "run"),
            "AGENTD_WORKING_DIR": str(home),
            "AGENTD_CONTROL_URL": ",".join(control_urls),
            "AGENTD_AGENT_TOKEN": token,
        }
        self.process: BaseProcess | None = None
        self.starts = 0

    def start(self) -> None:
        """Fork one."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self.process = context.Process(target=_serve_agent, args=(self.environment,), daemon=True)
        self.process.start()
        self.starts += 1

    async def kill(self) -> None:
        """SIGKILL, and its end."""
        if self.process is not None:
            self.process.kill()
            await asyncio.to_thread(self.process.join)

    async def keep_up(self, *, pause_s: float = 0.5) -> None:
        """As systemd would: start it again whenever it is not there."""
        while True:
            if self.process is None or not self.process.is_alive():
                self.start()
            await asyncio.sleep(pause_s)
