"""The ``agentd`` command as a process of its own, in a home of its own."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
MAIN = [sys.executable, "-c", "from agentd.cli import main; main()"]
# Seconds. Generous: other tests share the machine, and the vendors' SDKs take seconds to load.
LIMIT_S = 50


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Command:
    """Runs `agentd` in *home*; *extra* are further variables."""

    home: Path
    path: str = field(default_factory=lambda: os.environ["PATH"])

    @property
    def runtime_dir(self) -> Path:
        """Where its daemon listens."""
        return self.home / "run"

    def environment(self, **extra: str) -> dict[str, str]:
        """All variables; nothing is inherited but the path."""
        variables = {
            "PATH": self.path,
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "AGENTD_RUNTIME_DIR": str(self.runtime_dir),
            "PYTHONPATH": str(ROOT),
        }
        return variables | extra

    def __call__(self, *arguments: str, **extra: str) -> Ended:
        """Run to the end."""
        done = subprocess.run(
            [*MAIN, *arguments],
            env=self.environment(**extra),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(code=done.returncode, out=done.stdout, err=done.stderr)


class Running:
    """A command that stays: `up` or `daemon`."""

    def __init__(self, command: Command, *arguments: str, **extra: str) -> None:
        self._log = (command.home / f"{arguments[0]}.log").open("wb")
        self.process = subprocess.Popen(
            [*MAIN, *arguments],
            env=command.environment(**extra),
            cwd=command.home,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def read_json(self) -> Any:
        """The line that tells it is ready."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def interrupt(self, limit_s: float) -> int:
        """Ctrl-C; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(limit_s)

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
