"""``agentd daemon`` and ``agentd health``."""

import asyncio
import os
import signal
import sys
from typing import Annotated

import structlog
from cyclopts import Parameter

from agentd.app import Daemon
from agentd.cli.client import local_client
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.logs import configure_logging
from agentd.cli.run import Json, load_settings, read_settings, run
from agentd.cli.up import wait_for_signal
from agentd.errors import AgentError
from agentd.settings import AgentdSettings
from agentd.wire.service import ServiceManager
from mcp_bridge.errors import BridgeError

__all__ = ["daemon", "health"]

CheckConfig = Annotated[
    bool, Parameter(negative="", help="Only say whether the settings make sense; exit code 2: no.")
]

log = structlog.get_logger("agentd")


def daemon(*, check_config: CheckConfig = False) -> None:
    """
    Run the workspace daemon alone (what systemd starts).

    AGENTD_CONTROL_URL and AGENTD_AGENT_TOKEN name the control plane it dials.
    """
    settings = load_settings()
    if check_config:
        source = os.environ.get("AGENTD_CONFIG", "environment")
        sys.stdout.write(f"the settings are well: {source}\n")
        return
    configure_logging(settings.log_level)
    run(lambda: _serve(settings))


async def _serve(settings: AgentdSettings) -> None:
    manager = ServiceManager.from_environment(os.environ)
    stopping, again = _signals()
    service = Daemon(settings)
    beside: list[asyncio.Future[None]] = []
    try:
        await service.start()
        manager.ready(service.status())
        beside = [
            asyncio.ensure_future(manager.keep_alive(service.status)),
            asyncio.ensure_future(manager.keep_reloading(again, lambda: _reload(service))),
        ]
        waiter = asyncio.ensure_future(service.wait_failed())
        signal_task = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({waiter, signal_task}, return_when=asyncio.FIRST_COMPLETED)
        if waiter.done():
            text = f"the control plane refused this agent's token: {waiter.exception()}"
            raise CliError(Exit.CANNOT_START, text, code="link_refused")
        waiter.cancel()
    except (AgentError, OSError) as exc:
        code = getattr(exc, "code", "os_error")
        raise CliError(Exit.CANNOT_START, str(exc), code=code) from exc
    finally:
        manager.stopping()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await service.stop()


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Events that end the daemon, and that have it read its settings again (SIGHUP that no terminal sent)."""
    stopping, again = wait_for_signal(), asyncio.Event()
    if sys.stdin is None or not sys.stdin.isatty():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, again.set)
    return stopping, again


async def _reload(service: Daemon) -> str:
    """Read the settings and take them up; what came of it. Bad ones change nothing."""
    try:
        settings = await asyncio.to_thread(read_settings)
        plan = await service.reload(settings)
    except (CliError, BridgeError) as exc:
        log.error("settings not taken", action="reload_failed", reason=str(exc))  # noqa: TRY400 -- a person's mistake
        return f"the old settings go on: {exc}"
    except Exception as exc:
        log.exception("settings not taken", action="reload_failed")
        return f"the old settings go on: {type(exc).__name__}, see the log"
    configure_logging(service.settings.log_level)
    log.info("settings read again", action="reloaded", outcome=str(plan))
    return str(plan)


def health(*, as_json: Json = False) -> None:
    """Ask the running daemon how its parts are."""

    async def work() -> None:
        async with local_client(load_settings().runtime_dir) as client:
            found = await client.request_any("GET", "/api/v0/health/parts")
        if as_json:
            print_json(found)
        else:
            lines = [f"{part}: {word}" for part, word in found["checks"].items()]
            sys.stdout.write("\n".join(lines) + "\n")
        if found["status"] != "ok":
            raise SystemExit(int(Exit.FAILED))

    run(work, as_json=as_json)
