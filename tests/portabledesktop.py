#!/usr/bin/env python3
"""
Stands in for the portabledesktop command: the same contract, on real servers.

Every verb is one shot. ``up`` starts Xvnc and openbox detached, as open as the original does (no
password on every interface, X without access control), waits for the port and not for a greeting,
prints its state on stdout and a warning on stderr, and exits. A second ``up`` overwrites the state of
the first and leaves its processes behind. ``info`` prints the state without looking whether it is true.
``down`` signals the numbers that it finds there. Errors are one line on stderr and exit code 1.

STAND_IN_FAILS makes ``up`` fail before it starts anything, STAND_IN_FAILS_LATE after its server is up,
STAND_IN_DEAF makes it ignore every --xvnc-arg, STAND_IN_FOREGROUND_JSON prints more lines after the state.
"""

import argparse
import csv
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Tells errors as the original does."""

    def error(self, message: str) -> NoReturn:
        """One line, exit code 1."""
        fail(message)


def fail(message: str) -> NoReturn:
    """One line on stderr, exit code 1."""
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(1)


def free_display() -> tuple[int, int]:
    """A display whose socket is missing and whose port can be bound; neither is held, locks are not seen."""
    for display in range(1, 100):
        with socket.socket() as probe, suppress(OSError):
            if not Path(f"/tmp/.X11-unix/X{display}").exists():
                probe.bind(("127.0.0.1", 5900 + display))
                return display, 5900 + display
    fail("no free display")


def choose_display(options: argparse.Namespace) -> tuple[int, int]:
    """What is given is taken as it is; the other follows from it."""
    if options.display is not None:
        return options.display, options.port or 5900 + options.display
    if options.port is not None:
        return options.port - 5900 if 5900 <= options.port <= 5999 else 1, options.port
    return free_display()


def server_arguments(options: argparse.Namespace) -> list[str]:
    """The caller's own, each split at commas."""
    if os.environ.get("STAND_IN_DEAF"):
        return []
    return [word for row in csv.reader(options.xvnc_arg) for word in row]


def child_environment(display: int) -> dict[str, str]:
    """DISPLAY, and a UTF-8 locale."""
    language = os.environ.get("LANG", "")
    if "UTF-8" not in language.upper():
        language = "C.UTF-8"
    return os.environ | {"DISPLAY": f":{display}", "LANG": language, "LC_CTYPE": language}


def start(argv: list[str], log: Path, display: int) -> int:
    """Start a process that nobody waits for; its number."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv, env=child_environment(display), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    process.returncode = 0
    return process.pid


def wait_port(port: int, log: Path) -> None:
    """Wait until something accepts; whose it is, and what it says, is not looked at."""
    deadline = time.monotonic() + 15
    pause = 0.05
    while time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(pause)
        pause = min(0.5, pause * 2)
    fail(f"Xvnc did not become ready: {log.read_text()[-200:]}")


def up(options: argparse.Namespace) -> None:
    """Start, wait for the port, report."""
    if os.environ.get("STAND_IN_FAILS"):
        fail("the runtime is broken")
    display, port = choose_display(options)
    directory = Path(options.session_dir or tempfile.mkdtemp(prefix="portabledesktop-"))
    directory.mkdir(parents=True, exist_ok=True)
    may_resize = "0" if options.desktop_size_mode == "fixed" else "1"
    server = start(
        ["Xvnc", f":{display}", "-geometry", options.geometry, "-depth", options.depth, "-dpi", options.dpi,
         "-rfbport", str(port), "-SecurityTypes", "None", "-ac", "-nolisten", "tcp", "-localhost", "no",
         f"-AcceptSetDesktopSize={may_resize}", *server_arguments(options)],
        directory / "xvnc.log", display,
    )  # fmt: skip
    wait_port(port, directory / "xvnc.log")
    if os.environ.get("STAND_IN_FAILS_LATE"):
        fail("set background: exit status 1")
    manager = None if options.no_openbox else start(["openbox"], directory / "openbox.log", display)
    state = {
        "runtimeDir": "/opt/runtime", "display": display, "vncPort": port, "geometry": options.geometry,
        "depth": int(options.depth), "dpi": int(options.dpi), "desktopSizeMode": options.desktop_size_mode,
        "sessionDir": str(directory), "cleanupSessionDirOnStop": not options.session_dir, "xvncPid": server,
        "openboxPid": manager, "detached": True, "stateFile": options.state_file,
        "startedAt": datetime.now(UTC).isoformat(),
    }  # fmt: skip
    path = Path(options.state_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(state, indent=2))
    path.chmod(0o644)
    sys.stderr.write("warning: wallpaper is not {available}\n")
    show(state, as_json=options.json)
    if os.environ.get("STAND_IN_FOREGROUND_JSON"):
        sys.stdout.write("ready, press Ctrl-C to stop\n")


def show(state: dict[str, Any], *, as_json: bool) -> None:
    """One line of JSON, or a line for each key."""
    lines = [json.dumps(state)] if as_json else [f"{key}: {value}" for key, value in state.items()]
    sys.stdout.write("\n".join(lines) + "\n")


def read_state(options: argparse.Namespace) -> dict[str, Any]:
    """The state file's content, believed."""
    try:
        state: dict[str, Any] = json.loads(Path(options.state_file).read_text())
    except OSError as exc:
        fail(f"read state: {exc}")
    return state


def info(options: argparse.Namespace) -> None:
    """The state as it was stored."""
    show(read_state(options), as_json=options.json)


def end(pid: int) -> None:
    """TERM, five seconds, KILL; a process that is gone is a success."""
    with suppress(ProcessLookupError):
        # A descriptor, since a number stays until somebody collects the process: nobody hurries.
        process = os.pidfd_open(pid)
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not select.select([process], [], [], 5)[0]:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)


def down(options: argparse.Namespace) -> None:
    """End both by their numbers, whosever they are."""
    state = read_state(options)
    for role in ("openboxPid", "xvncPid"):
        if state[role] is not None:
            end(state[role])
    Path(options.state_file).unlink()
    sys.stdout.write("stopped\n")


def default_state_file() -> str:
    """Where it keeps the one session of a user, unless it is told otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '')}/.cache"
    return os.environ.get("PORTABLEDESKTOP_STATE_FILE") or f"{cache}/portabledesktop/session.json"


def main() -> None:
    """Parse and run."""
    parser = Parser(allow_abbrev=False)
    parser.add_argument("verb", choices=["up", "info", "down"])
    parser.add_argument("--state-file", default=default_state_file())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-openbox", action="store_true")
    parser.add_argument("--session-dir", default="")
    parser.add_argument("--display", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--geometry", default="1280x800")
    parser.add_argument("--depth", default="24")
    parser.add_argument("--dpi", default="96")
    parser.add_argument("--desktop-size-mode", choices=["fixed", "dynamic"], default="fixed")
    parser.add_argument("--xvnc-arg", action="append", default=[])
    options = parser.parse_args()
    {"up": up, "info": info, "down": down}[options.verb](options)


if __name__ == "__main__":
    main()
