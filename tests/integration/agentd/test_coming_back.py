"""A person's connection that drops and comes back, over and over."""

import asyncio
from pathlib import Path

from aiohttp import ClientSession, UnixConnector

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from computer.keys import Keysym
from computer.rfb.client import RfbClient
from computer.rfb.messages import render_key, render_pointer
from tests.integration.agentd.control_plane import LIMIT_S

TIMES = 20


async def test_keyboard_works_after_each_of_twenty_reconnects(runtime_dir: Path, tmp_path: Path) -> None:
    """BUGS 54: dropped with a key down, resumed, typed again; the terminal has every letter once."""
    typed = tmp_path / "typed"
    daemon = Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc"))
    await daemon.start()
    try:
        session = daemon.desktops.get()
        await session.open(["xterm", "-geometry", "150x45+0+0", "-e", f"cat > {typed}"])
        letters = [chr(ord("a") + number) for number in range(TIMES)]
        async with (
            asyncio.timeout(LIMIT_S),
            ClientSession(connector=UnixConnector(str(daemon.socket_path))) as client,
        ):
            while not typed.exists():  # noqa: ASYNC110 -- a file of another program
                await asyncio.sleep(0.05)
            for number, letter in enumerate(letters, start=1):
                async with client.ws_connect("ws://agentd/api/v0/desktop/main/vnc") as websocket:
                    rfb = RfbClient()
                    while rfb.size is None:
                        rfb.receive((await websocket.receive()).data)
                        await websocket.send_bytes(rfb.data_to_send())
                    strokes = [(ord(letter), True), (ord(letter), False), (0xFF0D, True), (0xFF0D, False)]
                    # Shift goes down and the connection goes away with it.
                    strokes.append((0xFFE1, True))
                    keys = b"".join(render_key(Keysym(symbol), down=down) for symbol, down in strokes)
                    await websocket.send_bytes(render_pointer(60, 60, 0) + keys)
                    while typed.read_text().count("\n") < number:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
        assert typed.read_text() == "".join(f"{letter}\n" for letter in letters)
    finally:
        await daemon.stop()
