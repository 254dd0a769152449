"""Display numbers, and what others left of theirs."""

import asyncio
import os
import socket
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from computer.errors import StartFailed
from computer.session import sockets
from computer.session.browser import clear_profile_locks, with_profile
from computer.session.sockets import (
    check_socket_directory,
    connect_unix,
    free_displays,
    make_socket_directory,
    remove_leftovers,
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without X servers; returns what stands for /tmp."""
    monkeypatch.setattr(sockets, "LOCKS", tmp_path)
    monkeypatch.setattr(sockets, "X_SOCKETS", tmp_path / ".X11-unix")
    make_socket_directory()
    return tmp_path


def _dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _listen(path: Path | str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def test_first_number_is_ten(machine: Path) -> None:
    """Ours: lower ones are those of people's own servers."""
    assert list(islice(free_displays(), 3)) == [10, 11, 12]


@pytest.mark.parametrize("content", ["", "\n", "garbage", "12x", "\xff\xfe"], ids=repr)
def test_lock_that_names_nobody_is_left_alone(machine: Path, content: str) -> None:
    """BUGS 44: an empty lock may be one that is just being written."""
    (machine / ".X10-lock").write_bytes(content.encode("latin-1"))

    assert next(free_displays()) == 11
    assert (machine / ".X10-lock").exists()


def test_lock_of_a_process_that_lives_is_left_alone(machine: Path) -> None:
    """BUGS 44: whatever process that is."""
    (machine / ".X10-lock").write_text(f"{os.getpid():10d}\n")
    (machine / ".X11-lock").write_text("         1\n")

    assert next(free_displays()) == 12


def test_what_the_dead_left_is_taken_over_last(machine: Path) -> None:
    """BUGS 44: servers do that themselves; so it costs no number in the end."""
    (machine / ".X10-lock").write_text(f"{_dead_pid():10d}\n")
    _listen(machine / ".X11-unix/X11").close()
    numbers = list(free_displays())

    assert numbers[0] == 12
    assert numbers[-2:] == [10, 11]


def test_servers_that_listen_are_skipped(machine: Path) -> None:
    """Required: filesystem sockets and abstract ones, with a lock or without."""
    with _listen(machine / ".X11-unix/X10"), _listen(f"\0{machine}/.X11-unix/X11"):
        assert next(free_displays()) == 12
    assert next(free_displays()) == 11


def test_leftovers_are_removed_only_from_the_one_who_left_them(machine: Path) -> None:
    """Ours: the number may be another's by now."""
    lock, path = machine / ".X10-lock", machine / ".X11-unix/X10"
    lock.write_text("     4321\n")
    _listen(path).close()
    remove_leftovers(10, 1234)
    kept = lock.exists() and path.exists()
    remove_leftovers(10, 4321)

    assert kept
    assert not lock.exists()
    assert not path.exists()


def test_missing_directory_is_made_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUGS 45: X servers of other users need it too."""
    monkeypatch.setattr(sockets, "X_SOCKETS", tmp_path / "x")
    make_socket_directory()
    make_socket_directory()

    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o1777


def test_directory_that_cannot_be_used_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS 45: here a file in its place, which not even root can use."""
    path = tmp_path / "x"
    path.write_text("")
    monkeypatch.setattr(sockets, "X_SOCKETS", path)
    with pytest.raises(StartFailed, match=f"sudo chmod 1777 {path}"):
        make_socket_directory()

    assert "0644" in str(check_socket_directory())


async def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    """Ours: Xvnc's queue has five places, and asyncio takes a refusal for want of room for a connection."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(0)
        first = await connect_unix(path)
        waiting = asyncio.ensure_future(connect_unix(path))
        await asyncio.sleep(0)
        is_early = waiting.done()
        accepted = [server.accept()[0], await asyncio.to_thread(server.accept)]
        second = await asyncio.wait_for(waiting, 30)
        for _, writer in (first, second):
            writer.write(b"x")
            await writer.drain()
            writer.close()
        accepted[0].close()
        accepted[1][0].close()

    assert not is_early


PROFILE = Path("/run/p q")


@pytest.mark.parametrize(
    ("argv", "is_root", "expected"),
    [
        (["xterm", "-e", "chromium"], True, ["xterm", "-e", "chromium"]),
        (["chromium", "--user-data-dir=/mine", "x"], True, ["chromium", "--user-data-dir=/mine", "x"]),
        (["chromium", "--user-data-dir", "/mine"], False, ["chromium", "--user-data-dir", "/mine"]),
    ],
)
def test_other_commands_stay_as_they_are(argv: list[str], is_root: bool, expected: list[str]) -> None:
    """Ours: only a browser without a profile gets one."""
    assert with_profile(argv, PROFILE, is_root=is_root) == expected


@pytest.mark.parametrize("is_root", [True, False])
def test_browser_gets_a_profile_and_keeps_its_sandbox_unless_it_runs_as_root(is_root: bool) -> None:
    """Required: a profile per session; chromium refuses to run as root inside its sandbox."""
    argv = with_profile(["/usr/bin/chromium", "--disable-gpu", "http://a"], PROFILE, is_root=is_root)

    assert argv[:2] == ["/usr/bin/chromium", "--user-data-dir=/run/p q"]
    assert argv[-1] == "http://a"
    assert argv.count("--disable-gpu") == 1
    assert ("--no-sandbox" in argv) == is_root


def test_locks_of_a_dead_browser_are_removed(tmp_path: Path) -> None:
    """Required: stale locks cleared; they are links to names that don't exist."""
    for name in ("SingletonLock", "SingletonSocket"):
        (tmp_path / name).symlink_to("host-4321")
    (tmp_path / "Cookies").write_text("kept")
    clear_profile_locks(tmp_path)
    clear_profile_locks(tmp_path / "none")

    assert [path.name for path in tmp_path.iterdir()] == ["Cookies"]
