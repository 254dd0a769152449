"""
Responses that never end by themselves, ended when the server stops.

Ended before aiohttp's own shutdown: that stops reading first, so no closing handshake
would complete, and each WebSocket would use up the grace that requests get, twice.
"""

import asyncio
from weakref import WeakSet

from aiohttp import web

__all__ = ["end_streams", "track_streams"]

_HANDLERS: web.AppKey["WeakSet[asyncio.Task[object]]"] = web.AppKey("handlers of streams", WeakSet)


def track_streams(app: web.Application) -> None:
    """Remember the handler of every WebSocket and event stream that *app* opens."""
    handlers: WeakSet[asyncio.Task[object]] = WeakSet()
    app[_HANDLERS] = handlers

    async def note(_: web.Request, response: web.StreamResponse) -> None:
        task = asyncio.current_task()
        if task is not None and _is_endless(response):
            handlers.add(task)

    app.on_response_prepare.append(note)


async def end_streams(app: web.Application, timeout_s: float) -> None:
    """Cancel those handlers; they close their streams. Peers get *timeout_s* to answer."""
    handlers = app[_HANDLERS]
    tasks = list(handlers)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)


def _is_endless(response: web.StreamResponse) -> bool:
    return isinstance(response, web.WebSocketResponse) or response.content_type == "text/event-stream"
