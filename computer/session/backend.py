"""What a session needs from whatever makes its desktop."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Protocol

from computer.rfb.viewer import MAX_CLIPBOARD_BYTES
from computer.session.process import GRACE_S, ProcessWatch

__all__ = ["MAX_CUT_TEXT", "SERVER", "Backend", "RunningDesktop"]

# Bytes of a clipboard that Xvnc takes: what the relay lets through, 1 MiB of UTF-8 with its line ends
# doubled, a zero byte and the length.
MAX_CUT_TEXT = 2 * MAX_CLIPBOARD_BYTES + 64
# Role of the X server among the members of any desktop.
SERVER = "xvnc"


class RunningDesktop(Protocol):
    """An X server and what belongs to it, up and answering, closed to other users and machines."""

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
        """Processes without which there is no whole desktop, by role; the server first."""

    @property
    def mendable(self) -> Collection[str]:
        """Roles of members that ``mend`` can start again while the others go on."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is missing here, in sentences; it works without."""

    def log_tail(self, role: str) -> str:
        """End of what a member has written, "" when there is nothing."""

    async def mend(self, role: str) -> None:
        """
        Start a member that has died again; windows and programs stay.

        Raises:
            StartFailed: it does not come up, or can't be started alone.
        """

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Connect a viewer; the server has not been spoken to yet and asks for no password.

        Raises:
            DisplayLost: nobody listens.
        """

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End all members, by force after *grace_s*, and remove their files; harmless when repeated."""


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
