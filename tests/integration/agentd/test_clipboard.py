"""The clipboard between a person's VNC program and the desktop, through the relay."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, UnixConnector

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from computer.rfb.client import RfbClient
from computer.rfb.messages import ClipboardOffered, ClipboardProvided, ClipboardRequested, Event, Updated
from computer.rfb.viewer import MAX_CLIPBOARD_BYTES
from computer.wire import ComputerCall
from tests.integration.agentd.control_plane import LIMIT_S

UNICODE = "Grüße, 世界 🙂\nzweite Zeile\t\n"


@pytest.fixture
async def daemon(runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A daemon without a control plane."""
    daemon = Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc"))
    await daemon.start()
    yield daemon
    await daemon.stop()


class Program:
    """A VNC program with a clipboard."""

    def __init__(self, websocket: ClientWebSocketResponse) -> None:
        self._websocket = websocket
        self._rfb = RfbClient()

    async def events(self) -> AsyncIterator[Event]:
        """What the desktop says, pictures apart."""
        await self.flush()
        async for message in self._websocket:
            found = self._rfb.receive(message.data)
            await self.flush()
            for event in found:
                if not isinstance(event, Updated):
                    yield event

    async def wait(self, kind: type[Event]) -> Event:
        """The next event of a kind."""
        async for event in self.events():
            if isinstance(event, kind):
                return event
        raise ConnectionError("the desktop went away")

    async def hand_over(self, text: str) -> None:
        """Offer *text*, and give it to the first who asks."""
        self._rfb.clipboard.offer()
        await self.wait(ClipboardRequested)
        self._rfb.clipboard.provide(text)
        await self.flush()

    async def fetch(self) -> str | None:
        """The text of the desktop's clipboard, once it has a new one."""
        async for event in self.events():
            # Again, where the one who offers changes.
            if isinstance(event, ClipboardOffered):
                self._rfb.clipboard.request()
                await self.flush()
            elif isinstance(event, ClipboardProvided):
                return event.text
        raise ConnectionError("the desktop went away")

    async def flush(self) -> None:
        """Send what is to be sent."""
        if data := self._rfb.data_to_send():
            await self._websocket.send_bytes(data)

    async def start(self) -> None:
        """Until the desktop has said what its clipboard can do."""
        while not self._rfb.clipboard.is_extended:
            await self.flush()
            self._rfb.receive((await self._websocket.receive()).data)
        await self.flush()


@asynccontextmanager
async def program(daemon: Daemon) -> AsyncIterator[Program]:
    """A VNC program that has control."""
    connector = UnixConnector(str(daemon.socket_path))
    async with (
        asyncio.timeout(LIMIT_S),
        ClientSession(connector=connector) as client,
        client.ws_connect("ws://agentd/api/v0/desktop/main/vnc") as websocket,
    ):
        made = Program(websocket)
        await made.start()
        yield made


async def read(daemon: Daemon) -> str:
    """What the desktop's programs would paste."""
    look = ComputerCall.model_validate({"actions": [{"action": "get_clipboard"}]})
    result = await daemon.desktops.get().perform(look)
    return str(result.reports[0].output) if result.reports else ""


async def test_texts_of_a_person_reach_the_desktop_up_to_a_mebibyte(daemon: Daemon) -> None:
    """The issue: Unicode round trip, up to 1 MiB; above it nothing changes, and it is counted."""
    longest = UNICODE + "é" * ((MAX_CLIPBOARD_BYTES - len(UNICODE.encode())) // 2)
    async with program(daemon) as person:
        for text in (UNICODE, longest):
            # Fetched from the person when a program pastes.
            handing = asyncio.create_task(person.hand_over(text))
            while await read(daemon) != text:  # noqa: ASYNC110 -- it can only be asked
                await asyncio.sleep(0.05)
            await handing
        handing = asyncio.create_task(person.hand_over(longest + "éé"))
        while not daemon.viewers.figures()[0].dropped["clipboard_too_long"]:
            await read(daemon)
        await handing


TK = """
import sys, tkinter
root = tkinter.Tk()
root.clipboard_clear()
root.clipboard_append(open(sys.argv[1], encoding="utf-8").read())
root.mainloop()
"""


@pytest.mark.parametrize("size", [100_000, MAX_CLIPBOARD_BYTES])
async def test_long_texts_of_a_program_reach_a_person(daemon: Daemon, tmp_path: Path, size: int) -> None:
    """The issue: up to 1 MiB; Xvnc reads nothing that comes in pieces, so it gets such a text from us."""
    text = UNICODE + "é" * ((size - len(UNICODE.encode())) // 2)
    (tmp_path / "text").write_text(text, encoding="utf-8", newline="")
    (tmp_path / "copy.py").write_text(TK)
    async with program(daemon) as person:
        session = daemon.desktops.get()
        await session.open(["/usr/bin/python3", str(tmp_path / "copy.py"), str(tmp_path / "text")])

        assert await person.fetch() == text


async def test_a_longer_text_of_a_program_is_withheld_and_said(daemon: Daemon, tmp_path: Path) -> None:
    """The issue: a stated refusal above 1 MiB; the text stays where it is, and a short one ends it."""
    (tmp_path / "text").write_text("x" * (MAX_CLIPBOARD_BYTES + 1), encoding="utf-8")
    (tmp_path / "copy.py").write_text(TK)
    short = ComputerCall.model_validate({"actions": [{"action": "set_clipboard", "text": UNICODE}]})
    async with program(daemon) as person:
        session = daemon.desktops.get()
        await session.open(["/usr/bin/python3", str(tmp_path / "copy.py"), str(tmp_path / "text")])
        fetching = asyncio.create_task(person.fetch())
        while not session.status().clipboard_withheld_bytes:  # noqa: ASYNC110 -- it can only be asked
            await asyncio.sleep(0.05)
        assert session.status().clipboard_withheld_bytes == MAX_CLIPBOARD_BYTES + 1
        assert not fetching.done()

        await session.perform(short)
        assert await fetching == UNICODE
        # The offer of the short text ends it, which need not be before the text has come.
        while session.status().clipboard_withheld_bytes:  # noqa: ASYNC110 -- it can only be asked
            await asyncio.sleep(0.05)


async def test_texts_of_the_desktop_reach_a_person(daemon: Daemon) -> None:
    """The issue: Unicode round trip, the other way."""
    call = ComputerCall.model_validate({"actions": [{"action": "set_clipboard", "text": UNICODE}]})
    async with program(daemon) as person:
        await daemon.desktops.get().perform(call)

        assert await person.fetch() == UNICODE
