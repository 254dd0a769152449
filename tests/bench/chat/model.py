"""
The rehearsal model at zero delay, as a process: fifty pieces of text, whatever is asked.

``GET /arrivals`` tells when each request came: the last user's text and CLOCK_MONOTONIC.
A text ``pieces N`` gets N pieces. Prints its URL, then serves until it is killed.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

from aiohttp import web

from chatd.rehearsal.scenario import Scenario
from chatd.rehearsal.server import create_app

PIECES = 50
MORE = re.compile(r"pieces (\d+)")


def scenario() -> Scenario:
    """Fifty pieces for everybody; more for who asks for one of these numbers."""
    turns: list[dict[str, Any]] = [
        {
            "when": {"contains": f"pieces {count};"},
            "times": None,
            "reply": {"text": [f"token {number} " for number in range(count)]},
        }
        for count in (1_000, 2_000, 5_000)
    ]
    turns.append({"times": None, "reply": {"text": [f"token {number} " for number in range(PIECES)]}})
    return Scenario.model_validate({"turns": turns})


async def serve() -> None:
    """Never returns."""
    arrivals: dict[str, float] = {}

    @web.middleware
    async def note(request: web.Request, handler: Any) -> web.StreamResponse:
        came = time.monotonic()
        if request.method == "POST":
            said = [item for item in json.loads(await request.read())["messages"] if item["role"] == "user"]
            content = said[-1]["content"]
            text = content if isinstance(content, str) else content[-1]["text"]
            arrivals[text] = came
        response: web.StreamResponse = await handler(request)
        return response

    app = create_app(scenario())
    app.middlewares.append(note)

    async def tell(_: web.Request) -> web.Response:
        return web.json_response(arrivals)

    app.router.add_get("/arrivals", tell)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
