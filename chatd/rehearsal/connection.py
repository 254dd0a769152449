"""What comes before and after HTTP: which of its versions a client begins with, and how a connection ends."""

import asyncio
import socket
import struct
from collections.abc import Callable

__all__ = ["Greeting", "hang_up"]

# With which every HTTP/2 client begins (RFC 9113, 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Greeting(asyncio.Protocol):
    """
    Waits for a connection's first bytes and hands it to who understands them.

    *waiting* holds the connections that have not said anything yet, for whoever stops the server.
    """

    def __init__(
        self,
        waiting: set[asyncio.Transport],
        *,
        http1: Callable[[], asyncio.Protocol],
        http2: Callable[[], asyncio.Protocol],
    ) -> None:
        self._waiting = waiting
        self._http1 = http1
        self._http2 = http2
        self._said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # TCP
        self._waiting.add(self._transport)

    def data_received(self, data: bytes) -> None:
        """Hand over, once it is clear to whom."""
        self._said += data
        if len(self._said) < len(PREFACE) and PREFACE.startswith(self._said):
            return
        self._waiting.discard(self._transport)
        protocol = (self._http2 if self._said.startswith(PREFACE) else self._http1)()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(self._said)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's
        """It left without a word."""
        self._waiting.discard(self._transport)


def hang_up(transport: asyncio.Transport | asyncio.WriteTransport, *, is_reset: bool) -> None:
    """Close a TCP connection, with a reset if asked."""
    if is_reset:
        raw: socket.socket = transport.get_extra_info("socket")
        # Linger on, for no time: closing sends a reset.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
