"""
``/mcp``: streamable HTTP on loopback, with a token and a check of Host and Origin.

The SDK speaks ASGI; here its application is served by the daemon's own HTTP server.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

__all__ = ["McpHttp"]

HOST = "127.0.0.1"
PATH = "/mcp"
# Sessions of older clients at once, and seconds until an idle one ends.
MAX_SESSIONS = 100
IDLE_S = 1800.0
# Seconds between looks whether a client that waits for a stream is still there.
LOOK_S = 0.25
# Bytes of a request.
# Seconds for a connection's first request, and between two.
KEEPALIVE_S = 75.0
MAX_BODY_BYTES = 4 * 1024 * 1024


class McpHttp:
    """The listener; ``port`` is known once it has started."""

    def __init__(self, server: Server[Any], token: str) -> None:
        self._token = token
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=IDLE_S,
            max_sessions=MAX_SESSIONS,
            max_request_body_size=MAX_BODY_BYTES,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True,
                allowed_hosts=[f"{HOST}:*", "localhost:*"],
                allowed_origins=[f"http://{HOST}:*", "http://localhost:*"],
            ),
        )
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, port: int) -> None:
        """
        Listen on loopback; 0 takes a free port.

        Raises:
            OSError: the port is taken.
        """
        ready = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._own(ready), name="mcp http")
        await ready.wait()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", PATH, self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, keepalive_timeout=KEEPALIVE_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port).start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """End every session and listen no more."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task})
        if self._runner is not None:
            await self._runner.cleanup()

    async def _own(self, ready: asyncio.Event) -> None:
        async with self._manager.run():
            ready.set()
            await self._closing.wait()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode()
        if not secrets.compare_digest(given, f"Bearer {self._token}".encode()):
            return web.json_response(
                {"message": "a bearer token is needed: see agentd mcp url", "code": "unauthorised"},
                status=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        if self._closing.is_set():
            return web.json_response({"message": "shutting down", "code": "shutting_down"}, status=503)
        return await _Exchange(request).run(self._manager.handle_request)


Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class _Exchange:
    """One request, served by an ASGI application."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self._is_read = False
        self._ended = asyncio.Event()

    async def run(self, application: Application) -> web.StreamResponse:
        try:
            await application(self._scope(), self._receive, self._send)
        finally:
            self._ended.set()
        return self._response or web.Response(status=500)

    def _scope(self) -> dict[str, Any]:
        request = self._request
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.raw_path.encode(),
            "query_string": request.query_string.encode(),
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": None,
            "server": None,
        }

    async def _receive(self) -> dict[str, Any]:
        """The body, whole; then nothing until the exchange ends or the client goes away."""
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": await self._request.read(), "more_body": False}
        while not self._is_gone() and not self._ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._ended.wait()
        return {"type": "http.disconnect"}

    def _is_gone(self) -> bool:
        # A client may leave as soon as it has its answer, so that alone must not cancel anything.
        return self._request.transport is None or self._request.transport.is_closing()

    async def _send(self, message: dict[str, Any]) -> None:
        """As ASGI wants it: what is sent to a client that has gone is dropped."""
        with suppress(ConnectionError):
            await self._write(message)

    async def _write(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._response = web.StreamResponse(status=message["status"])
            for name, value in message.get("headers", ()):
                # Chunked or not is for aiohttp to decide.
                if name.lower() != b"transfer-encoding":
                    self._response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
            await self._response.prepare(self._request)
        elif message["type"] == "http.response.body" and self._response is not None:
            if message.get("body"):
                await self._response.write(message["body"])
            if not message.get("more_body", False):
                await self._response.write_eof()
