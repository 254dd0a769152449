"""
What everybody together may ask of one process: connections, requests at once, streams, and time to ask.

Each user's and address's own share is another matter. Whoever finds no room is told so at once, with
Retry-After; nothing waits in a queue of ours. The sizes of a request line (``MAX_LINE_BYTES``), of headers
and of bodies are bounded by aiohttp, a body's time by ``read_within``.
"""

import asyncio
import contextlib
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal

import structlog
from aiohttp import hdrs, web
from aiohttp.http_exceptions import LineTooLong

from chatd.constants import MAX_FILE_BYTES
from chatd.errors import BadRequest, TooLarge, Unavailable
from chatd.routes.describe import operation_of
from chatd.settings import ChatdSettings

__all__ = [
    "BOUNDS",
    "BoundedRunner",
    "Bounds",
    "Busy",
    "TooSlow",
    "bounds_middleware",
    "read_within",
]

# Seconds to send the headers of a request, from its first byte, or from the connection's beginning.
HEADERS_S = 20.0
# Seconds to send a body: 8 MiB at 140 kB/s.
BODY_S = 60.0
# Of a request's first line: a search of 1,000 characters and fifty labels, in percent signs, fit.
MAX_LINE_BYTES = 64 * 1024
# What any route takes at most; one that takes less says so itself.
MAX_BODY_BYTES = MAX_FILE_BYTES
# Seconds that a connection may be idle between requests; longer than proxies keep theirs (60).
KEEPALIVE_S = 75.0
# Seconds between looks for connections that take too long.
LOOK_S = 2.0
# Open files that are no connections: the database, a listening socket, vendors.
OTHER_FILES = 128
# Connections that wait to be accepted; the kernel may give less.
BACKLOG = 1024
# Asked while nothing else may be.
ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})

Kind = Literal["probe", "answer", "events", "socket"]

log = structlog.get_logger("chatd.bounds")


class Busy(Unavailable):
    """No room at the moment."""

    code = "busy"
    status = 429


class TooSlow(BadRequest):
    """The request did not arrive in time."""

    code = "too_slow"


@contextlib.asynccontextmanager
async def read_within(seconds: float | None = None) -> AsyncIterator[None]:
    """
    Bound the time in which a body arrives: *seconds*, or those of every body.

    Raises:
        TooSlow: it did not.
    """
    limit_s = BODY_S if seconds is None else seconds
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {limit_s:g} s") from None


class Bounds:
    """Counts what goes on; the middleware and the connections keep to it."""

    def __init__(self, settings: ChatdSettings) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._settings = settings
        self._max_connections = min(settings.max_connections, max(OTHER_FILES, soft - OTHER_FILES))
        self._open: dict[asyncio.BaseTransport, _Connection] = {}
        self.requests = 0
        self.streams = 0
        self.refused: dict[str, int] = {"connections": 0, "requests": 0, "streams": 0, "slow": 0}

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._open)

    def admit(self, transport: asyncio.BaseTransport, connection: "_Connection") -> bool:
        """Whether a new connection may stay."""
        if len(self._open) >= self._max_connections:
            self.refused["connections"] += 1
            return False
        self._open[transport] = connection
        return True

    def forget(self, transport: asyncio.BaseTransport | None) -> None:
        """A connection has ended."""
        if transport is not None:
            self._open.pop(transport, None)

    def connection_of(self, request: web.Request) -> "_Connection | None":
        """The connection that a request came over; None when it has gone already."""
        return None if request.transport is None else self._open.get(request.transport)

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """
        A request that ends by itself is under way.

        Raises:
            Busy: too many are.
        """
        if self.requests >= self._settings.max_requests:
            self.refused["requests"] += 1
            raise Busy("too many requests at once; try again in a moment")
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """
        A stream, which ends when somebody ends it, is open.

        Raises:
            Busy: too many are.
        """
        if self.streams >= self._settings.max_streams:
            self.refused["streams"] += 1
            raise Busy("too many open streams; try again in a moment")
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def run(self) -> None:
        """Cut off whoever takes too long to ask; until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.cut_slow(time.monotonic())

    def cut_slow(self, now: float) -> None:
        """Close connections whose headers began to arrive HEADERS_S before *now* and are not here."""
        slow = [one for one in self._open.values() if one.is_slow(now)]
        for connection in slow:
            connection.cut()
        self.refused["slow"] += len(slow)
        if slow:
            log.info("slow connections closed", action="slow_closed", count=len(slow))


BOUNDS: web.AppKey[Bounds] = web.AppKey("bounds", Bounds)

REFUSAL_BODY = b'{"message": "too many connections", "code": "busy"}'
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(REFUSAL_BODY), REFUSAL_BODY)
)


class _Handler(web.RequestHandler):
    """aiohttp's, which tells as JSON too what it refuses before any route is known."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that could not be read, or a failure that nobody caught; the connection ends."""
        # It logs, and refuses to answer twice.
        super().handle_error(request, status, exc, message)
        told = "the request can't be read" if status < 500 else "Something went wrong inside chatd."
        if isinstance(exc, LineTooLong):
            told = f"the address or a header is too long; an address has at most {MAX_LINE_BYTES} bytes"
        answer = web.json_response({"message": told, "code": "http_error"}, status=status)
        answer.force_close()
        return answer


class _Connection(asyncio.Protocol):
    """Stands between a transport and aiohttp's protocol, and knows since when a request is awaited."""

    def __init__(self, inner: asyncio.Protocol, bounds: Bounds) -> None:
        self._inner: asyncio.Protocol | None = inner
        self._bounds = bounds
        self._transport: asyncio.Transport | None = None
        # Since when a request's headers arrive; None between requests and while one is served.
        self._since: float | None = time.monotonic()
        self._is_serving = False
        # Who only writes, and seldom, would learn late that nobody reads any more.
        self._writer: asyncio.Task[object] | None = None

    def is_slow(self, now: float) -> bool:
        """Whether the headers take too long."""
        return self._since is not None and now - self._since > HEADERS_S

    def cut(self) -> None:
        """Close, with what may not have been sent yet."""
        if self._transport is not None:
            self._transport.abort()

    def begin(self, writer: asyncio.Task[object] | None) -> None:
        """The headers are here; *writer* is cancelled when the peer goes."""
        self._is_serving, self._since, self._writer = True, None, writer

    def end(self) -> None:
        """The request has been answered."""
        self._is_serving, self._writer = False, None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer connected."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 -- of a TCP server
        self._transport = transport
        if self._inner is None or not self._bounds.admit(transport, self):
            self._inner = None
            transport.write(REFUSAL)
            transport.close()
            return
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._inner is None:
            return
        if not self._is_serving and self._since is None:
            self._since = time.monotonic()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The peer sends nothing more."""
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        """The peer does not read."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The peer reads again."""
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._bounds.forget(self._transport)
        if self._writer is not None:
            self._writer.cancel()
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(exc)


class BoundedRunner(web.AppRunner):
    """A runner whose connections are counted and timed."""

    def __init__(self, app: web.Application, *, shutdown_timeout: float) -> None:
        super().__init__(app, shutdown_timeout=shutdown_timeout)
        self._bounds = app[BOUNDS]

    @property
    def server(self) -> Any:  # noqa: ANN401 -- whatever makes protocols
        """What sites make protocols with."""
        server = super().server
        if server is None:
            return None
        loop = asyncio.get_running_loop()

        def connect() -> _Connection:
            # No access log: addresses hold tokens (logins, links, downloads).
            handler = _Handler(
                server,
                loop=loop,
                keepalive_timeout=KEEPALIVE_S,
                access_log=None,  # type: ignore[arg-type]  # None switches it off
                max_line_size=MAX_LINE_BYTES,
            )
            return _Connection(handler, self._bounds)

        return connect


@web.middleware
async def bounds_middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Count the request for as long as it takes."""
    bounds, kind = request.app[BOUNDS], _kind(request)
    connection = bounds.connection_of(request)
    if connection is not None:
        connection.begin(asyncio.current_task() if kind == "events" else None)
    try:
        if (request.content_length or 0) > MAX_BODY_BYTES:
            raise TooLarge(f"a body has at most {MAX_BODY_BYTES // 2**20} MiB")
        with _counted(bounds, kind):
            return await handler(request)
    finally:
        if connection is not None:
            connection.end()


def _kind(request: web.Request) -> Kind:
    """What comes of a request, by its route and its head."""
    if request.path in ALWAYS:
        return "probe"
    if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
        return "socket"
    operation = operation_of(request.match_info.handler)
    return "events" if operation is not None and operation.is_stream else "answer"


def _counted(bounds: Bounds, kind: Kind) -> contextlib.AbstractContextManager[None]:
    if kind == "probe":
        return contextlib.nullcontext()
    return bounds.request() if kind == "answer" else bounds.stream()
