"""
MCP over HTTP: streamable, or the older server-sent events.

Configured headers go to the configured origin and nowhere else. Bodies are bounded.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpcore2
import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcp_bridge.config import ServerConfig
from mcp_bridge.errors import ProtocolBroken
from mcp_bridge.hosting.events import name_origin, name_status, open_events, origin_of

__all__ = ["Streams", "open_web"]

Streams = Any  # the SDK's pair of streams; its protocols are generic in ways that add nothing here

# Seconds to connect and to write; and between two bytes of a stream, which may rest for long.
CONNECT_S = 10.0
READ_S = 24 * 3600.0
MAX_REDIRECTS = 10
NOT_FOUND = 404
# Bytes of one message.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class OriginLocked(httpx2.AsyncHTTPTransport):
    """Sends to one origin only, bounds what comes back, and tells what was refused."""

    def __init__(
        self,
        url: str,
        network: httpcore2.AsyncNetworkBackend | None = None,
        on_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._on_refusal = on_refusal
        if network is not None:
            # Its only way in: the class takes no backend, and a pool of ours would lose its other settings.
            self._pool._network_backend = network
        self._origin = origin_of(httpx2.URL(url))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        Send *request*.

        Raises:
            ProtocolBroken: it would leave the configured origin, with the configured headers.
        """
        if origin_of(request.url) != self._origin:
            msg = f"the server points to another origin, {name_origin(request.url)}; its headers stay at home"
            raise ProtocolBroken(msg)
        response = await super().handle_async_request(request)
        if response.is_error:
            self._on_refusal(f"the server answered {name_status(response)}")
        if response.status_code == NOT_FOUND and "mcp-session-id" in request.headers:
            # The session is gone; the SDK would take an error in the body for the call's answer.
            response.headers["content-type"] = "text/plain"
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body of at most ``MAX_MESSAGE_BYTES``."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"the server's message has more than {MAX_MESSAGE_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def open_web(
    config: ServerConfig,
    network: httpcore2.AsyncNetworkBackend | None = None,
    on_refusal: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[Streams, None]:
    """Streams to the server at ``config.url``, connected to by *network*; *on_refusal* hears each."""
    async with httpx2.AsyncClient(
        headers=dict(config.headers),
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        max_redirects=MAX_REDIRECTS,
        transport=OriginLocked(config.url, network, on_refusal),
    ) as client:
        if config.transport == "sse":
            async with open_events(client, config.url, MAX_MESSAGE_BYTES) as streams:
                yield streams
        else:
            async with streamable_http_client(
                config.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams:
                yield streams
