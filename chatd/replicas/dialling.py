"""How one replica dials another: address, proof of who we are, limits."""

from urllib.parse import urlencode
from uuid import UUID

import aiohttp

from chatd.replicas.membership import Membership

__all__ = ["CONNECT_LIMIT_S", "HEARTBEAT_S", "PREFIX", "NotAReplica", "Pauses", "dial"]

# Where replicas talk to each other; nobody else gets in.
PREFIX = "/api/replica"
# Seconds for the handshake, and for the closing one; between pings of a silent connection.
CONNECT_LIMIT_S, CLOSE_LIMIT_S, HEARTBEAT_S = 5.0, 1.0, 10.0
# Seconds, growing, before another try.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 3.0


class NotAReplica(ConnectionError):
    """It is gone, has no address yet, or does not know us."""


class Pauses:
    """Pauses between tries, growing until one succeeds."""

    def __init__(self) -> None:
        self._next = SHORTEST_PAUSE_S

    def reset(self) -> None:
        """It worked."""
        self._next = SHORTEST_PAUSE_S

    def take(self) -> float:
        """Seconds to wait now."""
        now, self._next = self._next, min(2 * self._next, LONGEST_PAUSE_S)
        return now


async def dial(
    session: aiohttp.ClientSession,
    membership: Membership,
    replica_id: UUID,
    path: str,
    *,
    max_bytes: int,
    query: dict[str, str] | None = None,
    autoping: bool = True,
) -> aiohttp.ClientWebSocketResponse:
    """
    Open a WebSocket to another replica; without *autoping* whoever reads it answers pings.

    Raises:
        NotAReplica: it is not among those that live, or refused us.
        aiohttp.ClientError, OSError, TimeoutError: it can't be reached.
    """
    address = membership.addresses.get(replica_id)
    if address is None:
        raise NotAReplica(f"replica {replica_id} is not there")
    url = f"{address.rstrip('/')}{PREFIX}{path}?{urlencode(query or {})}"
    try:
        return await session.ws_connect(
            url,
            headers=membership.headers,
            max_msg_size=max_bytes,
            heartbeat=HEARTBEAT_S,
            autoping=autoping,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_LIMIT_S),
        )
    except aiohttp.WSServerHandshakeError as exc:
        raise NotAReplica(f"replica {replica_id} answered {exc.status}") from exc
