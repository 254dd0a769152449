"""The daemon's local API on its real socket, with a real desktop."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from PIL import Image

from agentd.app import Daemon
from agentd.errors import AlreadyRunning, RuntimeDirUnusable
from agentd.lease import Party
from agentd.settings import AgentdSettings
from tests.display_left import left_of_display

# Seconds. Generous: other tests share the machine.
LIMIT_S = 30
DESKTOP = "/api/v0/desktop"
ACTION = f"{DESKTOP}/main/action"
OPEN = f"{DESKTOP}/main/open"
WINDOWS = f"{DESKTOP}/main/windows"


def _daemon(runtime_dir: Path) -> Daemon:
    return Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc"))


@pytest.fixture
async def daemon(runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A daemon that listens; its desktop starts with its first use."""
    daemon = _daemon(runtime_dir)
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


async def _ask(client: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    stream = None if data is None else io.BytesIO(data)
    async with client.request(method, path, data=stream) as response:
        return response.status, await response.json()


async def _state(client: aiohttp.ClientSession) -> str:
    _, statuses = await _ask(client, "GET", DESKTOP)
    return str(statuses[0]["state"])


NEVER_STARTS: list[tuple[str, str, str, Any, int, str]] = [
    ("unknown action", "POST", ACTION, {"action": "explode"}, 400, "bad_request"),
    ("no action", "POST", ACTION, {}, 400, "bad_request"),
    ("list as action", "POST", ACTION, {"action": ["key"]}, 400, "bad_request"),
    ("unknown field", "POST", ACTION, {"action": "screenshot", "colour": 1}, 400, "bad_request"),
    ("array body", "POST", ACTION, [{"action": "screenshot"}], 400, "bad_request"),
    ("null body", "POST", ACTION, b"null", 400, "bad_request"),
    ("empty body", "POST", ACTION, b"", 400, "bad_request"),
    ("malformed JSON", "POST", ACTION, b'{"action":', 400, "bad_request"),
    ("no UTF-8", "POST", ACTION, b'{"action":"\xff"}', 400, "bad_request"),
    ("deep JSON", "POST", ACTION, b"[" * 200_000, 400, "bad_request"),
    ("long number", "POST", ACTION, b'{"action":' + b"9" * 5_000 + b"}", 400, "bad_request"),
    ("huge body", "POST", ACTION, b" " * 3_000_000, 413, "http_error"),
    ("3 coordinates", "POST", ACTION, {"action": "left_click", "coordinate": [1, 2, 3]}, 400, "bad_request"),
    ("fractions", "POST", ACTION, {"action": "mouse_move", "coordinate": [1.5, 2]}, 400, "bad_request"),
    ("no coordinate", "POST", ACTION, {"action": "mouse_move"}, 400, "bad_request"),
    ("no actions", "POST", ACTION, {"actions": []}, 400, "bad_request"),
    ("long wait", "POST", ACTION, {"action": "wait", "duration_ms": 10**9}, 400, "bad_request"),
    ("surrogate", "POST", ACTION, b'{"action":"\\ud800"}', 400, "bad_request"),
    ("no program", "POST", OPEN, {"argv": []}, 400, "bad_request"),
    ("string as argv", "POST", OPEN, {"argv": "xterm"}, 400, "bad_request"),
    ("NUL in argv", "POST", OPEN, {"argv": ["xterm", "a\0b"]}, 400, "bad_request"),
    ("NUL in cwd", "POST", OPEN, {"argv": ["xterm"], "cwd": "\0"}, 400, "bad_request"),
    ("unknown desktop", "POST", f"{DESKTOP}/other/action", {"action": "screenshot"}, 404, "not_found"),
    ("no name for a desktop", "POST", f"{DESKTOP}/a%20b/up", None, 400, "bad_request"),
    ("unknown desktop shot", "GET", f"{DESKTOP}/%00/screenshot", None, 404, "not_found"),
    ("move without y", "POST", f"{WINDOWS}/1/move", {"x": 1}, 400, "bad_request"),
    ("size in words", "POST", f"{WINDOWS}/1/resize", {"width": "1", "height": 2}, 400, "bad_request"),
    ("no list", "POST", f"{WINDOWS}/1/close", [], 400, "bad_request"),
    ("window in words", "POST", f"{WINDOWS}/one/focus", None, 404, "http_error"),
    ("unknown desktop's windows", "GET", f"{DESKTOP}/other/windows", None, 404, "not_found"),
    ("unknown route", "GET", "/api/v0/nothing", None, 404, "http_error"),
    ("wrong method", "GET", ACTION, None, 405, "http_error"),
    ("other wrong method", "DELETE", f"{DESKTOP}/main/up", None, 405, "http_error"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [(*row[1:4], row[4:]) for row in NEVER_STARTS],
    ids=[row[0] for row in NEVER_STARTS],
)
async def test_bad_request_is_told_and_starts_no_desktop(
    client: aiohttp.ClientSession, method: str, path: str, body: Any, expected: tuple[int, str]
) -> None:
    """Ours: junk costs nothing, and every error has a sentence and a word."""
    status, told = await _ask(client, method, path, body)

    assert expected == (status, told["code"])
    assert told["message"]
    assert await _state(client) == "stopped"


async def test_wrong_method_names_the_right_one(client: aiohttp.ClientSession) -> None:
    """RFC 9110, 15.5.6."""
    async with client.get(ACTION) as response:
        assert response.headers["Allow"] == "POST"


async def test_action_that_the_screen_refuses_is_told(client: aiohttp.ClientSession) -> None:
    """Ours: 400, since asking again the same way cannot help; the desktop lives on."""
    outside = {"action": "left_click", "coordinate": [5000, 5]}
    misspelt = {"action": "key", "text": "Retrun"}
    missing = {"argv": ["no-such-program"]}
    table = [
        (ACTION, outside, "out_of_bounds", "5000"),
        (ACTION, misspelt, "unknown_key", "did you mean"),
        (OPEN, missing, "invalid_action", "no-such-program"),
    ]
    for path, body, code, word in table:
        status, told = await _ask(client, "POST", path, body)

        assert (400, code) == (status, told["code"])
        assert word in told["message"]
    assert await _state(client) == "running"


async def test_screenshot_is_a_picture_of_the_whole_screen(client: aiohttp.ClientSession) -> None:
    """Ours: PNG in native pixels."""
    async with client.get(f"{DESKTOP}/main/screenshot") as response:
        data = await response.read()
        content_type = response.content_type

    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
    assert content_type == "image/png"
    assert (picture.format, picture.size) == ("PNG", (1280, 800))


async def test_actions_are_performed_in_order(client: aiohttp.ClientSession) -> None:
    """Ours: one action, or a whole call."""
    move = {"action": "mouse_move", "coordinate": [300, 200]}
    where = {"action": "cursor_position"}
    single = await _ask(client, "POST", ACTION, move)
    whole = await _ask(client, "POST", ACTION, {"actions": [where, move], "screenshot": False})

    assert (single[0], whole[0]) == (200, 200)
    assert single[1]["screenshot"] is None
    assert [report["native_point"] for report in whole[1]["reports"]] == [[300, 200], [300, 200]]


async def test_socket_is_private(daemon: Daemon, runtime_dir: Path) -> None:
    """Ours: whoever reaches it owns the desktop."""
    assert (_mode(daemon.socket_path), _mode(runtime_dir)) == (0o600, 0o700)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_second_daemon_on_the_same_directory_is_refused(
    daemon: Daemon, client: aiohttp.ClientSession, runtime_dir: Path
) -> None:
    """Ours: and the first one does not notice."""
    second = _daemon(runtime_dir)
    with pytest.raises(AlreadyRunning) as caught:
        await second.start()
    await second.stop()

    assert caught.value.code == "already_running"
    assert str(daemon.socket_path) in str(caught.value)
    assert await _ask(client, "GET", "/api/v0/health") == (200, {"status": "ok"})


async def test_socket_of_a_dead_daemon_is_taken_over(runtime_dir: Path) -> None:
    """Ours: a crash needs no cleaning up."""
    server = await asyncio.start_unix_server(lambda *_: None, str(runtime_dir / "agentd.sock"))
    server.close()
    await server.wait_closed()
    daemon = _daemon(runtime_dir)
    assert daemon.socket_path.exists()

    await daemon.start()
    await daemon.stop()
    assert not daemon.socket_path.exists()


async def test_runtime_directory_of_somebody_else_is_refused(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: /tmp is everybody's."""
    monkeypatch.setattr("agentd.app.os.getuid", lambda: 4711)
    with pytest.raises(RuntimeDirUnusable, match="another user"):
        await _daemon(runtime_dir).start()


async def test_program_is_opened_and_ends_with_the_desktop(client: aiohttp.ClientSession) -> None:
    """Ours: what was started in a session is gone when it is down."""
    _, opened = await _ask(client, "POST", OPEN, {"argv": ["sleep", "4330"], "cwd": "/"})
    process = psutil.Process(opened["pid"])
    async with asyncio.timeout(LIMIT_S):
        while process.name() != "sleep":  # noqa: ASYNC110  exec in another process
            await asyncio.sleep(0.01)
    _, down = await _ask(client, "POST", f"{DESKTOP}/main/down")

    assert down["state"] == "stopped"
    assert not psutil.pid_exists(opened["pid"])


async def test_program_that_fails_at_once_is_an_error_with_its_words(client: aiohttp.ClientSession) -> None:
    """Ours: a process id alone says nothing; the program ended before anybody saw it."""
    status, told = await _ask(client, "POST", OPEN, {"argv": ["sh", "-c", "echo no such luck >&2; exit 3"]})

    assert (status, told["code"]) == (503, "launch_failed")
    assert "no such luck" in told["message"]


async def test_windows_are_listed_placed_and_closed(client: aiohttp.ClientSession) -> None:
    """Ours: what a window manager does, asked for by number, and seen to be done."""
    _, opened = await _ask(client, "POST", OPEN, {"argv": ["xterm", "-T", "one"]})
    number = opened["window"]["id"]
    _, listed = await _ask(client, "GET", WINDOWS)
    _, moved = await _ask(client, "POST", f"{WINDOWS}/{number}/move", {"x": 200, "y": 150})
    _, resized = await _ask(client, "POST", f"{WINDOWS}/{number}/resize", {"width": 300, "height": 260})
    _, focused = await _ask(client, "POST", f"{WINDOWS}/{number}/focus")
    _, left = await _ask(client, "POST", f"{WINDOWS}/{number}/close")
    status, told = await _ask(client, "POST", f"{WINDOWS}/{number}/focus")

    assert [window["title"] for window in listed] == ["one"]
    assert moved["window"]["bounds"][:2] == [200, 150]
    assert resized["window"]["bounds"] != moved["window"]["bounds"]
    assert focused["window"]["active"] is True
    assert left == []
    assert (status, told["code"]) == (404, "window_not_found")


async def test_windows_are_left_alone_while_a_person_has_control(
    daemon: Daemon, client: aiohttp.ClientSession
) -> None:
    """Required: one lease for all input; a window that goes away under a person's hands is input, too."""
    await daemon.control.take("main", Party(seat="ann", name="Ann"))
    place, size = {"x": 1, "y": 1}, {"width": 9, "height": 9}
    told = [
        await _ask(client, "POST", f"{WINDOWS}/1/{verb}", body)
        for verb, body in (("focus", None), ("close", None), ("move", place), ("resize", size))
    ]
    looked, _ = await _ask(client, "GET", WINDOWS)

    assert [(status, answer["code"]) for status, answer in told] == [(409, "control_held")] * 4
    assert looked == 200


async def test_picture_has_the_format_that_was_set(runtime_dir: Path) -> None:
    """Ours: settings reach the driver."""
    daemon = Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc", picture_format="webp"))
    await daemon.start()
    try:
        picture = await daemon.desktops.get().screenshot()
    finally:
        await daemon.stop()

    assert picture.media_type == "image/webp"


async def test_desktop_goes_up_and_down_and_up(client: aiohttp.ClientSession) -> None:
    """Ours: each of them harmless when repeated."""
    states = []
    for verb in ("down", "up", "up", "down", "up"):
        _, told = await _ask(client, "POST", f"{DESKTOP}/main/{verb}")
        states.append(told["state"])

    assert states == ["stopped", "running", "running", "stopped", "running"]


async def test_stop_leaves_no_process_and_no_socket(runtime_dir: Path) -> None:
    """Ours: counted, not believed."""
    daemon = _daemon(runtime_dir)
    await daemon.start()
    session = daemon.desktops.get()
    await session.ensure_running()
    await session.open(["xterm"])
    status = session.status()
    processes = [psutil.Process(pid) for pid in status.pids.values()]
    await daemon.stop()
    await daemon.stop()

    assert len(processes) == 3
    assert not [process for process in processes if process.is_running()]
    assert status.display is not None
    assert left_of_display(status.display, status.pids["xvnc"]) == []
    assert _existing(daemon.socket_path, runtime_dir / "desktop-main" / "rfb.sock") == []


def _existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.exists()]


async def test_stop_does_not_wait_for_an_action_that_takes_minutes(
    daemon: Daemon, client: aiohttp.ClientSession
) -> None:
    """Ours: a wait of five minutes ends with the daemon."""
    await _ask(client, "POST", f"{DESKTOP}/main/up")
    waiting = asyncio.create_task(_ask(client, "POST", ACTION, {"action": "wait", "duration_ms": 300_000}))
    await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT_S):
        await _ask(client, "GET", "/api/v0/health")
        await daemon.stop()
        (ended,) = await asyncio.gather(waiting, return_exceptions=True)

    assert isinstance(ended, aiohttp.ClientError) or ended[0] >= 500
