"""The screen of a running desktop: its size, what is behind the windows, and several side by side."""

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall, ComputerResult

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
# Seconds. Generous: other tests share the machine.
LIMIT_S = 60


def _click(x: int, y: int, **more: object) -> ComputerCall:
    return ComputerCall.model_validate({"actions": [{"action": "left_click", "coordinate": [x, y]}], **more})


def _picture(result: ComputerResult) -> Image.Image:
    assert result.screenshot is not None
    return Image.open(io.BytesIO(base64.b64decode(result.screenshot.data))).convert("RGB")


@pytest.mark.parametrize("size", [(1920, 1080), (800, 600), (1011, 757)])
async def test_screen_takes_any_size_while_programs_run(
    session: DesktopSession, size: tuple[int, int]
) -> None:
    """Required: RandR; also a size that no monitor has."""
    async with asyncio.timeout(LIMIT_S):
        await session.launch(["xterm"])
        pids = session.status().pids
        await session.resize_screen(*size)
        result = await session.perform(LOOK)

    assert result.screenshot is not None
    assert result.screenshot.native_size == size
    assert session.status().geometry == f"{size[0]}x{size[1]}"
    assert session.status().pids == pids


async def test_places_on_an_older_picture_are_refused_once(session: DesktopSession) -> None:
    """Required: refused, not misread; the refusal shows the new screen."""
    async with asyncio.timeout(LIMIT_S):
        await session.perform(LOOK)
        await session.resize_screen(1600, 1200)
        refused = await session.perform(_click(600, 400, model_size=[1280, 800]))
        taken = await session.perform(_click(600, 400, model_size=[1280, 800]))

    assert refused.error_code == "screen_resized"
    assert "1280x800 on the last picture and is 1600x1200 now" in str(refused.error)
    assert refused.screenshot is not None
    assert refused.screenshot.native_size == (1600, 1200)
    assert refused.reports == ()
    assert taken.error is None
    assert taken.pointer == (750, 600)


async def test_what_names_no_place_is_done_on_any_size(session: DesktopSession) -> None:
    """Ours: typing is not misread; and a caller who wants no picture is refused once only."""
    keys = ComputerCall.model_validate({"actions": [{"action": "key", "text": "a"}], "screenshot": False})
    async with asyncio.timeout(LIMIT_S):
        await session.perform(LOOK)
        await session.resize_screen(640, 480)
        typed = await session.perform(keys)
        blind = [(await session.perform(_click(5, 5, screenshot=False))).error_code for _ in range(2)]

    assert typed.error is None
    assert blind == ["screen_resized", None]


async def test_size_survives_a_restart_and_not_a_stop(session: DesktopSession) -> None:
    """Ours: a crash changes nothing that the model knows; a new desktop is as the settings say."""
    async with asyncio.timeout(LIMIT_S):
        await session.resize_screen(640, 480)
        assert session._live is not None
        session._live.give_up()
        restarted = await session.perform(LOOK)
        await session.stop()
        fresh = await session.perform(LOOK)

    assert restarted.screenshot is not None
    assert fresh.screenshot is not None
    assert restarted.screenshot.native_size == (640, 480)
    assert fresh.screenshot.native_size == (1280, 800)


@pytest.fixture
async def papered(runtime_dir: Path, environment: dict[str, str]) -> AsyncIterator[DesktopSession]:
    """A desktop with a wallpaper: left half red, right half green."""
    picture = Image.new("RGB", (200, 100), (255, 0, 0))
    picture.paste((0, 255, 0), (100, 0, 200, 100))
    picture.save(runtime_dir / "paper.png")
    settings = SessionSettings(
        runtime_dir=runtime_dir / "s", backend="xvnc", width=800, height=600,
        wallpaper=runtime_dir / "paper.png",
    )  # fmt: skip
    session = DesktopSession(settings, base_environment=environment)
    yield session
    await session.stop()


async def test_wallpaper_fills_the_screen_at_every_size(papered: DesktopSession) -> None:
    """Required: behind all windows, cut to the shape of the screen."""
    async with asyncio.timeout(LIMIT_S):
        before = _picture(await papered.perform(LOOK))
        await papered.resize_screen(1024, 400)
        after = _picture(await papered.perform(LOOK))

    for picture in (before, after):
        width, height = picture.size
        corners = [picture.getpixel(at) for at in ((2, 2), (2, height - 3), (width - 3, 2))]
        assert corners == [(255, 0, 0), (255, 0, 0), (0, 255, 0)]


async def test_wallpaper_that_cannot_be_read_is_told_and_costs_no_desktop(
    runtime_dir: Path, environment: dict[str, str]
) -> None:
    """Ours: a peer leaves its server running without a word."""
    settings = SessionSettings(runtime_dir=runtime_dir, backend="xvnc", wallpaper=Path("/nonexistent.png"))
    session = DesktopSession(settings, base_environment=environment)
    try:
        async with asyncio.timeout(LIMIT_S):
            result = await session.perform(LOOK)
    finally:
        await session.stop()

    assert result.screenshot is not None
    assert any("/nonexistent.png can't be read" in warning for warning in result.warnings)


async def test_desktops_side_by_side_share_nothing(
    session: DesktopSession, runtime_dir: Path, environment: dict[str, str]
) -> None:
    """Required: several on one host; what is typed on one does not show on the other."""
    settings = replace(session._settings, name="other", runtime_dir=runtime_dir / "other", width=640)
    other = DesktopSession(settings, base_environment=environment)
    try:
        async with asyncio.timeout(LIMIT_S):
            await session.launch(["xterm", "-T", "here"])
            windows = [await each.windows() for each in (session, other)]
            server = session.status().pids["xvnc"]
            await session.stop()
            result = await other.perform(LOOK)
    finally:
        await other.stop()

    assert [[window.title for window in each] for each in windows] == [["here"], []]
    assert server not in other.status().pids.values()
    assert result.screenshot is not None
    assert result.screenshot.native_size == (640, 800)
