"""
Coming to rest on a real server, with real applications.

``AGENTD_SETTLE_RUNS=20`` loads and clicks so many times instead of five.
"""

import asyncio
import base64
import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from Xlib import X

from computer.display.x11 import connect
from computer.display.x11.connection import disconnect
from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult, ScreenshotData
from tests.browser import ARGUMENTS, find_browser

LIMIT_S = 30
RUNS = int(os.environ.get("AGENTD_SETTLE_RUNS", "5"))
# A window of 32x32 that changes its colour every 60 ms.
SPINNER = """
import time
from Xlib import X, display
d = display.Display()
w = d.screen().root.create_window(500, 300, 32, 32, 0, X.CopyFromParent, override_redirect=True)
w.map()
for turn in range(100_000):
    w.change_attributes(background_pixel=0x101010 * (turn % 12))
    w.clear_area(0, 0, 0, 0)
    d.sync()
    time.sleep(0.06)
"""


async def _perform(session: DesktopSession, *actions: dict[str, object], **fields: object) -> ComputerResult:
    return await session.perform(ComputerCall.model_validate({"actions": actions, **fields}))


def _pixels(shot: ScreenshotData | None) -> np.ndarray:
    assert shot is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(shot.data))).convert("RGB"))


async def _until(session: DesktopSession, is_it: Callable[[np.ndarray], bool]) -> None:
    """Wait until the screen shows something."""
    async with asyncio.timeout(LIMIT_S):
        while not is_it(_pixels(await session.screenshot())):  # noqa: ASYNC110  another process draws
            await asyncio.sleep(0.01)


async def _open_terminal(session: DesktopSession, *options: str) -> None:
    """Open an xterm with an echoing cat in it and wait until it has the focus."""
    await session.open(["xterm", *options, "-geometry", "80x24+50+50", "-e", "cat"])
    assert session._live is not None
    probe = connect(session._live.desktop.display, session._live.desktop.cookie)
    active = probe.intern_atom("_NET_ACTIVE_WINDOW")
    async with asyncio.timeout(LIMIT_S):
        while not any(  # noqa: ASYNC110  another process
            getattr(probe.screen().root.get_full_property(active, X.AnyPropertyType), "value", ())
        ):
            await asyncio.sleep(0.01)
    disconnect(probe)
    await _perform(session, {"action": "wait_settled", "timeout_ms": 10_000}, screenshot=False)


async def test_blinking_caret_is_at_rest(session: DesktopSession) -> None:
    """Required: masks blinking carets: here one of 100 ms against a quiet time of 400."""
    await session.ensure_running()
    await _open_terminal(session, "-bc", "-bcn", "100", "-bcf", "100")
    result = await _perform(session, {"action": "wait_settled", "quiet_ms": 400, "timeout_ms": 10_000})

    assert not result.still_changing
    assert result.settled_ms is not None
    assert 400 <= result.settled_ms < 3_000


async def test_spinner_is_at_rest_and_reported_as_changed(session: DesktopSession) -> None:
    """Required: masks small animations."""
    await session.ensure_running()
    await session.open([sys.executable, "-c", SPINNER])
    await _until(session, lambda pixels: (pixels[300:332, 500:532] != (0x2E, 0x34, 0x40)).any())
    result = await _perform(session, {"action": "wait_settled", "quiet_ms": 300, "timeout_ms": 10_000})

    assert not result.still_changing
    assert (result.settled_ms or 0) < 3_000
    assert (500, 300, 532, 332) in result.changed


async def test_video_is_not_at_rest(session: DesktopSession) -> None:
    """Required: the cap, and still_changing."""
    await session.ensure_running()
    await session.open([sys.executable, "-c", SPINNER.replace("32, 32", "320, 200")])
    await _until(session, lambda pixels: (pixels[300:332, 500:532] != (0x2E, 0x34, 0x40)).any())
    result = await _perform(session, {"action": "wait_settled", "quiet_ms": 300, "timeout_ms": 700})

    assert result.still_changing
    assert (result.settled_ms or 0) == pytest.approx(700, abs=300)


async def test_echo_is_on_the_picture_every_time(session: DesktopSession) -> None:
    """Required: a small change is never missed, and where it was is told."""
    await session.ensure_running()
    await _open_terminal(session)
    before = _pixels((await _perform(session, {"action": "screenshot"})).screenshot)
    for _ in range(10):
        result = await _perform(session, {"action": "key", "text": "x"})
        after = _pixels(result.screenshot)
        rows, columns = np.nonzero((before != after).any(axis=2))
        assert len(rows)
        assert any(
            box[0] <= columns.min()
            and columns.max() < box[2]
            and box[1] <= rows.min()
            and rows.max() < box[3]
            for box in result.changed
        )
        assert not result.still_changing
        before = after


class SlowSite:
    """Pages that arrive in four pieces, 300 ms apart; each links to the next page, and ends in its colour."""

    def __init__(self) -> None:
        self.served = 0
        self.typed: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close; a browser also opens connections that it never uses."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._answer(await reader.readuntil(b"\r\n\r\n"), writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<!doctype html>"
        )
        path = request.split(b" ")[1].decode()
        if path == "/late":
            writer.write(LATE.encode())
            return
        if path.startswith("/typed/"):
            self.typed.append(path.removeprefix("/typed/"))
            return
        if path != "/slow":
            writer.write(_piece("#ffff00") * 4)
            return
        number = self.served + 1
        for colour in ("#c00000", "#c000c0", "#0000c0", _colour(number)):
            writer.write(_piece(colour))
            await writer.drain()
            await asyncio.sleep(0.3)
        self.served = number


def _colour(number: int) -> str:
    return f"#00{160 + number:02x}00"


def _piece(colour: str) -> bytes:
    link = f'<a href="/slow" style="display:block;background:{colour};height:90px">word</a>'
    return f"{link}<!--{' ' * 2_000}-->".encode()


# A page that answers a click at once, takes no input for 800 ms, and only then shows a field.
LATE = """
<body style="margin:0;background:#ffff00">
<button style="width:100%;height:500px;font-size:40px">open</button>
<input style="display:none;font-size:40px">
<script>
const button = document.querySelector("button"), field = document.querySelector("input");
button.onclick = () => {
  button.textContent = "opening";
  setTimeout(() => { field.style.display = "block"; field.focus(); }, 800);
};
field.onkeydown = (event) => {
  if (event.key !== "Enter") return;
  fetch("/typed/" + field.value);
  field.value = "";
  field.style.display = "none";
  button.textContent = "open";
};
</script>
"""


@pytest.fixture
async def site() -> AsyncIterator[tuple[SlowSite, int]]:
    """The site on a port of the kernel's choice."""
    site = SlowSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    yield site, server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def _browse(session: DesktopSession, runtime_dir: Path, url: str) -> None:
    """Open a browser on a page with a yellow place in it."""
    await session.ensure_running()
    await session.open(
        [
            str(find_browser()), *ARGUMENTS,
            f"--user-data-dir={runtime_dir / 'profile'}", "--window-size=1000,700", "--window-position=0,0",
            f"--app={url}",
        ]
    )  # fmt: skip
    await _until(session, lambda pixels: (pixels[300:650, 500] == (255, 255, 0)).all(axis=1).any())


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * RUNS)
async def test_page_with_pauses_is_whole_when_it_is_waited_for(
    session: DesktopSession, runtime_dir: Path, site: tuple[SlowSite, int]
) -> None:
    """Required: a page load with network gaps is right with a quiet time of 400 ms."""
    await _browse(session, runtime_dir, f"http://127.0.0.1:{site[1]}/")
    for turn in range(1, RUNS + 1):
        result = await _perform(
            session,
            {"action": "left_click", "coordinate": [500, 300]},
            {"action": "wait_settled", "quiet_ms": 400, "timeout_ms": 15_000},
        )
        column = _pixels(result.screenshot)[:700, 500]
        assert (column == (0, 160 + turn, 0)).all(axis=1).sum() > 50, result.settled_ms
        assert (site[0].served, result.still_changing) == (turn, False)


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * RUNS)
async def test_page_that_is_deaf_after_a_click_gets_all_that_is_typed(
    session: DesktopSession, runtime_dir: Path, site: tuple[SlowSite, int]
) -> None:
    """BUGS 38: a page that takes no input for 800 ms; a settle wait before the text is right every time."""
    await _browse(session, runtime_dir, f"http://127.0.0.1:{site[1]}/late")
    texts = [f"hello{turn}" for turn in range(RUNS)]
    for text in texts:
        result = await _perform(
            session,
            {"action": "left_click", "coordinate": [500, 300]},
            {"action": "wait_settled", "quiet_ms": 400, "timeout_ms": 15_000},
            {"action": "type", "text": f"{text}\n"},
        )
        assert result.error is None
    async with asyncio.timeout(LIMIT_S):
        while len(site[0].typed) < RUNS:  # noqa: ASYNC110  told by another process
            await asyncio.sleep(0.01)

    assert site[0].typed == texts
