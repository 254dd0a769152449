#!/usr/bin/env python3
"""
Stands in for the portabledesktop command: same contract, real servers.

``up --json`` starts Xvnc and openbox detached, prints its state on stdout and a warning on
stderr; ``down`` ends them. Its defaults are as open as the original's.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def _free_display() -> tuple[int, int]:
    for display in range(61, 90):
        with socket.socket() as probe, suppress(OSError):
            if not Path(f"/tmp/.X11-unix/X{display}").exists():
                probe.bind(("127.0.0.1", 5900 + display))
                return display, 5900 + display
    sys.exit("error: no free display")


def up(options: argparse.Namespace) -> None:
    """Start, wait for the port, report."""
    display, port = _free_display()
    Path(options.session_dir).mkdir(parents=True, exist_ok=True)
    common = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(
        ["Xvnc", f":{display}", "-geometry", options.geometry, "-depth", "24", "-dpi", options.dpi,
         "-rfbport", str(port), "-SecurityTypes", "None", "-ac", "-nolisten", "tcp", "-localhost", "no",
         "-AcceptSetDesktopSize=0", *options.xvnc_arg],
        start_new_session=True, **common,
    )  # fmt: skip
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        time.sleep(0.05)
    manager = subprocess.Popen(
        ["openbox"], env=os.environ | {"DISPLAY": f":{display}"}, start_new_session=True, **common
    )
    state = {
        "runtimeDir": "/opt/runtime", "display": display, "vncPort": port, "geometry": options.geometry,
        "depth": 24, "dpi": 96, "desktopSizeMode": "fixed", "sessionDir": options.session_dir,
        "cleanupSessionDirOnStop": False, "xvncPid": server.pid, "openboxPid": manager.pid, "detached": True,
        "stateFile": options.state_file, "startedAt": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    Path(options.state_file).write_text(json.dumps(state, indent=2))
    sys.stderr.write("warning: wallpaper is not {available}\n")
    sys.stdout.write(json.dumps(state) + "\n")
    server.returncode = manager.returncode = 0  # detached: nobody waits for them


def down(options: argparse.Namespace) -> None:
    """End both by their numbers."""
    state = json.loads(Path(options.state_file).read_text())
    for role in ("openboxPid", "xvncPid"):
        with suppress(ProcessLookupError):
            os.kill(state[role], signal.SIGTERM)
    Path(options.state_file).unlink()
    sys.stdout.write("stopped\n")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["up", "down"])
    parser.add_argument("--state-file", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--session-dir", default="")
    parser.add_argument("--geometry", default="1280x800")
    parser.add_argument("--dpi", default="96")
    parser.add_argument("--xvnc-arg", action="append", default=[])
    options = parser.parse_args()
    if os.environ.get("FAKE_FAILS"):
        sys.exit("error: the runtime is broken")
    {"up": up, "down": down}[options.verb](options)


if __name__ == "__main__":
    main()
