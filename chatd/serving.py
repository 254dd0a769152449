"""
A control plane from its start to the signal that ends it, beside the service manager that started it.

SIGTERM and SIGINT end it, SIGHUP has it read its settings again. What it says of itself goes to the
manager (`systemctl status`) and to the log.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum

import structlog

from agentd.wire.service import ServiceManager, take_sockets
from chatd.app import ControlPlane, load_scenario
from chatd.errors import ChatdError
from chatd.loading import BadSettings
from chatd.sealing import Sealer
from chatd.settings import ChatdSettings
from chatd.store.engines import check_url

__all__ = ["Told", "check_settings", "is_journal", "serve_until_told"]

LOCAL_AGENT = "workspace"
PREFIX = "CHATD_"
# Variables of ours that are no settings.
OTHER_VARIABLES = frozenset({"CHATD_CONFIG"})

log = structlog.get_logger("chatd")


class Told(StrEnum):
    """What the line on standard output holds once it serves."""

    URL = "url"
    TOKENS = "tokens"


def check_settings(settings: ChatdSettings, environment: Mapping[str, str] = os.environ) -> list[str]:
    """
    Look at what only a start would find out, and start nothing.

    Returns:
        Lines for people: what is odd, then that it is well.

    Raises:
        BadSettings: chatd would not start with them.
        ChatdError: a key or a scenario can't be used.
    """
    try:
        if settings.database is not None:
            check_url(settings.database)
    except ValueError as exc:
        raise BadSettings(f"setting database: {exc}") from exc
    if settings.secret_keys:
        Sealer([key.get_secret_value() for key in settings.secret_keys])
    if settings.rehearsal_scenario is not None:
        load_scenario(settings.rehearsal_scenario)
    source = environment.get("CHATD_CONFIG", "environment and arguments")
    return [*_unknown_variables(environment), f"the settings are well: {source}"]


def _unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none."""
    known = {PREFIX + name.upper() for name in ChatdSettings.model_fields} | OTHER_VARIABLES
    found = []
    for name in sorted(environment):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            close = get_close_matches(name.upper(), known, n=1)
            found.append(f"warning: {name} is no setting" + (f"; {close[0]} is one" if close else ""))
    return found


def is_journal(stream: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether descriptor *stream* ends in systemd's journal, where secrets have no place."""
    found = os.fstat(stream)
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


async def serve_until_told(
    settings: ChatdSettings, load: Callable[[], ChatdSettings], *, told: Told = Told.TOKENS
) -> None:
    """
    Serve until SIGINT or SIGTERM.

    Args:
        settings: to start with.
        load: reads them again.
        told: what goes to standard output once it serves.

    Raises:
        ChatdError: it can't start; nothing is left behind.
    """
    manager = ServiceManager.from_environment(os.environ)
    stopping, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    # A terminal that hangs up takes its programs with it.
    hangs_up = sys.stdin is not None and sys.stdin.isatty()
    loop.add_signal_handler(signal.SIGHUP, stopping.set if hangs_up else again.set)
    plane = ControlPlane(settings, _listener())
    await plane.start()
    try:
        await _tell(plane, told)
        manager.ready(plane.status())
        alive = asyncio.ensure_future(manager.keep_alive(plane.status))
        reloading = asyncio.ensure_future(manager.keep_reloading(again, lambda: _reload(plane, load)))
        try:
            await stopping.wait()
        finally:
            manager.stopping()
            for task in (alive, reloading):
                task.cancel()
            await asyncio.gather(alive, reloading, return_exceptions=True)
    finally:
        await plane.stop()


def _listener() -> socket.socket | None:
    """
    The socket that the service manager listens on for us.

    Raises:
        BadSettings: it handed over something else, or several.
    """
    try:
        sockets = take_sockets(os.environ)
    except ValueError as exc:
        raise BadSettings(str(exc)) from exc
    if len(sockets) > 1:
        raise BadSettings(f"the socket unit opens {len(sockets)} sockets; chatd serves one")
    return sockets[0] if sockets else None


async def _tell(plane: ControlPlane, told: Told) -> None:
    line = {"url": plane.url}
    if told is Told.TOKENS and not is_journal(sys.stdout.fileno()):
        tokens = await plane.issue_local_tokens(LOCAL_AGENT)
        line |= {"token": tokens.api, "agent_token": tokens.agent}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def _reload(plane: ControlPlane, load: Callable[[], ChatdSettings]) -> str:
    """Read the settings and take them up; what came of it. Bad ones change nothing."""
    try:
        settings = await asyncio.to_thread(load)
        check_settings(settings)
        text = str(await plane.reload(settings))
    except ChatdError as exc:
        log.error("settings not taken", action="reload_failed", reason=str(exc))  # noqa: TRY400 -- a person's mistake
        return f"the old settings go on: {exc}"
    except Exception as exc:
        log.exception("settings not taken", action="reload_failed")
        return f"the old settings go on: {type(exc).__name__}, see the log"
    log.info("settings read again", action="reloaded", outcome=text)
    return text
