"""
The least that a relay can be: aiohttp's own loop, ``plain.py SOCKET``; prints its port.

It reads nothing of what it copies, so it enforces nothing: what ours costs beside it is the price of roles.
"""

# ruff: noqa: T201 -- a program that prints
import asyncio
import sys
from pathlib import Path

from aiohttp import WSMsgType, web

from computer.session.sockets import connect_unix


async def _serve(request: web.Request) -> web.WebSocketResponse:
    websocket = web.WebSocketResponse(protocols=("binary",), compress=False)
    await websocket.prepare(request)
    reader, writer = await connect_unix(Path(sys.argv[1]))

    async def to_viewer() -> None:
        while data := await reader.read(65_536):
            await websocket.send_bytes(data)

    task = asyncio.create_task(to_viewer())
    try:
        async for message in websocket:
            if message.type is WSMsgType.BINARY:
                writer.write(message.data)
                await writer.drain()
    finally:
        task.cancel()
        writer.close()
    return websocket


async def main() -> None:
    """Serve until killed."""
    app = web.Application()
    app.router.add_get("/", _serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
