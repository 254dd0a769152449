"""
MCP over the older HTTP transport: events of the server one way, posted messages the other.

Ours, since the SDK's waits without a word when the stream ends before it names where to post, and
when a message can't be posted. What breaks here is told at once, by its cause.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import anyio
import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from mcp_bridge.errors import ProtocolBroken
from mcp_bridge.messages import MessageReader, MessageStream, parse_message, render_message

__all__ = ["name_origin", "name_status", "open_events", "origin_of"]

HEADERS = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
REDIRECTED = "the server redirects messages to {}, which would lose them"


def origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port; a scheme's own port is None."""
    return url.scheme, url.host, url.port


def name_origin(url: httpx2.URL) -> str:
    """The origin for people: nothing of the path, which may hold a secret."""
    return str(url.copy_with(userinfo=b"", path="/", query=None, fragment=None)).rstrip("/")


def name_status(response: httpx2.Response) -> str:
    """The status as people know it."""
    try:
        return f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
    except ValueError:
        return str(response.status_code)


@asynccontextmanager
async def open_events(
    client: httpx2.AsyncClient, url: str, max_message_bytes: int
) -> AsyncGenerator[tuple["EventReader", "EventWriter"], None]:
    """
    Streams to the server whose events are at *url*.

    Raises:
        ProtocolBroken: it answers with no events, or posts belong to another origin.
        HTTPError: it can't be reached, or breaks off before it says where to post.
    """
    async with client.stream("GET", url, headers=HEADERS, follow_redirects=True) as response:
        _check(response)
        events = aiter(httpx2.EventSource(response, max_event_size=max_message_bytes))
        endpoint = await _endpoint(events, response.url)
        yield EventReader(events), EventWriter(client, endpoint)


async def _endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: httpx2.URL) -> httpx2.URL:
    """Where messages are posted, by the server's first word."""
    async for event in events:
        if event.event != "endpoint":
            continue
        endpoint = url.join(event.data)
        if origin_of(endpoint) != origin_of(url):
            where = name_origin(endpoint)
            msg = f"the server wants its messages at another origin, {where}; nothing is sent there"
            raise ProtocolBroken(msg)
        return endpoint
    raise ProtocolBroken("the stream of events ended before it said where to post messages")


def _check(response: httpx2.Response) -> None:
    if not response.is_success:
        raise ProtocolBroken(f"the server answered {name_status(response)}")


class EventReader(MessageReader):
    """Messages of the server; ends with its events."""

    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
        self._events = events

    async def receive(self) -> SessionMessage | Exception:
        """
        The next message; what is none comes as an exception.

        Raises:
            EndOfStream: the server ended the stream.
            ProtocolBroken: the stream broke.
        """
        try:
            async for event in self._events:
                # An empty one keeps the connection alive.
                if event.event == "message" and event.data:
                    return _parsed(event.data)
        except httpx2.TransportError as exc:
            raise ProtocolBroken(f"the stream of events broke: {str(exc) or type(exc).__name__}") from exc
        raise anyio.EndOfStream


def _parsed(text: str) -> SessionMessage | Exception:
    try:
        return parse_message(text)
    except ValueError as exc:
        return exc


class EventWriter(MessageStream):
    """Messages to the server, each posted by itself."""

    def __init__(self, client: httpx2.AsyncClient, endpoint: httpx2.URL) -> None:
        self._client = client
        self._endpoint = endpoint

    async def send(self, item: SessionMessage, /) -> None:
        """
        Post one message.

        Raises:
            ProtocolBroken: a request was not taken; nobody would ever answer it.
            BrokenResourceError: another message was not taken.
        """
        try:
            await self._post(render_message(item))
        except (httpx2.HTTPError, ProtocolBroken) as exc:
            if not isinstance(item.message, JSONRPCRequest):
                raise anyio.BrokenResourceError from exc
            if isinstance(exc, ProtocolBroken):
                raise
            raise ProtocolBroken(f"the message could not be sent: {str(exc) or type(exc).__name__}") from exc

    async def _post(self, text: str) -> None:
        headers = {"Content-Type": "application/json"}
        async with self._client.stream(
            "POST", self._endpoint, content=text.encode(), headers=headers, follow_redirects=True
        ) as response:
            if response.request.method != "POST":
                raise ProtocolBroken(REDIRECTED.format(name_origin(response.url)))
            _check(response)
