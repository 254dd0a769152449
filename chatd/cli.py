"""
The ``chatd`` command: the control plane alone.

Exit codes: 0 done, 1 failed, 2 bad usage, 3 can't start.
"""

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import structlog
from cyclopts import Parameter
from pydantic import ValidationError

from agentd.wire.version import VERSION
from chatd.app import ControlPlane
from chatd.errors import ChatdError
from chatd.settings import ChatdSettings

__all__ = ["main"]

CANNOT_START = 3
USAGE = 2

app = cyclopts.App(
    name="chatd", version=VERSION, help="Durable chats with model vendors; workspaces dial in over the link."
)


def main() -> None:
    """Run the command line."""
    try:
        app()
    finally:
        # The interpreter's last collection would walk the vendors' SDKs for a second.
        gc.freeze()


def _fail(message: str, exit_code: int) -> None:
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(exit_code)


def _log_to_stderr() -> None:
    """JSON lines; standard output is for the line that callers read, and no traceback shows values."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


@app.command
def serve(
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    host: Annotated[str | None, Parameter(help="Address to listen on.")] = None,
    port: Annotated[int | None, Parameter(help="TCP port; 0: a free one.")] = None,
) -> None:
    """
    Run the control plane.

    Prints one line of JSON once ready: {url, token, agent_token}. The
    tokens are for `Authorization: Bearer` and for AGENTD_AGENT_TOKEN.

    Examples:
    --------
    chatd serve --data /var/lib/chatd --port 7080
    """
    _log_to_stderr()
    given: dict[str, Any] = {"data_dir": data, "host": host, "port": port}
    try:
        settings = ChatdSettings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        _fail(f"setting {'.'.join(str(step) for step in first['loc'])}: {first['msg']}", USAGE)
        return
    try:
        asyncio.run(_serve(settings))
    except ChatdError as exc:
        _fail(str(exc), CANNOT_START)


async def _serve(settings: ChatdSettings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    plane = ControlPlane(settings)
    await plane.start()
    try:
        tokens = await plane.issue_local_tokens("workspace")
        line = {"url": plane.url, "token": tokens.api, "agent_token": tokens.agent}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        await stopping.wait()
    finally:
        await plane.stop()
