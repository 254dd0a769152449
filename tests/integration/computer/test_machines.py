"""
Machines that lack something: each in a mount namespace of its own, as root and as a plain user.

Only root can make those; elsewhere these tests are skipped.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOBODY = 65_534
# Seconds. Generous: other tests share the machine.
LIMIT_S = 60
CAN_MOUNT = (
    os.geteuid() == 0
    and not subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True
    ).returncode
)
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="only root can change what a machine has")

# Prints what a first screenshot comes to, and how it was with windows and time.
PROGRAM = """
import asyncio, json, os, sys, tempfile, time
from pathlib import Path
from computer.errors import ComputerError
from computer.session import DesktopSession, SessionSettings
from computer.wire import ComputerCall

async def main():
    directory = Path(tempfile.mkdtemp())
    session = DesktopSession(
        SessionSettings(runtime_dir=directory / "s", backend="xvnc"),
        base_environment={"PATH": sys.argv[1], "HOME": str(directory / "home"), "LANG": "C"},
    )
    look = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    answer = {}
    try:
        result = await session.perform(look)
        answer = {"size": result.screenshot.native_size, "warnings": result.warnings}
        answer["windows"] = len(await session.windows())
    except ComputerError as exc:
        answer["error"] = str(exc)
    answer |= {"state": session.status().state, "uid": os.geteuid()}
    await session.stop()
    print(json.dumps(answer))

asyncio.run(main())
"""


def _start_on(setup: str, *, uid: int = 0, path: str = os.environ["PATH"]) -> dict[str, Any]:
    """Start a desktop where *setup*, shell commands, has changed the machine; /tmp is empty first."""
    become = f"setpriv --reuid={uid} --regid={uid} --clear-groups" if uid else ""
    script = f'mount -t tmpfs -o mode=1777 none /tmp\n{setup}\nexec {become} "$@"'
    argv = ["unshare", "-m", "sh", "-ec", script, "sh", sys.executable, "-c", PROGRAM, path]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        argv, env=variables, cwd="/", capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


SOCKETS = "/tmp/.X11-unix"


@pytest.mark.parametrize("uid", [0, NOBODY], ids=["root", "plain user"])
def test_desktop_starts_where_no_server_ever_ran(uid: int) -> None:
    """BUGS 45: the socket directory is missing; as root and as a plain user, with LANG=C."""
    answer = _start_on("true", uid=uid)

    assert (answer["state"], answer["size"], answer["windows"]) == ("running", [1280, 800], 0)
    assert answer["uid"] == uid


def test_root_may_use_a_socket_directory_of_its_own() -> None:
    """BUGS 45: mode 0755."""
    assert _start_on(f"mkdir -m 0755 {SOCKETS}")["state"] == "running"


def test_plain_user_is_told_what_to_do_about_the_socket_directory() -> None:
    """BUGS 45: or says what to fix."""
    answer = _start_on(f"mkdir -m 0755 {SOCKETS}", uid=NOBODY)

    assert answer["state"] == "failed"
    assert f"run: sudo chmod 1777 {SOCKETS}" in answer["error"]
    assert "\n" not in answer["error"]


def test_locks_of_others_do_not_keep_a_desktop_from_starting() -> None:
    """BUGS 44: an empty one, one of a process that lives, one of a process that is dead."""
    locks = ("", "         1", "  99999999")
    plant = "; ".join(f"printf '{lock}' > /tmp/.X{10 + at}-lock" for at, lock in enumerate(locks))
    answer = _start_on(f"mkdir -m 1777 {SOCKETS}; {plant}", uid=NOBODY)

    assert answer["state"] == "running"


def test_desktop_works_without_a_window_manager() -> None:
    """BUGS 43: no manager, no list of windows, no wait; and it is said."""
    programs = ("Xvnc", "xterm", "sh", "setpriv", "grep", "touch")
    links = "; ".join(f"ln -s {shutil.which(name)} /tmp/bin/{name}" for name in programs)
    answer = _start_on(f"mkdir /tmp/bin; {links}", path="/tmp/bin")

    assert (answer["state"], answer["windows"]) == ("running", 0)
    assert any("no window manager" in warning for warning in answer["warnings"])


@pytest.mark.parametrize(
    ("setup", "file"),
    [
        ("touch /tmp/none; mount --bind /tmp/none /usr/bin/xkbcomp", "/usr/bin/xkbcomp"),
        ("mkdir /tmp/none; mount --bind /tmp/none /usr/share/X11/xkb", "/usr/share/X11/xkb"),
    ],
    ids=["compiler", "data"],
)
def test_missing_keymaps_are_one_clear_error_naming_the_file(setup: str, file: str) -> None:
    """BUGS 46."""
    answer = _start_on(setup)

    assert answer["state"] == "failed"
    first = answer["error"].split("\n")[0]
    assert file in first
    assert "apt-get install" in first
