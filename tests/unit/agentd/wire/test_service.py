"""systemd's notify protocol: what is said, to whom, and what children inherit."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.wire.service import ServiceManager, render_notice, take_sockets


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """A manager's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(30)
        yield receiver


@given(st.text())
def test_a_status_never_begins_another_field(status: str) -> None:
    """sd_notify(3): fields are lines, so a value is kept on its own."""
    lines = render_notice(READY=1, STATUS=status).decode().split("\n")

    assert lines[0] == "READY=1"
    assert [line.partition("=")[0] for line in lines] == ["READY", "STATUS"]


@pytest.mark.parametrize("is_abstract", [False, True])
def test_notices_arrive(tmp_path: Path, *, is_abstract: bool) -> None:
    """sd_notify(3): a path, or an abstract name that begins with @."""
    name = f"@agentd-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name[1:]}" if is_abstract else name)
        receiver.settimeout(30)
        manager = ServiceManager(name)
        manager.ready("here\nI=am")
        manager.reloading()
        manager.stopping()
        heard = [receiver.recv(4096).decode() for _ in range(3)]

    assert heard[0] == "READY=1\nSTATUS=here I=am"
    assert heard[1].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert heard[2].startswith("STOPPING=1")


def test_nobody_is_no_reason_to_fail(tmp_path: Path) -> None:
    """Ours: without a manager, and with one that has gone, nothing happens."""
    ServiceManager(None).ready("here")
    ServiceManager(str(tmp_path / "gone")).ready("here")


@pytest.mark.parametrize(
    ("period", "pid", "watched"),
    [
        ("30000000", None, True),
        ("30000000", "self", True),
        ("30000000", "1", False),
        ("0", None, False),
        ("soon", None, False),
        (None, None, False),
    ],
)
async def test_the_watchdog_is_ours_alone(
    listener: socket.socket, *, period: str | None, pid: str | None, watched: bool
) -> None:
    """sd_watchdog_enabled(3): a period counts when it is a number and meant for this process."""
    given_variables = {
        "NOTIFY_SOCKET": listener.getsockname(),
        "WATCHDOG_USEC": period,
        "WATCHDOG_PID": str(os.getpid()) if pid == "self" else pid,
        "HOME": "/",
    }
    environment = {name: value for name, value in given_variables.items() if value is not None}
    manager = ServiceManager.from_environment(environment)
    alive = asyncio.ensure_future(manager.keep_alive(lambda: "well"))
    await asyncio.wait({alive}, timeout=0)
    await asyncio.sleep(0)

    assert environment == {"HOME": "/"}
    assert alive.done() is not watched
    if watched:
        assert listener.recv(4096) == b"WATCHDOG=1\nSTATUS=well"
    alive.cancel()


def test_sockets_of_another_process_are_left_alone() -> None:
    """sd_listen_fds(3): LISTEN_PID says for whom they are."""
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "chatd.socket"}

    assert (take_sockets(environment), environment) == ([], {})


CHILD = """
import os
from agentd.wire.service import take_sockets
os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
try:
    take_sockets({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
except ValueError as exc:
    print(exc)
"""


def test_what_does_not_listen_is_refused() -> None:
    """Ours: a descriptor that is no listening socket is told by number."""
    told = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, text=True).stdout

    assert "descriptor 3 of the service manager is no socket" in told
