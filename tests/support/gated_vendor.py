"""An OpenAI-compatible vendor that says one word whenever the test lets it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

__all__ = ["GatedVendor", "gated_vendor"]


class GatedVendor:
    """``say`` streams a word of the newest answer; ``end`` ends it, with a call of a tool or without."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = asyncio.Queue[dict[str, Any]]()
        self._words = asyncio.Queue[dict[str, Any] | None]()

    def say(self, word: str) -> None:
        """One fragment."""
        self._words.put_nowait({"choices": [{"index": 0, "delta": {"content": word}}]})

    def call(self, name: str, call_id: str, arguments: dict[str, Any]) -> None:
        """A tool call, and the end of the answer."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": call_id, "type": "function", "function": function}
        self._words.put_nowait({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        self.end("tool_calls")

    def end(self, reason: str = "stop") -> None:
        """The end of the answer."""
        self._words.put_nowait({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self._words.put_nowait(None)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """``POST /v1/chat/completions``."""
        body = json.loads(await request.read())
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        self.asked.put_nowait(body)
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        while (word := await self._words.get()) is not None:
            await response.write(f"data: {json.dumps(head | word)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def gated_vendor() -> AsyncIterator[GatedVendor]:
    """Listen on loopback."""
    vendor = GatedVendor()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", vendor.complete)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    vendor.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield vendor
    finally:
        await runner.cleanup()
