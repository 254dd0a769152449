"""
MCP over HTTP: streamable, or the older server-sent events.

Configured headers go to the configured origin and nowhere else. Bodies are bounded.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpcore2
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from mcp_bridge.config import ServerConfig
from mcp_bridge.errors import ProtocolBroken

__all__ = ["Streams", "open_web"]

Streams = Any  # the SDK's pair of streams; its protocols are generic in ways that add nothing here

# Seconds to connect and to write; and between two bytes of a stream, which may rest for long.
CONNECT_S = 10.0
READ_S = 24 * 3600.0
MAX_REDIRECTS = 10
# Bytes of one message.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class OriginLocked(httpx2.AsyncHTTPTransport):
    """Sends to one origin only, and bounds what comes back."""

    def __init__(self, url: str, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        super().__init__()
        if network is not None:
            # Its only way in: the class takes no backend, and a pool of ours would lose its other settings.
            self._pool._network_backend = network
        self._origin = _origin_of(httpx2.URL(url))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        Send *request*.

        Raises:
            ProtocolBroken: it would leave the configured origin, with the configured headers.
        """
        if _origin_of(request.url) != self._origin:
            msg = f"the server points to another origin, {request.url.host}; its headers stay at home"
            raise ProtocolBroken(msg)
        response = await super().handle_async_request(request)
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


def _origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@asynccontextmanager
async def open_web(
    config: ServerConfig, network: httpcore2.AsyncNetworkBackend | None = None
) -> AsyncGenerator[Streams, None]:
    """The SDK's streams to the server at ``config.url``, connected to by *network*."""

    def make_client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 -- the SDK's signature
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=headers,
            auth=auth,
            timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
            max_redirects=MAX_REDIRECTS,
            transport=OriginLocked(config.url, network),
        )

    headers = dict(config.headers)
    if config.transport == "sse":
        async with sse_client(
            config.url, headers=headers, sse_read_timeout=READ_S, httpx_client_factory=make_client
        ) as streams:
            yield streams
        return
    async with (
        make_client(headers) as client,
        streamable_http_client(
            config.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams
