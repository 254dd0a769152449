"""
A model server that a test controls: the rehearsal model's wire, the test's answers.

It remembers every request, so that a checker can read what the vendor was sent.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from chatd.rehearsal.codec import ApiError, Stamp
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Conversation, Reply

__all__ = ["Answerer", "model_server"]

# Answers one request; raises ``ApiError`` to fail it.
Answerer = Callable[[Conversation], Reply]


@asynccontextmanager
async def model_server(
    answer: Answerer, *, pause_s: float = 0
) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of an OpenAI-compatible server, ending in ``/v1``, and the bodies it was sent."""
    codec, bodies = CompletionsCodec(), list[dict[str, Any]]()

    async def complete(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        bodies.append(body)
        try:
            conversation = codec.decode(body)
            reply = answer(conversation)
        except ApiError as error:
            return web.json_response(codec.error(error, "r"), status=error.status)
        stamp = Stamp(nonce=secrets.token_hex(8), created=int(time.time()))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in codec.events(conversation, reply, stamp):
            data = event.data if isinstance(event.data, str) else json.dumps(event.data)
            await response.write(f"data: {data}\n\n".encode())
            if pause_s:
                await asyncio.sleep(pause_s)
        return response

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", bodies
    finally:
        await runner.cleanup()
