"""HTTP connections that keep to ``chatd.outbound``: addresses are looked up, judged, and connected to."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from chatd.outbound import Outbound, OutboundRefused

__all__ = ["Guard", "GuardedNetwork", "guard_client", "guard_for"]

# Seconds to connect where the caller sets none.
CONNECT_S = 10.0

# Changes a client so that it keeps to a policy, and returns it.
Guard = Callable[[httpx2.AsyncClient], httpx2.AsyncClient]
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects for the HTTP client; TLS and Host go by the name as ever."""

    def __init__(self, policy: Outbound) -> None:
        self._policy = policy
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """
        Connect to one of the addresses that *host* has now.

        Raises:
            ConnectError: it has none that is allowed, or none that answers.
        """
        addresses = await self._allowed(host, port)
        limit = (timeout or CONNECT_S) / len(addresses)
        problem: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                problem = exc
        raise problem or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:  # noqa: ANN401
        """Refuse."""
        raise httpcore2.ConnectError("no socket of this machine is connected to")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)

    async def _allowed(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as exc:
            raise httpcore2.ConnectError(f"{host} can't be found: {exc.strerror or exc}") from exc
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in addresses if self._policy.allows(host, address)]
        if not allowed:
            try:
                self._policy.check(host, addresses[0] if addresses else host)
            except OutboundRefused as exc:
                raise httpcore2.ConnectError(str(exc)) from exc
            raise httpcore2.ConnectError(f"{host} has no address")
        return allowed


def guard_client(
    client: httpx2.AsyncClient, policy: Outbound, *, origin: str | None = None
) -> httpx2.AsyncClient:
    """
    Have *client* keep to *policy*, and send to *origin* alone if it is given: its key goes nowhere else.

    Where the environment names a proxy, that looks names up, and what it may reach is its own matter.
    """
    # The client's own way to say this would take away what its maker set for the transport.
    client._transport._pool._network_backend = GuardedNetwork(policy)  # type: ignore[attr-defined]
    if origin is not None:
        own = _origin_of(origin)

        async def stay(request: httpx2.Request) -> None:
            if _origin_of(str(request.url)) != own:
                raise httpx2.ConnectError(f"the server points to another origin, {request.url.host}")

        client.event_hooks = {**client.event_hooks, "request": [*client.event_hooks["request"], stay]}
    return client


def guard_for(policy: Outbound, base_url: str | None) -> Guard:
    """
    A guard for one model server: whoever runs this named it, so it may have a private address.

    Args:
        policy: of the deployment.
        base_url: None: the vendor's own.
    """
    host = urlsplit(base_url).hostname if base_url else None
    allowed = policy if host is None else policy.with_name(host)
    return lambda client: guard_client(client, allowed, origin=base_url)


def _origin_of(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
