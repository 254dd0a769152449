"""Configurations, places and processes of these tests."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp_bridge.config import ConfigFile, parse_config
from mcp_bridge.hosting.connection import Place
from mcp_bridge.hosting.process import MARK
from mcp_bridge.wire import CallOutcome, TextBlock

HOSTILE = Path(__file__).parent / "hostile.py"


def entry(*modes: str, **fields: Any) -> dict[str, Any]:
    """The hostile server as an entry of a configuration file."""
    environment = {"HOSTILE": " ".join(modes), **fields.pop("env", {})}
    return {"command": sys.executable, "args": ["-I", str(HOSTILE)], "env": environment, **fields}


def config(servers: dict[str, Any]) -> ConfigFile:
    """A configuration file's content, read."""
    return parse_config(json.dumps({"mcpServers": servers}), source="test", environment=os.environ)


def place(mark: str) -> Place:
    """Where servers of a test run."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return Place(environment=environment, cwd="/", mark=mark, client_name="tests", client_version="0")


def marked_processes(mark: str) -> set[int]:
    """Living processes that carry *mark*."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            state = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            variables = (directory / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        if state not in "ZX" and any(item.startswith(f"{MARK}={mark}".encode()) for item in variables):
            found.add(int(directory.name))
    return found


def text_of(outcome: CallOutcome) -> str:
    """The text of an outcome."""
    return "\n".join(block.text for block in outcome.content if isinstance(block, TextBlock))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def listening(argv: list[str], port: int) -> AsyncIterator[None]:
    """A server that listens on *port*, which it also finds in PORT."""
    process = await asyncio.create_subprocess_exec(
        *argv, env={"PORT": str(port), "PATH": "/usr/bin:/bin"}, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    break
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(condition: Callable[[], bool], limit_s: float = 20) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 -- what processes do sets no event
            await asyncio.sleep(0.01)
