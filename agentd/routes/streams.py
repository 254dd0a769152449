"""Desktop streams that the control plane fetches, on a TCP port of their own."""

import asyncio

from aiohttp import web

from agentd.errors import AlreadyRunning, BadRequest
from agentd.routes.errors import error_middleware
from agentd.streams import CLOSE_TIMEOUT_S, FetchedStreams, accept
from agentd.viewers import Viewers
from agentd.wire.upgrade import upgrade_trouble

__all__ = ["StreamPort"]
# Seconds for a connection to say which stream it wants.
KEEPALIVE_S = 20.0


class StreamPort:
    """
    A port where nothing but asked-for streams is served.

    Args:
        viewers: run the streams.
        fetched: which were asked for over the link.
    """

    def __init__(self, viewers: Viewers, fetched: FetchedStreams) -> None:
        self._viewers = viewers
        self._fetched = fetched
        self._tasks: set[asyncio.Task[object]] = set()
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """
        Listen; returns the port.

        Raises:
            AlreadyRunning: another listens there.
        """
        app = web.Application(middlewares=[error_middleware])
        app.router.add_get("/api/agent/streams/{stream_id}", self._serve)
        # No access log: the id in the path is all that a stream asks for.
        self._runner = web.AppRunner(
            app, shutdown_timeout=CLOSE_TIMEOUT_S, keepalive_timeout=KEEPALIVE_S, access_log=None
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as exc:
            await self._runner.cleanup()
            msg = f"can't listen on {host}:{port}: {exc.strerror}; change AGENTD_STREAM_LISTEN"
            raise AlreadyRunning(msg) from exc
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """End every stream."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if trouble := upgrade_trouble(request.headers):
            raise BadRequest(trouble)
        admission = self._fetched.take(request.match_info["stream_id"])
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await accept(request, self._viewers, admission)
