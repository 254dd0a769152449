"""
The socket of an RFB connection, and the waiting.

Belongs to the thread of its display, except ``abort``. The server sends pictures only when
asked, and nothing is read between calls, so there is no thread and no queue.
"""

import ipaddress
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from computer.errors import CaptureTimeout, DisplayLost
from computer.rfb import Event, FenceReply, RfbClient
from computer.rfb.client import PLAIN, SMALL
from computer.rfb.messages import FenceFlag, render_fence

__all__ = ["ANSWER_LIMIT_S", "Address", "RfbConnection"]

# Path of a Unix socket, or host and port.
Address = str | Path | tuple[str, int]

# Seconds in which a server must answer, and take what is sent to it.
ANSWER_LIMIT_S = 8.0
# Seconds after the handshake in which the server tells what it is able to.
GREET_S = 0.3
READ_BYTES = 1 << 20


class RfbConnection:
    """
    A connection whose handshake is done.

    Attributes:
        listeners: called with each event, in order.

    Raises:
        DisplayLost: nobody answers, or does not let us in.
        RfbProtocolError: whoever answers does not speak RFB.
        CaptureTimeout: it stays silent.
    """

    def __init__(self, address: Address, password: str | None = None) -> None:
        self._socket = _connect(address)
        self._fences = 0
        self._answered = 0
        self.listeners: list[Callable[[Event], None]] = []
        # Packing costs more than it saves where nothing is sent over a wire.
        self.client = RfbClient(password=password, encodings=PLAIN if _is_near(address) else SMALL)
        try:
            self.wait(lambda: self.client.size is not None)
            # A server tells of fences, lock keys and clipboard on its own; a fence closes the list.
            self.pump(GREET_S)
            if self.client.has_fences:
                self.sync()
        except BaseException:
            self.close()
            raise

    def send(self, data: bytes = b"") -> None:
        """Send *data* after whatever the client has to say."""
        try:
            self._socket.settimeout(ANSWER_LIMIT_S)
            self._socket.sendall(self.client.data_to_send() + data)
        except TimeoutError as exc:
            msg = f"the VNC server takes no input: nothing was read for {ANSWER_LIMIT_S:g} s"
            raise CaptureTimeout(msg) from exc
        except OSError as exc:
            raise _lost(str(exc)) from exc

    def pump(self, timeout_s: float) -> bool:
        """Read what has come, blocking until something comes or time is up; False when nothing came."""
        self.send()
        try:
            if not select.select([self._socket], [], [], max(0.0, timeout_s))[0]:
                return False
            data = self._socket.recv(READ_BYTES)
        except (OSError, ValueError) as exc:
            raise _lost(str(exc)) from exc
        if not data:
            raise _lost("it hung up")
        for event in self.client.receive(data):
            if isinstance(event, FenceReply):
                self._answered = int.from_bytes(event.payload, "big")
            for listener in self.listeners:
                listener(event)
        # Its fences must be answered before it goes on.
        self.send()
        return True

    def wait(self, is_done: Callable[[], bool]) -> None:
        """
        Read until *is_done*.

        Raises:
            CaptureTimeout: the server has not done it within ``ANSWER_LIMIT_S``.
        """
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while not is_done():
            left = deadline - time.monotonic()
            if left <= 0:
                msg = f"the VNC server did not answer within {ANSWER_LIMIT_S:g} s"
                raise CaptureTimeout(msg)
            self.pump(left)

    def set_fence(self) -> int:
        """Set a fence; its answer comes after what was sent before has been done."""
        self._fences += 1
        flags = FenceFlag.REQUEST | FenceFlag.BLOCK_BEFORE
        self.send(render_fence(flags, self._fences.to_bytes(8, "big")))
        return self._fences

    def has_passed(self, fence: int) -> bool:
        """Whether the server has answered a fence."""
        return self._answered >= fence

    def sync(self) -> None:
        """Wait until the server has done what was sent; where it has no fences, only send it."""
        if not self.client.has_fences:
            self.send()
            return
        fence = self.set_fence()
        self.wait(lambda: self.has_passed(fence))

    def close(self) -> None:
        """Hang up; harmless when repeated."""
        self._socket.close()

    def abort(self) -> None:
        """Break the connection, from any thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def _connect(address: Address) -> socket.socket:
    try:
        if isinstance(address, tuple):
            connection = socket.create_connection(address, timeout=ANSWER_LIMIT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(ANSWER_LIMIT_S)
            connection.connect(str(address))
        except BaseException:
            connection.close()
            raise
    except OSError as exc:
        where = f"{address[0]} port {address[1]}" if isinstance(address, tuple) else address
        msg = f"no VNC server answers at {where}: {exc}"
        raise DisplayLost(msg) from exc
    return connection


def _is_near(address: Address) -> bool:
    if not isinstance(address, tuple):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(address[0]).is_loopback
    return address[0] == "localhost"


def _lost(reason: str) -> DisplayLost:
    return DisplayLost(f"the VNC server is gone: {reason}")
