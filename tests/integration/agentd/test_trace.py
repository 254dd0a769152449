"""The action log of a real desktop: written, exported, looked at in a browser, performed again."""

import asyncio
import functools
import http.server
import io
import json
import threading
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from tests.browser import ARGUMENTS, find_browser
from tests.integration.agentd.command import Command

# Seconds. Generous: other tests share the machine.
LIMIT_S = 40
DESKTOP = "/api/v0/desktop/main"
SECRET = "correct-horse-9"


@pytest.fixture
async def daemon(runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A daemon with a small desktop."""
    settings = AgentdSettings(
        runtime_dir=runtime_dir, desktop_backend="xvnc", desktop_width=640, desktop_height=480
    )
    daemon = Daemon(settings)
    await daemon.start()
    yield daemon
    await daemon.stop()


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[aiohttp.ClientSession]:
    """A client on the daemon's socket."""
    connector = aiohttp.UnixConnector(path=str(daemon.socket_path))
    timeout = aiohttp.ClientTimeout(total=LIMIT_S)
    async with aiohttp.ClientSession("http://agentd", connector=connector, timeout=timeout) as session:
        yield session


async def _act(client: aiohttp.ClientSession, *actions: dict[str, Any], **fields: Any) -> None:
    body = {"actions": actions, **fields}
    async with client.post(f"{DESKTOP}/action", json=body) as response:
        await response.read()


async def _work(client: aiohttp.ClientSession) -> bytes:
    """A program, a click, a drag, a secret, a mistake; the export of all that."""
    async with client.post(f"{DESKTOP}/open", json={"argv": ["xterm", "-geometry", "60x20+0+0"]}) as response:
        assert response.status == 200, await response.text()
    await _act(client, {"action": "left_click", "coordinate": [100, 75]}, model_size=[320, 240])
    await _act(client, {"action": "drag", "path": [[300, 300], [350, 320], [400, 400]]})
    await _act(client, {"action": "type", "text": SECRET, "secret": True})
    await _act(client, {"action": "key", "text": "Retrun"})
    async with client.get(f"{DESKTOP}/trace/export") as response:
        assert response.content_type == "application/zip"
        return await response.read()


async def test_log_tells_what_was_done_and_no_secret(client: aiohttp.ClientSession, daemon: Daemon) -> None:
    """Ours: both frames, pictures before and after, who, how long; the secret is nowhere on disk."""
    await _work(client)
    async with client.get(f"{DESKTOP}/trace") as response:
        opened, click, drag, secret, mistake = await response.json()
    everything = b"".join(
        path.read_bytes() for path in await asyncio.to_thread(_files, daemon.settings.data_dir)
    )

    assert [entry["number"] for entry in (opened, click, drag, secret, mistake)] == [1, 2, 3, 4, 5]
    argv = ["xterm", "-geometry", "60x20+0+0"]
    assert opened["actions"][0]["action"] == {"action": "open", "argv": argv}
    assert (opened.get("before"), opened["after"]["size"]) == (None, [640, 480])
    assert click["actions"][0]["native"] == [[201, 151]]
    assert click["actions"][0]["action"]["coordinate"] == [100, 75]
    assert (click["model_size"], click["native_size"]) == ([320, 240], [640, 480])
    assert click["before"]["size"] == click["after"]["size"] == [320, 240]
    assert drag["actions"][0]["native"] == [[300, 300], [350, 320], [400, 400]]
    assert (secret["hidden"], secret.get("after")) == ("secret", None)
    assert mistake["error_code"] == "unknown_key"
    assert {entry["actor"] for entry in (click, drag, secret, mistake)} == {"local"}
    assert SECRET.encode() not in everything


async def test_secret_on_the_screen_is_in_no_picture(client: aiohttp.ClientSession) -> None:
    """Required: secrets never appear: typed where it can be read, then other actions, then the export."""
    async with client.post(f"{DESKTOP}/open", json={"argv": ["xterm", "-geometry", "60x20+0+0"]}) as response:
        assert response.status == 200, await response.text()
    await _act(client, {"action": "mouse_move", "coordinate": [100, 75]})
    before = await _look(client)
    await _act(client, {"action": "type", "text": SECRET, "secret": True})
    shown = await _look(client)
    while (shown == before).all():
        shown = await _look(client)
    ink = (shown != before).any(axis=2)
    for x in (500, 510, 520):
        await _act(client, {"action": "mouse_move", "coordinate": [x, 400]})
        await asyncio.sleep(0.6)
    async with client.get(f"{DESKTOP}/trace/export") as response:
        kept = _pictures_after_secret(await response.read())

    assert len(kept) >= 6
    assert not any(picture[ink].any() for picture in kept)
    assert all(picture[300:].any() for picture in kept)


async def test_call_that_asks_for_no_picture_has_both(client: aiohttp.ClientSession, daemon: Daemon) -> None:
    """Required: before, after and what changed, for `agentd desktop do` as well; at most once a second."""
    async with client.post(f"{DESKTOP}/open", json={"argv": ["xterm", "-geometry", "60x20+0+0"]}) as response:
        assert response.status == 200, await response.text()
    await _act(client, {"action": "mouse_move", "coordinate": [100, 75]})
    daemon.action_log._looked_at.clear()
    answers = []
    for text in ("typed", "again"):
        async with client.post(f"{DESKTOP}/action", json={"action": "type", "text": text}) as response:
            answers.append(await response.json())
        # Waits for the picture after it.
        async with client.get(f"{DESKTOP}/trace/export") as response:
            archive = zipfile.ZipFile(io.BytesIO(await response.read()))
        daemon.action_log._looked_at["main"] = time.monotonic()
    *_, first, second = map(json.loads, archive.read("actions.jsonl").splitlines())
    names = {Path(name).stem: name for name in archive.namelist()}
    before, after = (_pixels(archive.read(names[first[side]["sha256"]])) for side in ("before", "after"))

    assert [answer["screenshot"] for answer in answers] == [None, None]
    assert (first["number"], second["number"]) == (3, 4)
    left, top, right, bottom = first["changed"][0]
    assert (before != after)[top:bottom, left:right].any()
    assert (right, bottom) < (640, 480)
    assert (second.get("before"), second.get("after")) == (None, None)


async def _look(client: aiohttp.ClientSession) -> NDArray[np.uint8]:
    async with client.get(f"{DESKTOP}/screenshot") as response:
        return _pixels(await response.read())


def _pixels(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def _pictures_after_secret(export: bytes) -> list[NDArray[np.uint8]]:
    """Pictures of all steps that follow the one with the secret."""
    with zipfile.ZipFile(io.BytesIO(export)) as archive:
        entries = [json.loads(line) for line in archive.read("actions.jsonl").splitlines()]
        names = {Path(name).stem: name for name in archive.namelist()}
        (number,) = (entry["number"] for entry in entries if entry.get("hidden"))
        later = [entry for entry in entries if entry["number"] > number]
        logged = [entry[side] for entry in later for side in ("before", "after") if entry.get(side)]
        return [_pixels(archive.read(names[picture["sha256"]])) for picture in logged]


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


@pytest.fixture
def page() -> Iterator[Page]:
    """A browser that notes what the page asks for and complains about."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(ARGUMENTS))
        yield browser.new_page(viewport={"width": 1400, "height": 800})
        browser.close()


@pytest.fixture
def trace(tmp_path: Path, runtime_dir: Path) -> Path:
    """An exported log of a real run, unpacked."""

    async def run() -> bytes:
        settings = AgentdSettings(
            runtime_dir=runtime_dir, desktop_backend="xvnc", desktop_width=640, desktop_height=480
        )
        daemon = Daemon(settings)
        await daemon.start()
        try:
            connector = aiohttp.UnixConnector(path=str(daemon.socket_path))
            async with aiohttp.ClientSession("http://agentd", connector=connector) as client:
                return await _work(client)
        finally:
            await daemon.stop()

    target = tmp_path / "trace"
    data = asyncio.run(run())
    zipfile.ZipFile(io.BytesIO(data)).extractall(target)
    (tmp_path / "run.zip").write_bytes(data)
    return target


@pytest.fixture
def served(trace: Path) -> Iterator[str]:
    """The same over HTTP."""
    handler = functools.partial(_Quiet, directory=str(trace))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


def test_page_shows_each_step_from_a_file_and_from_a_server(
    trace: Path, served: str, page: Page, tmp_path: Path
) -> None:
    """Ours: scrub through steps, click points over the picture; its policy breaks nothing."""
    problems: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for url in (f"file://{trace}/index.html", served):
        page.goto(url)
        assert page.locator("#steps button").count() == 5
        page.keyboard.press("ArrowRight")
        # Not by a script that waits in the page: its policy allows none.
        expect(page.locator("#before img").first).to_have_js_property("naturalWidth", 320, timeout=30_000)
        circle = page.locator("#before svg .point").first.bounding_box()
        picture = page.locator("#before img").bounding_box()
        assert circle is not None
        assert picture is not None
        middle = (circle["x"] + circle["width"] / 2 - picture["x"]) / picture["width"]
        assert middle == pytest.approx(201 / 640, abs=0.01)
        page.screenshot(path=tmp_path / "page.png")
        page.keyboard.press("ArrowRight")
        assert page.locator("#before polyline").count() == 1
        page.locator("#scrub").fill("3")
        assert "a secret was typed" in page.locator("#after").inner_text()
        page.locator("#steps button").last.click()
        assert "Failed: unknown key" in page.locator("#steps button").last.inner_text()

    beside = {f"file://{trace}", served.rsplit("/", 1)[0]}
    assert problems == []
    assert [url for url in asked if url.rsplit("/", 1)[0].removesuffix("/pictures") not in beside] == []


def test_command_performs_a_log_again(trace: Path, runtime_dir: Path, tmp_path: Path) -> None:
    """Ours: on a desktop of its own, with no daemon; each step says how alike its screen is."""
    ended = Command(runtime_dir)("desktop", "trace", "replay", str(tmp_path / "run.zip"), "--json")
    steps = json.loads(ended.out)

    assert ended.code == 0, ended
    assert [step["number"] for step in steps] == [1, 2, 3, 4, 5]
    assert all(0.9 < step["similarity"] <= 1 for step in steps[:2])
    assert "secret" in steps[3]["note"]
    assert "unknown key" in steps[4]["note"]
