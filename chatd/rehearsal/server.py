"""
The rehearsal model's server, on loopback: HTTP/1.1, and HTTP/2 for whoever begins with its preface.

A thin shell; what is answered is the engine's.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import cast

from aiohttp import web

from chatd.errors import Misuse
from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.connection import Greeting, hang_up
from chatd.rehearsal.engine import MAX_BODY_BYTES, Answer, Asked, Broken, Engine, Question, refusal
from chatd.rehearsal.faults import CutFault
from chatd.rehearsal.http2 import serve_http2
from chatd.rehearsal.scenario import Scenario

__all__ = ["RehearsalServer", "create_app"]

# Seconds that requests still running get when the server stops.
SHUTDOWN_S = 0.5

_ENGINE = web.AppKey("engine", Engine)


class RehearsalServer:
    """
    The server as something to start and stop, beside others in one process.

    *observe* is told of every model call, before it is answered.
    """

    def __init__(self, observe: Callable[[Asked], None] | None = None) -> None:
        self._observe = observe
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Transport] = set()

    async def start(self, host: str = "127.0.0.1", port: int = 0, scenario: Scenario | None = None) -> str:
        """
        Listen, on a free port when *port* is 0.

        Returns:
            The base URL, without a vendor: ``http://127.0.0.1:40123``.

        Raises:
            Misuse: it is already running.
            OSError: the port is taken.

        Cancellation: nothing listens.
        """
        if self._runner is not None:
            raise Misuse("the rehearsal server is already running")
        engine = Engine(scenario, self._observe)
        runner = web.AppRunner(
            _application(engine), handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S
        )
        try:
            await runner.setup()
            http1 = cast("web.Server", runner.server)
            listener = await asyncio.get_running_loop().create_server(
                lambda: Greeting(self._waiting, http1=http1, http2=lambda: self._http2(engine)), host, port
            )
        except BaseException:
            await runner.cleanup()
            raise
        self._runner, self._listener = runner, listener
        bound_host, bound_port = listener.sockets[0].getsockname()[:2]
        return (
            f"http://[{bound_host}]:{bound_port}"
            if ":" in bound_host
            else f"http://{bound_host}:{bound_port}"
        )

    async def stop(self) -> None:
        """Stop listening and end running requests; does nothing when not running."""
        runner, self._runner = self._runner, None
        listener, self._listener = self._listener, None
        if runner is None or listener is None:
            return
        listener.close()
        for transport in tuple(self._waiting):
            transport.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await runner.cleanup()

    def _http2(self, engine: Engine) -> asyncio.Protocol:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = asyncio.get_running_loop().create_task(serve_http2(engine, reader, writer))
            self._connections.add(connection)
            connection.add_done_callback(self._connections.discard)

        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), connected)


def create_app(
    scenario: Scenario | None = None, observe: Callable[[Asked], None] | None = None
) -> web.Application:
    """The application over HTTP/1.1, with its own count of calls."""
    return _application(Engine(scenario, observe))


def _application(engine: Engine) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app[_ENGINE] = engine
    app.router.add_route("*", "/{path:.*}", _serve)
    return app


async def _serve(request: web.Request) -> web.StreamResponse:
    """Over HTTP/1.1."""
    try:
        return await _send(request, await _ask(request))
    except Broken as broken:
        if isinstance(broken.fault, CutFault) and request.transport is not None:
            hang_up(request.transport, is_reset=broken.fault.reset)
        return web.Response()
    except ConnectionError:
        # Nobody is left to read it; aiohttp drops it quietly, but would log the exception.
        return web.Response()


async def _ask(request: web.Request) -> Answer:
    try:
        body = await request.read()
    except web.HTTPException as error:
        return refusal(request.path, ApiError(error.reason, status=error.status))
    headers = {name.lower(): value for name, value in request.headers.items()}
    question = Question(method=request.method, path=request.path, headers=headers, body=body)
    return await request.app[_ENGINE].answer(question)


async def _send(request: web.Request, answer: Answer) -> web.StreamResponse:
    if answer.events is None:
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    async with contextlib.aclosing(answer.events) as events:
        await response.prepare(request)
        async for data in events:
            await response.write(data)
    await response.write_eof()
    return response
