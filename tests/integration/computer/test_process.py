"""Supervision of real child processes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from computer.errors import StartFailed
from computer.session.process import Child, ProcessWatch

# Seconds. Generous: other tests share the machine.
LIMIT_S = 20


async def test_end_is_noticed_and_the_child_is_reaped(environment: dict[str, str]) -> None:
    """Ours: by pidfd, without polling."""
    child = Child(["sh", "-c", "exit 7"], environment=environment)
    async with asyncio.timeout(LIMIT_S):
        await child.wait()

    assert child.returncode == 7
    assert not child.is_alive
    assert not psutil.pid_exists(child.pid)


async def test_deaf_child_is_killed_with_its_group(environment: dict[str, str], runtime_dir: Path) -> None:
    """Ours: TERM, grace, KILL to the whole group."""
    ready = runtime_dir / "ready"
    script = (
        f"trap '' TERM; sleep 4325 & echo $! > {ready}.part; mv {ready}.part {ready}; while :; do wait; done"
    )
    child = Child(["sh", "-c", script], environment=environment)
    async with asyncio.timeout(LIMIT_S):
        while not ready.exists():  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)
        grandchild = ProcessWatch(int(ready.read_text()))
        await child.stop(grace_s=0.05)
        await grandchild.wait()

    assert child.returncode == -signal.SIGKILL


async def test_child_dies_with_its_parent(environment: dict[str, str], runtime_dir: Path) -> None:
    """Ours: PR_SET_PDEATHSIG; a killed daemon leaves no X server."""
    out = runtime_dir / "pid"
    code = f"""
import asyncio, pathlib
from computer.session.process import Child
async def main():
    child = Child(["sleep", "4326"], environment={environment!r})
    part = pathlib.Path({str(out)!r} + ".part")
    part.write_text(str(child.pid))
    part.rename({str(out)!r})
    await child.wait()
asyncio.run(main())
"""
    root = str(Path(__file__).parents[3])
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=root)
    async with asyncio.timeout(LIMIT_S):
        while not out.exists():  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)
        orphan = ProcessWatch(int(out.read_text()))
        os.kill(parent.pid, signal.SIGKILL)
        await parent.wait()
        await orphan.wait()

    assert not orphan.is_alive


@pytest.mark.parametrize("argv", [["no-such-program"], ["/etc/passwd"]])
async def test_program_that_cannot_run_is_refused(environment: dict[str, str], argv: list[str]) -> None:
    """Ours: typed, before anything is spawned."""
    with pytest.raises(StartFailed, match="is not installed"):
        Child(argv, environment=environment)


async def test_missing_directory_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    """Ours: a working directory that is not there."""
    with pytest.raises(StartFailed, match="can't be started"):
        Child(["true"], environment=environment, cwd=str(tmp_path / "missing"))
