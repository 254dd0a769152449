"""Streams fetched from agents that can be reached: we dial, they serve."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import aiohttp

from chatd.agents.streams import STREAM_SILENCE_S, IncomingStream
from chatd.errors import AgentUnavailable
from chatd.outbound import Outbound, OutboundRefused

__all__ = ["FetchedStreams"]

# Seconds for the handshake, and for the closing one.
CONNECT_LIMIT_S = 10.0
CLOSE_LIMIT_S = 1.0


class FetchedStreams:
    """Streams that we dialled, each held open by a task until nobody needs it."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._tasks: set[asyncio.Task[None]] = set()

    async def fetch(self, base_url: str, stream_id: str) -> IncomingStream:
        """
        Dial the stream that was asked for.

        Raises:
            AgentUnavailable: the workspace can't be reached at the address that it gave, or says no.
        """
        opened: asyncio.Future[IncomingStream] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            _hold(base_url, stream_id, opened, self._outbound), name=f"stream {stream_id}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await opened
        except (aiohttp.ClientError, OSError) as exc:
            msg = f"its stream can't be fetched from {base_url}: {exc}; is AGENTD_STREAM_URL right?"
            raise AgentUnavailable(msg) from exc
        except BaseException:
            task.cancel()
            raise

    async def close(self) -> None:
        """End them all."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _hold(
    base_url: str, stream_id: str, opened: "asyncio.Future[IncomingStream]", outbound: Outbound
) -> None:
    url = f"{base_url.rstrip('/')}/api/agent/streams/{stream_id}"
    # The workspace chose the address: what it has is judged when it is connected to.
    connector = aiohttp.TCPConnector(socket_factory=_guarded_socket(outbound))
    limits = aiohttp.ClientTimeout(connect=CONNECT_LIMIT_S)
    timeout = aiohttp.ClientWSTimeout(ws_receive=STREAM_SILENCE_S, ws_close=CLOSE_LIMIT_S)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=limits) as session,
            session.ws_connect(url, max_msg_size=0, timeout=timeout, autoping=False) as websocket,
        ):
            stream = IncomingStream(websocket=websocket)
            opened.set_result(stream)
            await stream.done.wait()
            await websocket.close(code=stream.close_code, message=stream.reason.encode())
    except (aiohttp.ClientError, OSError) as exc:
        if not opened.done():
            opened.set_exception(exc)


def _guarded_socket(policy: Outbound) -> Callable[[Any], socket.socket]:
    """What aiohttp makes its sockets with: none for an address that is not allowed."""

    def make(info: Any) -> socket.socket:  # noqa: ANN401 -- aiohttp's
        family, kind, protocol, _, place = info
        try:
            policy.check(str(place[0]), str(place[0]))
        except OutboundRefused as exc:
            raise OSError(str(exc)) from exc
        return socket.socket(family=family, type=kind, proto=protocol)

    return make
