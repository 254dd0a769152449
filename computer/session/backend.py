"""What a session needs from whatever makes its desktop."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from computer.session.process import ProcessWatch

__all__ = ["Backend", "RunningDesktop"]


class RunningDesktop(Protocol):
    """An X server and what belongs to it, up and answering."""

    @property
    def display(self) -> str:
        """X display, ``":10"``."""

    @property
    def cookie(self) -> bytes | None:
        """MIT-MAGIC-COOKIE-1, None where the server asks for none."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that a client needs beside its own: DISPLAY, XAUTHORITY."""

    @property
    def members(self) -> Mapping[str, ProcessWatch]:
        """Processes without which there is no desktop, by role."""

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Connect a viewer.

        Raises:
            DisplayLost: nobody listens.
        """

    async def stop(self) -> None:
        """End all members and remove their files; harmless when repeated."""


class Backend(Protocol):
    """Makes desktops."""

    @property
    def name(self) -> str:
        """``xvnc`` or ``portabledesktop``."""

    async def start(self, environment: Mapping[str, str]) -> RunningDesktop:
        """
        Bring a desktop up.

        Raises:
            StartFailed: with the reason and the end of the log; nothing is left running.

        Cancellation:
            nothing is left running.
        """
