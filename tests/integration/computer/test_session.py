"""Life and death of a desktop session on a real Xvnc."""

import asyncio
import os
import select
import shlex
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from computer.errors import InvalidAction, StartFailed
from computer.session import DesktopSession, SessionSettings
from computer.session.process import ProcessWatch, end_marked
from computer.wire import ComputerCall, DesktopStatus
from tests.display_left import left_of_display

LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
# Seconds. Generous: other tests share the machine.
LIMIT_S = 30


def _number(session: DesktopSession) -> int:
    display = session.status().display
    assert display is not None
    return int(display[1:])


async def _wait_state(session: DesktopSession, state: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        while session.status().state != state:  # noqa: ASYNC110  any way to that state will do
            await asyncio.sleep(0.01)


def _kill(pid: int) -> None:
    """Kill, and return when the kernel has seen to it, before the event loop has."""
    watch = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([watch], [], [])
    os.close(watch)


async def _wait_restarts(session: DesktopSession, count: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        while session.status().restarts < count or session.status().state != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_first_use_starts_a_desktop_with_a_frame(
    runtime_dir: Path, environment: dict[str, str]
) -> None:
    """Ours: lazy start, told step by step."""
    states: list[DesktopStatus] = []
    settings = SessionSettings(runtime_dir=runtime_dir, backend="xvnc", width=640, height=480)
    session = DesktopSession(settings, on_change=states.append, base_environment=environment)
    assert session.status().state == "stopped"

    async with asyncio.timeout(LIMIT_S):
        result = await session.perform(LOOK)
    pids = session.status().pids
    await session.stop()

    assert result.screenshot is not None
    assert result.screenshot.native_size == (640, 480)
    assert set(pids) == {"xvnc", "openbox"}
    assert [status.state for status in states] == ["starting", "running", "stopped"]


async def test_stop_leaves_no_process_socket_or_lock(session: DesktopSession, runtime_dir: Path) -> None:
    """Ours: counted, not believed; what escaped its process group is ended too."""
    await session.ensure_running()
    number, server_pid = _number(session), session.status().pids["xvnc"]
    await session.open(["xterm", "-e", "setsid sleep 4321 & exec sleep 4322"])
    marked = f"COMPUTER_SESSION={session.environment()['COMPUTER_SESSION']}".encode()
    async with asyncio.timeout(LIMIT_S):
        while _count(marked) < 5:  # noqa: ASYNC110  the kernel has no event for it
            await asyncio.sleep(0.01)
    await session.stop()

    assert _count(marked) == 0
    assert _left(number, server_pid, runtime_dir) == []


def _left(number: int, server_pid: int, runtime_dir: Path) -> list[Path]:
    mine = [runtime_dir / "rfb.sock", runtime_dir / "Xauthority"]
    return [*left_of_display(str(number), server_pid), *(path for path in mine if path.exists())]


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _count(mark: bytes) -> int:
    found = 0
    for process in psutil.process_iter():
        try:
            found += mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
    return found


async def test_callers_at_the_same_time_share_one_start(session: DesktopSession) -> None:
    """Ours: single flight."""
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*(session.ensure_running() for _ in range(5)))
    pid = session.status().pids["xvnc"]
    await session.ensure_running()

    assert session.status().pids["xvnc"] == pid


async def test_cancelled_caller_does_not_cancel_the_start(session: DesktopSession) -> None:
    """Spec: defect 29, for desktops."""
    impatient = asyncio.create_task(session.ensure_running())
    await asyncio.sleep(0)
    patient = asyncio.create_task(session.ensure_running())
    await asyncio.sleep(0)
    impatient.cancel()

    async with asyncio.timeout(LIMIT_S):
        await patient
    assert impatient.cancelled()
    assert session.status().state == "running"


async def test_stop_during_start_leaves_nothing(session: DesktopSession) -> None:
    """Ours: cancellation at any line leaves no child."""
    mark = f"COMPUTER_SESSION={session.environment()['COMPUTER_SESSION']}".encode()
    starting = asyncio.create_task(session.ensure_running())
    async with asyncio.timeout(LIMIT_S):
        while _count(mark) == 0:  # noqa: ASYNC110  the kernel has no event for it
            await asyncio.sleep(0)
        await session.stop()
        await asyncio.wait({starting})

    assert _count(mark) == 0
    assert starting.exception() is not None
    assert session.status().state == "stopped"


async def test_dead_server_is_noticed_and_restarted_and_the_next_result_says_so(
    session: DesktopSession,
) -> None:
    """BUGS 49, 50, 66: never reported as running, back by itself, what was lost is named once."""
    async with asyncio.timeout(LIMIT_S):
        await session.open(["xterm"])
        old = dict(session.status().pids)
        _kill(old["xvnc"])
        at_once = session.status().state
        await _wait_restarts(session, 1)
        result, later = await session.perform(LOOK), await session.perform(LOOK)

    assert at_once == "starting"
    assert result.screenshot is not None
    sentence = "The desktop was restarted: xvnc ended unexpectedly by SIGKILL. What was open is gone: xterm."
    assert sentence in result.warnings
    assert sentence not in later.warnings
    assert session.apps() == ()
    assert not set(old.values()) & set(session.status().pids.values())
    assert not any(psutil.pid_exists(pid) for pid in old.values())


async def test_programs_that_ignore_their_end_hold_up_no_restart(
    runtime_dir: Path, environment: dict[str, str]
) -> None:
    """Required: the first restart takes less than 2 s, whatever is open; deaf ones are gone as well."""
    told: list[tuple[float, str]] = []
    session = DesktopSession(
        SessionSettings(runtime_dir=runtime_dir, backend="xvnc"),
        on_change=lambda status: told.append((time.monotonic(), status.state)),
        base_environment=environment,
    )
    deaf = "trap '' TERM HUP; while :; do sleep 1; done"
    async with asyncio.timeout(LIMIT_S):
        await session.ensure_running()
        await session.open(["sh", "-c", f"setsid sh -c {shlex.quote(deaf)} & {deaf}"])
        marked = f"COMPUTER_SESSION={session.environment()['COMPUTER_SESSION']}".encode()
        while _count(b"DISPLAY=" + str(session.status().display).encode()) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        _kill(session.status().pids["xvnc"])
        told.append((time.monotonic(), "killed"))
        await _wait_restarts(session, 1)
    members = _count(marked)
    await session.stop()

    [killed] = [at for at, state in told if state == "killed"]
    back = next(at for at, state in told if state == "running" and at > killed)
    assert back - killed < 2
    assert members == 2


async def test_dead_window_manager_is_started_again_alone(session: DesktopSession) -> None:
    """Ours: windows and programs stay; the next result says what happened."""
    async with asyncio.timeout(LIMIT_S):
        await session.launch(["xterm", "-T", "survivor"])
        old = session.status().pids
        _kill(old["openbox"])
        result = await session.perform(LOOK)
        windows = await session.windows()

    assert result.warnings[0].startswith("The openbox ended by SIGKILL and was started again")
    assert [window.title for window in windows] == ["survivor"]
    new = session.status().pids
    assert {**new, "openbox": 0} == {**old, "openbox": 0}
    assert new["openbox"] != old["openbox"]
    assert session.status().restarts == 1


async def test_call_that_loses_its_desktop_says_so_and_shows_the_next_one(session: DesktopSession) -> None:
    """BUGS 49: SIGSEGV in the middle of an action; never a second click, never a hang."""
    call = ComputerCall.model_validate(
        {"actions": [{"action": "left_click", "coordinate": [5, 5]},
                     {"action": "wait", "duration_ms": 200_000},
                     {"action": "left_click", "coordinate": [9, 9]}]}
    )  # fmt: skip
    async with asyncio.timeout(LIMIT_S):
        await session.ensure_running()
        performing = asyncio.create_task(session.perform(call))
        assert session._live is not None
        while not session._live.driver._turn.locked():  # noqa: ASYNC110  until the call has begun
            await asyncio.sleep(0.01)
        os.kill(session.status().pids["xvnc"], signal.SIGSEGV)
        result = await performing

    assert result.error is not None
    assert "lost in the middle of this call" in result.error
    assert result.screenshot is not None
    assert any("was restarted: xvnc ended unexpectedly" in warning for warning in result.warnings)
    assert len(result.reports) <= 2


async def test_crash_loop_ends_in_failed_with_the_log(runtime_dir: Path, environment: dict[str, str]) -> None:
    """Required: no endless restarts; the next need tries once more, and a stop clears it."""
    tools = runtime_dir / "bin"
    tools.mkdir()
    (tools / "openbox").write_text("#!/bin/sh\ntouch \"${5##*touch }\"\necho 'no theme' >&2\nexit 7\n")
    (tools / "openbox").chmod(0o755)
    path = f"{tools}:{environment['PATH']}"
    settings = SessionSettings(runtime_dir=runtime_dir / "s", backend="xvnc")
    session = DesktopSession(settings, base_environment=environment | {"PATH": path})
    try:
        async with asyncio.timeout(LIMIT_S):
            with suppress(StartFailed):
                await session.ensure_running()
            await _wait_state(session, "failed")
        error = str(session.status().error)
    finally:
        await session.stop()

    assert "no theme" in error
    assert session.status().state == "stopped"


async def test_call_right_after_a_kill_succeeds(session: DesktopSession) -> None:
    """Spec: row 40, before anybody has noticed."""
    async with asyncio.timeout(LIMIT_S):
        await session.perform(LOOK)
        os.kill(session.status().pids["xvnc"], signal.SIGKILL)
        result = await session.perform(LOOK)

    assert result.error is None
    assert result.screenshot is not None


async def test_server_that_is_gone_leaves_its_socket_to_the_next(
    session: DesktopSession, runtime_dir: Path
) -> None:
    """Ours: SIGKILL leaves a lock and a socket; they are cleared away."""
    async with asyncio.timeout(LIMIT_S):
        await session.ensure_running()
        number, dead = _number(session), session.status().pids["xvnc"]
        os.kill(dead, signal.SIGKILL)
        await _wait_restarts(session, 1)
        next_number, server_pid = _number(session), session.status().pids["xvnc"]
    # Another test may have been quicker to take the number.
    assert next_number == number or left_of_display(str(number), dead) == []
    await session.stop()

    assert _left(next_number, server_pid, runtime_dir) == []


async def test_two_sessions_take_two_displays(
    session: DesktopSession, environment: dict[str, str], runtime_dir: Path
) -> None:
    """Ours: started at once, they don't meet."""
    others = []
    for index in range(2):
        directory = runtime_dir / str(index)
        others.append(
            DesktopSession(
                SessionSettings(runtime_dir=directory, backend="xvnc"), base_environment=environment
            )
        )
    try:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(*(one.ensure_running() for one in (session, *others)))
        assert len({_number(one) for one in (session, *others)}) == 3
    finally:
        for other in others:
            await other.stop()


async def test_nothing_is_open_to_others(session: DesktopSession, runtime_dir: Path) -> None:
    """Design: never open to the network; spec defect 1."""
    await session.ensure_running()
    server = psutil.Process(session.status().pids["xvnc"])
    reader, writer = await session.connect_rfb()
    greeting = await reader.readexactly(12)
    writer.close()
    await writer.wait_closed()

    assert greeting.startswith(b"RFB 003.")
    assert server.net_connections(kind="inet") == []
    paths = {connection.laddr for connection in server.net_connections(kind="unix")}
    assert not any(str(path).startswith(("\0", "@")) for path in paths)
    assert {_mode(runtime_dir / name) for name in ("rfb.sock", "Xauthority")} == {0o600}
    assert _mode(runtime_dir) == 0o700


async def test_x_server_refuses_a_client_without_the_cookie(session: DesktopSession) -> None:
    """Ours: the X side is behind a cookie."""
    variables = session.environment() | {"XAUTHORITY": "/dev/null"}
    await session.ensure_running()
    variables["DISPLAY"] = str(session.status().display)
    stranger = await asyncio.create_subprocess_exec(
        "xterm", "-e", "true", env=variables, stderr=asyncio.subprocess.DEVNULL
    )

    async with asyncio.timeout(LIMIT_S):
        assert await stranger.wait() != 0


async def test_open_gives_the_program_the_session(session: DesktopSession, runtime_dir: Path) -> None:
    """Ours: DISPLAY, XAUTHORITY and a directory of the caller's choice."""
    out = runtime_dir / "out"
    script = f'echo "$DISPLAY $XAUTHORITY $PWD" > {out}.part; mv {out}.part {out}'
    pid = await session.open(["sh", "-c", script], cwd="/usr")
    async with asyncio.timeout(LIMIT_S):
        while not out.exists():  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)

    assert pid > 0
    display = session.status().display
    assert out.read_text() == f"{display} {runtime_dir / 'Xauthority'} /usr\n"


@pytest.mark.parametrize("argv", [[], ["no-such-program-anywhere"]])
async def test_open_refuses_what_cannot_run(session: DesktopSession, argv: list[str]) -> None:
    """Ours: a typed refusal, not a traceback."""
    with pytest.raises(InvalidAction):
        await session.open(argv)


async def test_missing_server_is_diagnosed(runtime_dir: Path) -> None:
    """Ours: the sentence says how to install it."""
    settings = SessionSettings(runtime_dir=runtime_dir, backend="xvnc")
    session = DesktopSession(settings, base_environment={"PATH": "/nonexistent"})

    with pytest.raises(
        StartFailed, match=r"missing: install Xvnc \(apt-get install tigervnc-standalone-server\)"
    ):
        await session.ensure_running()
    assert session.status().state == "failed"
    await session.stop()


async def test_failing_server_shows_its_log(runtime_dir: Path, environment: dict[str, str]) -> None:
    """Ours: the end of the log is in the error."""
    tools = runtime_dir / "bin"
    tools.mkdir()
    (tools / "Xvnc").write_text("#!/bin/sh\necho 'Fatal server error: no fonts' >&2\nexit 3\n")
    (tools / "Xvnc").chmod(0o755)
    settings = SessionSettings(runtime_dir=runtime_dir, backend="xvnc")
    path = f"{tools}:{environment['PATH']}"
    session = DesktopSession(settings, base_environment=environment | {"PATH": path})

    with pytest.raises(StartFailed, match="status 3") as caught:
        await session.ensure_running()
    assert "no fonts" in caught.value.log_tail
    await session.stop()


async def test_only_marked_processes_are_ended() -> None:
    """Ours: the sweep by environment ends what carries the mark, and nothing else."""
    async with asyncio.timeout(LIMIT_S):
        ours = await asyncio.create_subprocess_exec("sleep", "4323", env={"MARK_OF_TEST": "x"})
        other = await asyncio.create_subprocess_exec("sleep", "4324", env={"MARK_OF_TEST": "xy"})
        watch = ProcessWatch(other.pid)
        found = await end_marked("MARK_OF_TEST=x")
        await ours.wait()
        assert watch.is_alive
        await watch.stop()
        await other.wait()

    assert found == 1
