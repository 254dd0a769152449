"""The daemon's desktop sessions by name; started on first need, stopped together."""

from collections.abc import Callable
from pathlib import Path

from agentd.errors import NotFound, ShuttingDown
from agentd.settings import AgentdSettings
from computer.session import DesktopSession, SessionSettings

__all__ = ["MAIN", "Desktops"]

MAIN = "main"


class Desktops:
    """All desktop sessions of one daemon."""

    def __init__(
        self, settings: AgentdSettings, *, make: Callable[[SessionSettings], DesktopSession] = DesktopSession
    ) -> None:
        self._settings = settings
        self._make = make
        self._sessions: dict[str, DesktopSession] = {}
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

    def all(self) -> list[DesktopSession]:
        """Every session, the main one first."""
        self.get(MAIN)
        return list(self._sessions.values())

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
