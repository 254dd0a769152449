"""
What a daemon and the service manager that started it tell each other: systemd's notify protocol.

Datagrams of ``NAME=value`` lines to the socket in ``NOTIFY_SOCKET``. Without one nothing is told, and
nothing fails: a daemon runs the same on a terminal.

Source: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).
"""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping

__all__ = ["ServiceManager", "render_notice", "take_sockets"]

# The first descriptor that a manager hands over.
FIRST_DESCRIPTOR = 3
# Signs of life within one period of the watchdog; the manual asks for two.
SIGNS_A_PERIOD = 3
# Characters of a status; `systemctl status` shows one line.
MAX_STATUS_CHARACTERS = 200


def render_notice(**fields: str | int) -> bytes:
    """One datagram; a value that would begin another field is told on one line."""
    lines = (f"{name}={' '.join(str(value).splitlines())}" for name, value in fields.items())
    return "\n".join(lines).encode(errors="replace")


class ServiceManager:
    """
    Whoever started us and waits to hear of it; nobody, when *address* is None.

    *watchdog_s* are the seconds after which silence counts as death; None: nobody counts.
    """

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address
        self._watchdog_s = watchdog_s

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> "ServiceManager":
        """The manager that *environment* names; taken out of it, so that no child speaks for us."""
        address = environment.pop("NOTIFY_SOCKET", None)
        period = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", str(os.getpid()))
        is_watched = period.isdecimal() and int(period) > 0 and pid == str(os.getpid())
        return cls(address or None, int(period) / 1e6 if is_watched else None)

    @property
    def is_there(self) -> bool:
        """Whether somebody wants to hear."""
        return self._address is not None

    def tell(self, **fields: str | int) -> None:
        """Send one notice; a manager that does not take it is no reason to stop."""
        if self._address is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            try:
                sender.sendto(render_notice(**fields), self._address)
            except OSError:
                return

    def ready(self, status: str) -> None:
        """We serve; also after a reload."""
        self.tell(READY=1, STATUS=status[:MAX_STATUS_CHARACTERS])

    def reloading(self) -> None:
        """We read our configuration again; ``ready`` ends that."""
        self.tell(RELOADING=1, MONOTONIC_USEC=time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)

    def stopping(self) -> None:
        """We end what we do and go."""
        self.tell(STOPPING=1, STATUS="stopping")

    async def keep_alive(self, status: Callable[[], str]) -> None:
        """
        Tell that the event loop runs, and *status* as often; until cancelled.

        Returns at once when nobody counts: then the status of ``ready`` stays.
        """
        if self._address is None or self._watchdog_s is None:
            return
        while True:
            self.tell(WATCHDOG=1, STATUS=status()[:MAX_STATUS_CHARACTERS])
            await asyncio.sleep(self._watchdog_s / SIGNS_A_PERIOD)

    async def keep_reloading(self, asked: asyncio.Event, reload: Callable[[], Awaitable[str]]) -> None:
        """Call *reload* whenever *asked* is set, and tell what it says came of it; until cancelled."""
        while True:
            await asked.wait()
            asked.clear()
            self.reloading()
            self.ready(await reload())


def take_sockets(environment: MutableMapping[str, str]) -> list[socket.socket]:
    """
    The listening sockets that the manager opened for us, none by default; children do not get them.

    Raises:
        ValueError: what was handed over is no listening stream socket.
    """
    pid, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    taken = [_adopt(FIRST_DESCRIPTOR + index) for index in range(int(count))]
    for listener in taken:
        is_stream = listener.type == socket.SOCK_STREAM
        if not is_stream or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            msg = f"descriptor {listener.fileno()} of the service manager does not listen for connections"
            raise ValueError(msg)
    return taken


def _adopt(descriptor: int) -> socket.socket:
    os.set_inheritable(descriptor, False)
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError as exc:
        msg = f"descriptor {descriptor} of the service manager is no socket: {exc.strerror}"
        raise ValueError(msg) from exc
    listener.setblocking(False)
    return listener
