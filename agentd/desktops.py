"""
The daemon's desktop sessions by name: made and started on first need, stopped when idle, closed together.

Owns which desktop belongs to whom, who uses each, and when one has been idle for long enough.
A desktop is in use while somebody acts on it, watches it, holds control of it or records it.
"""

import asyncio
import hashlib
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path

import structlog

from agentd.errors import BadRequest, NotFound, ShuttingDown, TooMany
from agentd.settings import AgentdSettings
from computer.pixels import EncodingSettings
from computer.session import DesktopSession, SessionSettings
from computer.settling import SettleSettings
from computer.wire import DesktopStatus

__all__ = [
    "DIRECTORY_BYTES",
    "MAIN",
    "MAX_DESKTOPS",
    "OUR_PREFIXES",
    "Desktops",
    "Use",
    "workspace_environment",
]

MAIN = "main"
# Desktops that are not stopped at the same time. Each takes about 60 MB before any program runs.
MAX_DESKTOPS = 16
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Bytes of a session's directory below the runtime directory; a longer name is shortened to its hash.
DIRECTORY_BYTES = len("desktop-") + 12
# Seconds between two looks for idle desktops, as a part of the time they may be idle; at least the second.
IDLE_LOOKS = 10
MIN_IDLE_LOOK_S = 0.5
# `agentd up` is started with the vendors' keys in its environment; an agent at the desktop could print them.
SECRET_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
OUR_PREFIXES = ("AGENTD_", "CHATD_")

log = structlog.get_logger("agentd.desktops")


class Use(StrEnum):
    """What somebody does with a desktop; any of it keeps it from being stopped as idle."""

    ACTING = "acting"
    WATCHING = "watching"
    CONTROLLING = "controlling"
    RECORDING = "recording"


def workspace_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What programs at the desktop may know of *environment*: no model keys, no settings of ours."""
    return {
        name: value
        for name, value in environment.items()
        if not name.endswith(SECRET_SUFFIXES) and not name.startswith(OUR_PREFIXES)
    }


def _make_session(
    settings: SessionSettings, on_change: Callable[[DesktopStatus], None] | None = None
) -> DesktopSession:
    return DesktopSession(settings, on_change=on_change, base_environment=workspace_environment(os.environ))


class Desktops:
    """
    All desktop sessions of one daemon.

    Args:
        settings: the daemon's.
        make: makes a session; it is not started by that.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: AgentdSettings,
        *,
        make: Callable[[SessionSettings, Callable[[DesktopStatus], None]], DesktopSession] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._make = make or _make_session
        self._clock = clock
        self._sessions: dict[str, DesktopSession] = {}
        self._uses: defaultdict[str, Counter[Use]] = defaultdict(Counter)
        self._used_at: dict[str, float] = {}
        self._listeners: list[Callable[[DesktopStatus], None]] = []
        # Those of agents that are done, and the ends of those that made room.
        self._left: set[str] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._closed = False

    def name_for(self, chat_id: str | None, agent_chat_id: str | None = None) -> str:
        """
        Name of the desktop that a chat works at.

        Args:
            chat_id: of the chat that a person opened, whichever of its agents asks; None: of nobody.
            agent_chat_id: of that agent, or of the one that is meant; None: the chat itself.
        """
        scope = self._settings.desktop_scope
        if scope == "workspace" or chat_id is None:
            return MAIN
        return f"chat-{agent_chat_id or chat_id}" if scope == "agent" else f"chat-{chat_id}"

    def get(self, name: str = MAIN) -> DesktopSession:
        """
        The session called *name*; it is not started here, and only the main one is made here.

        Raises:
            NotFound: there is no such desktop.
        """
        self._check_open()
        if name != MAIN and name not in self._sessions:
            msg = f"no desktop named {name!r}; this daemon has {', '.join(map(repr, self.names()))}"
            raise NotFound(msg)
        return self.ensure(name)

    def ensure(self, name: str) -> DesktopSession:
        """
        The session called *name*, made if there is none; it is not started here.

        Raises:
            BadRequest: the name can't be one.
            TooMany: too many desktops run already.
        """
        self._check_open()
        if name not in self._sessions:
            self._check_room(name)
            self._sessions[name] = self._make(self._session_settings(name), self._announce)
        self._left.discard(name)
        self._used_at[name] = self._clock()
        return self._sessions[name]

    def status(self, name: str = MAIN) -> DesktopStatus:
        """The session's status, with those who watch it; it is not started here."""
        status = self._peek(name).status()
        return status.model_copy(update={"viewers": self._uses[status.name][Use.WATCHING]})

    def status_for(self, chat_id: str | None, agent_chat_id: str | None = None) -> DesktopStatus:
        """Status of the desktop that a chat works at (see ``name_for``); neither made nor started here."""
        name = self.name_for(chat_id, agent_chat_id)
        if name == MAIN or name in self._sessions:
            return self.status(name)
        return self._make(self._session_settings(name), self._announce).status()

    @contextmanager
    def using(self, name: str, why: Use) -> Iterator[None]:
        """Count one use of *name* while the block runs; it is not stopped as idle meanwhile."""
        self._uses[name][why] += 1
        try:
            yield
        finally:
            self._uses[name][why] -= 1
            self._used_at[name] = self._clock()

    def viewing(self, name: str) -> AbstractContextManager[None]:
        """Count one viewer of *name* while the block runs."""
        return self.using(name, Use.WATCHING)

    def names(self) -> list[str]:
        """Every desktop, the main one first."""
        return [MAIN, *(name for name in self._sessions if name != MAIN)]

    def subscribe(self, listener: Callable[[DesktopStatus], None]) -> Callable[[], None]:
        """
        Call *listener* with the new status after each change of any session's state.

        It must not block. Returns what ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def stop_idle(self) -> tuple[str, ...]:
        """Stop the desktops that nobody has used for as long as the settings allow; returns their names."""
        limit = self._settings.desktop_idle_stop_s
        idle = [name for name in self._sessions if limit > 0 and self._idle_s(name) >= limit]
        for name in idle:
            log.info("idle desktop stopped", action="desktop_idle", desktop=name, idle_s=limit)
            await self._sessions[name].stop()
        return tuple(idle)

    async def run(self) -> None:
        """Stop idle desktops for as long as the daemon lives; waits for ever where they may be idle."""
        limit = self._settings.desktop_idle_stop_s
        if limit <= 0:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(max(MIN_IDLE_LOOK_S, limit / IDLE_LOOKS))
            await self.stop_idle()

    async def close(self) -> None:
        """Stop every session and what it started."""
        self._closed = True
        await asyncio.gather(*(session.stop() for session in self._sessions.values()), *self._stopping)

    def _peek(self, name: str) -> DesktopSession:
        """Find a session without counting that as a use."""
        before = self._used_at.get(name)
        session = self.get(name)
        if before is not None:
            self._used_at[name] = before
        return session

    def _idle_s(self, name: str) -> float:
        """Seconds since the last use; 0 while there is one, or while nothing runs."""
        if self._uses[name].total() or self._sessions[name].status().state == "stopped":
            return 0.0
        return self._clock() - self._used_at[name]

    def leave(self, agent_chat_id: str) -> None:
        """An agent is done: its own desktop stays as it is, until another needs the room."""
        name = f"chat-{agent_chat_id}"
        if self._settings.desktop_scope == "agent" and name in self._sessions:
            self._left.add(name)

    def _check_open(self) -> None:
        if self._closed:
            raise ShuttingDown("the daemon is shutting down")

    def _check_room(self, name: str) -> None:
        if not NAME.fullmatch(name):
            msg = f"{name!r} can't name a desktop: letters, digits and ._- only, 64 at most"
            raise BadRequest(msg)
        if len(self._sessions) < MAX_DESKTOPS:
            return
        # What is stopped holds nothing, and what an agent has left is missed least: they make room.
        unused = [name for name in self._sessions if name != MAIN and not self._uses[name].total()]
        stopped = [name for name in unused if self._sessions[name].status().state == "stopped"]
        left = sorted((name for name in unused if name in self._left), key=self._used_at.__getitem__)
        for other in (stopped + left)[:1]:
            self._part_with(other)
            return
        msg = f"{MAX_DESKTOPS} desktops run already; stop one with `agentd desktop down --name NAME`"
        raise TooMany(msg)

    def _part_with(self, name: str) -> None:
        """Forget a session that nobody uses, and stop it behind everybody's back."""
        session = self._sessions.pop(name)
        del self._used_at[name]
        self._left.discard(name)
        if session.status().state != "stopped":
            log.info("desktop stopped for another", action="desktop_parted", desktop=name)
            task = asyncio.get_running_loop().create_task(session.stop(), name=f"stop {name}")
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _session_settings(self, name: str) -> SessionSettings:
        settings = self._settings
        return SessionSettings(
            name=name,
            width=settings.desktop_width,
            height=settings.desktop_height,
            runtime_dir=Path(settings.runtime_dir) / _directory(name),
            dpi=settings.desktop_dpi,
            wallpaper=settings.desktop_wallpaper,
            backend=settings.desktop_backend,
            portabledesktop=settings.portabledesktop,
            settle=SettleSettings(
                quiet_ms=settings.settle_quiet_ms,
                long_quiet_ms=settings.settle_long_quiet_ms,
                is_patient=settings.settle_patient,
                cap_ms=settings.settle_cap_ms,
            ),
            encoding=EncodingSettings(
                format=settings.picture_format,
                quality=settings.picture_quality,
                max_bytes=settings.picture_max_bytes,
            ),
        )

    def _announce(self, status: DesktopStatus) -> None:
        log.info(
            "desktop changed",
            action="desktop_state",
            desktop=status.name,
            state=status.state,
            error=status.error,
        )
        for listener in tuple(self._listeners):
            listener(status)


def _directory(name: str) -> str:
    directory = f"desktop-{name}"
    if len(directory) <= DIRECTORY_BYTES:
        return directory
    return f"desktop-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
