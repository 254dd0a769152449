"""
When the workspace is ready: at once, after its start-up script, or when somebody says so.

A script that fails makes it ready too: a chat must not wait for ever. Its output is
in ``startup.log`` of the runtime directory.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import structlog
from pydantic import BaseModel

__all__ = ["Readiness", "Startup"]

# Seconds between SIGTERM and SIGKILL for a script that still runs at the daemon's end.
STOP_S = 2.0

log = structlog.get_logger("agentd.startup")


class Readiness(BaseModel):
    """Whether the workspace is ready, and what its start-up script does."""

    ready: bool
    script: Literal["none", "running", "succeeded", "failed"] = "none"
    exit_code: int | None = None


class Startup:
    """Runs the start-up script once and marks the workspace ready."""

    def __init__(
        self,
        *,
        script: str | None,
        must_be_told: bool,
        log_path: Path,
        working_dir: Path,
        environment: dict[str, str],
        on_ready: Callable[[], None],
    ) -> None:
        self._script = script
        self._must_be_told = must_be_told
        self._log_path = log_path
        self._working_dir = working_dir
        self._environment = environment
        self._on_ready = on_ready
        self.readiness = Readiness(ready=False, script="running" if script else "none")

    def mark_ready(self) -> None:
        """The workspace is ready; saying it again changes nothing."""
        if not self.readiness.ready:
            self.readiness = self.readiness.model_copy(update={"ready": True})
            log.info("workspace ready", action="workspace_ready")
            self._on_ready()

    async def run(self) -> None:
        """
        Run the script, if there is one, to its end.

        Cancellation: the script and everything in its process group are stopped.
        """
        if self._script is not None:
            code = await self._run_script(self._script)
            state: Literal["succeeded", "failed"] = "succeeded" if code == 0 else "failed"
            log.info("start-up script ended", action="startup_ended", exit_code=code)
            self.readiness = self.readiness.model_copy(update={"script": state, "exit_code": code})
        if not self._must_be_told:
            self.mark_ready()

    async def _run_script(self, script: str) -> int:
        output = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                script,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._working_dir,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as exc:
            log.warning("start-up script can't start", action="startup_failed", reason=str(exc))
            return 127
        finally:
            os.close(output)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await _stop(process)
            raise


async def _stop(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await process.wait()
                return
