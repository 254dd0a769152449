"""The daemon's desktop sessions by name; started on first need, stopped together."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentd.errors import NotFound, ShuttingDown
from agentd.settings import AgentdSettings
from computer.session import DesktopSession, SessionSettings
from computer.wire import DesktopStatus

__all__ = ["MAIN", "Desktops", "workspace_environment"]

MAIN = "main"
# `agentd up` is started with the vendors' keys in its environment; an agent at the desktop could print them.
SECRET_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
OUR_PREFIXES = ("AGENTD_", "CHATD_")


def workspace_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What programs at the desktop may know of *environment*: no model keys, no settings of ours."""
    return {
        name: value
        for name, value in environment.items()
        if not name.endswith(SECRET_SUFFIXES) and not name.startswith(OUR_PREFIXES)
    }


def _make_session(settings: SessionSettings) -> DesktopSession:
    return DesktopSession(settings, base_environment=workspace_environment(os.environ))


class Desktops:
    """All desktop sessions of one daemon."""

    def __init__(
        self, settings: AgentdSettings, *, make: Callable[[SessionSettings], DesktopSession] | None = None
    ) -> None:
        self._settings = settings
        self._make = make or _make_session
        self._sessions: dict[str, DesktopSession] = {}
        self._viewers: Counter[str] = Counter()
        self._closed = False

    def get(self, name: str = MAIN) -> DesktopSession:
        """
        The session called *name*; it is not started here.

        Raises:
            NotFound: there is no such desktop.
        """
        if self._closed:
            raise ShuttingDown("the daemon is shutting down")
        if name != MAIN:
            msg = f"no desktop named {name!r}; this daemon has {MAIN!r}"
            raise NotFound(msg)
        if name not in self._sessions:
            self._sessions[name] = self._make(self._session_settings(name))
        return self._sessions[name]

    def status(self, name: str = MAIN) -> DesktopStatus:
        """The session's status, with those who watch it; it is not started here."""
        return self.get(name).status().model_copy(update={"viewers": self._viewers[name]})

    @contextmanager
    def viewing(self, name: str) -> Iterator[None]:
        """Count one viewer of *name* while the block runs."""
        self._viewers[name] += 1
        try:
            yield
        finally:
            self._viewers[name] -= 1

    def names(self) -> list[str]:
        """Every desktop, the main one first."""
        self.get(MAIN)
        return list(self._sessions)

    def _session_settings(self, name: str) -> SessionSettings:
        return SessionSettings(
            name=name,
            width=self._settings.desktop_width,
            height=self._settings.desktop_height,
            runtime_dir=Path(self._settings.runtime_dir) / f"desktop-{name}",
            backend=self._settings.desktop_backend,
            portabledesktop=self._settings.portabledesktop,
        )

    async def close(self) -> None:
        """Stop every session and what it started."""
        self._closed = True
        for session in self._sessions.values():
            await session.stop()
