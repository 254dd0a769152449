"""Reading a real xterm on a real Xvnc, and a whole errand there through a vendor's SDK."""

import asyncio
import base64
import contextlib
import io
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anthropic import AsyncAnthropic
from PIL import Image
from Xlib import XK, X, display
from Xlib.ext import xtest

from chatd.rehearsal import RehearsalServer
from chatd.rehearsal.screen import Screen, Terminal, read_screen

ASCII = "".join(map(chr, range(32, 127)))
FONT = ["-fn", "6x13", "-bg", "white", "-fg", "black", "+sb"]

pytestmark = pytest.mark.slow


@dataclass
class Desktop:
    """A bare X server, no window manager; everything it starts is in process groups of its own."""

    number: int
    connection: display.Display
    home: Path
    children: list[asyncio.subprocess.Process]

    async def start_xterm(self, *arguments: str) -> None:
        """Start an xterm; it appears some time later."""
        environment = {
            "DISPLAY": f":{self.number}",
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PS1": "$ ",
            "LC_ALL": "C",
        }
        self.children.append(
            await asyncio.create_subprocess_exec(
                "xterm", *FONT, *arguments, env=environment, cwd=self.home, start_new_session=True
            )
        )

    def pixels(self) -> np.ndarray:
        """The root window, (height, width, 3) RGB."""
        root = self.connection.screen().root
        image = root.get_image(0, 0, 1280, 800, X.ZPixmap, 0xFFFFFFFF)
        return np.frombuffer(image.data, dtype=np.uint8).reshape(800, 1280, 4)[:, :, 2::-1]

    async def wait_screen(self, *texts: str) -> Screen:
        """Look until each of *texts* is a line of some terminal."""
        async with asyncio.timeout(30):
            while True:
                screen = read_screen(self.pixels())
                lines = [line for terminal in screen.terminals for line in terminal.lines]
                if all(text in lines for text in texts):
                    return screen
                await asyncio.sleep(0.02)

    def point_at(self, x: int, y: int) -> None:
        """Move the pointer, and with it the focus."""
        xtest.fake_input(self.connection, X.MotionNotify, x=x, y=y)
        self.connection.sync()

    def type_text(self, text: str) -> None:
        """Press the keys for *text* (lower case letters, digits, blank, newline, dash)."""
        names = {"\n": "Return", " ": "space", "-": "minus"}
        for character in text:
            keycode = self.connection.keysym_to_keycode(XK.string_to_keysym(names.get(character, character)))
            xtest.fake_input(self.connection, X.KeyPress, keycode)
            xtest.fake_input(self.connection, X.KeyRelease, keycode)
        self.connection.sync()


async def _start_server(number: int) -> tuple[asyncio.subprocess.Process, bool]:
    """Start Xvnc; true once it takes connections, false when it has ended instead."""
    reader, writer = os.pipe()
    try:
        server = await asyncio.create_subprocess_exec(
            *["Xvnc", f":{number}", "-geometry", "1280x800", "-depth", "24", "-SecurityTypes", "None"],
            *["-rfbport", "-1", "-nolisten", "tcp", "-ac", "-noreset", "-displayfd", str(writer)],
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[writer],
        )
    finally:
        os.close(writer)
    return server, bool(await asyncio.to_thread(_read_line, reader))


def _read_line(descriptor: int) -> bytes:
    """Read to the end of the line: Xvnc dies of a reader that leaves earlier."""
    with os.fdopen(descriptor, "rb") as stream:
        return stream.readline()


def _free_numbers() -> Iterator[int]:
    """Display numbers nobody holds; each process begins elsewhere, so that parallel runs do not meet."""
    start = os.getpid() % 40
    numbers = (50 + (start + offset) % 40 for offset in range(40))
    return (number for number in numbers if not Path(f"/tmp/.X{number}-lock").exists())


@pytest.fixture
async def desktop(tmp_path: Path) -> AsyncIterator[Desktop]:
    """An Xvnc on a free display from 50 on; ended by process id, with its xterms."""
    children: list[asyncio.subprocess.Process] = []
    try:
        for number in _free_numbers():
            server, is_ready = await _start_server(number)
            children.append(server)
            if is_ready:
                break
        connection = display.Display(f":{number}")
        yield Desktop(number=number, connection=connection, home=tmp_path, children=children)
        connection.close()
    finally:
        for child in reversed(children):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            await child.wait()


def _with_line(screen: Screen, text: str) -> Terminal:
    return next(terminal for terminal in screen.terminals if text in terminal.lines)


async def test_every_character_and_a_wrapped_line_are_read(desktop: Desktop, tmp_path: Path) -> None:
    """Ours: plain, bold, reversed and coloured text of a real xterm, on an odd grid."""
    text = tmp_path / "text"
    text.write_text(f"{ASCII}\n\033[1mbold\033[0m \033[7mreversed\033[0m \033[34mblue\033[0m\n")
    await desktop.start_xterm("-geometry", "80x24+101+57", "-e", "sh", "-c", f"cat {text}; exec sh -i")

    screen = await desktop.wait_screen("$", "bold reversed blue")

    terminal = _with_line(screen, "$")
    assert terminal.lines == (ASCII, "bold reversed blue", "$")
    assert (terminal.columns, terminal.rows) == (80, 24)
    assert terminal.cursor is not None


async def test_overlapping_terminals_are_both_read(desktop: Desktop) -> None:
    """Ours: each window has a grid of its own, and both are found."""
    await desktop.start_xterm("-geometry", "80x24+100+50", "-e", "sh", "-c", "echo below; exec sh -i")
    await desktop.wait_screen("below", "$")
    await desktop.start_xterm("-geometry", "60x10+371+203", "-e", "sh", "-c", "echo above; exec sh -i")

    screen = await desktop.wait_screen("below", "above")

    assert _with_line(screen, "below").origin != _with_line(screen, "above").origin


async def _errand(desktop: Desktop, text: str) -> str:
    """The answer to *text* through the vendor's SDK, each action done with XTEST."""
    server = RehearsalServer()
    base_url = await server.start()
    messages: list[Any] = [{"role": "user", "content": text}]
    async with AsyncAnthropic(base_url=f"{base_url}/anthropic", api_key="k", max_retries=0) as client:
        for _ in range(60):
            reply = await client.beta.messages.create(
                model="m", max_tokens=999, messages=messages, tools=[{"type": "computer_toolset_20260801"}]
            )
            if reply.stop_reason != "tool_use":
                break
            use = reply.content[-1]
            await _perform(desktop, use.name, use.input)
            content = [block.model_dump(exclude_none=True) for block in reply.content]
            answer = {"type": "tool_result", "tool_use_id": use.id, "content": [_screenshot(desktop)]}
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [answer]}]
    await server.stop()
    answer_text: str = reply.content[0].text
    return answer_text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("expr 40 - 2", "It says:\n\n```text\n38\n```"),
        ("sh glued", "It says:\n\n```text\n~^_\n```"),
        ("sh accents", "Some characters could not be read; they are shown as \ufffd."),
        ("seq 99", "The beginning is missing, it has scrolled off the screen"),
        ("sh asks", "so far the screen shows:\n\n```text\nyour name?\n```"),
        ("exit", "The terminal is gone since `exit`, so there is no output I can read."),
    ],
)
async def test_an_errand_is_run_on_the_real_screen(desktop: Desktop, command: str, expected: str) -> None:
    """Ours: open, run and tell, whatever the output is like."""
    (desktop.home / "glued").write_text("printf '~^_'")
    (desktop.home / "accents").write_bytes(b"printf 'caf\xe9 \xe9\xe8'")
    (desktop.home / "asks").write_text("printf 'your name? '; read x")
    text = f"open a terminal and run `{command}`, then tell me what it says"

    answer = await _errand(desktop, text)

    assert answer.startswith(("Done: opened a terminal, ran `", "Done: opened a terminal, started `sh asks`"))
    assert expected in answer


async def test_a_second_terminal_over_the_first_is_confirmed(desktop: Desktop) -> None:
    """Ours: it covers the first exactly, and looks like it did when that was new."""
    desktop.point_at(300, 300)
    answer = await _errand(desktop, "open a terminal; open a terminal; run `expr 1 - 1`; tell me the output")

    assert answer.endswith("ran `expr 1 - 1`.\n\nIt says:\n\n```text\n0\n```")


async def _perform(desktop: Desktop, name: str, arguments: dict[str, Any]) -> None:
    """Do one action; without a window manager the terminal's key is us, and the pointer gives the focus."""
    match name:
        case "key" if arguments["text"] == "Return":
            desktop.type_text("\n")
        case "key":
            await desktop.start_xterm("-geometry", "80x24+33+44", "-e", "sh", "-i")
        case "left_click":
            desktop.point_at(*arguments["coordinate"])
        case "type":
            desktop.type_text(arguments["text"])
        case "wait":
            await asyncio.sleep(0.1)
        case _:
            assert name == "screenshot"


def _screenshot(desktop: Desktop) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(desktop.pixels())).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
