"""
How much a relayed VNC stream costs: ``script/bench vnc [--viewers 1,10,50] [--seconds 5]``.

Each row is measured in the same run on the same desktop: without a relay (the desktop's own socket),
through websockify, through aiohttp's plain loop, through the daemon alone (its local API), and through
ours from end to end (agentd, its WebSocket to chatd, chatd's to the viewer, in one process). CPU is in
cores, of the relay and of Xvnc apart.
"""

# ruff: noqa: T201, S310 -- a program that prints; its addresses are our own
import argparse
import json
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

import psutil

HERE = Path(__file__).parent
MAIN = [sys.executable, "-c", "from agentd.cli import main; main()"]
PEERS = HERE.parents[2] / ".venv-peers" / "bench" / "bin"
PATHS = ("direct", "websockify", "aiohttp", "agentd", "ours")
# Where websockify listens.
PORT = 6087
# Seconds until a program says its first word, many viewers included.
START_S = 90
HEADS = ("viewers", "path", "updates/s", "Mbit/s", "relay", "Xvnc", "fence ms", "alive")


class Desk:
    """A whole `agentd up`, and its desktop's socket."""

    def __init__(self, home: Path, broadcast_from: int) -> None:
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8",
            "AGENTD_RUNTIME_DIR": str(home / "run"), "PYTHONPATH": os.environ.get("PYTHONPATH", "."),
            "AGENTD_BROADCAST_FROM": str(broadcast_from),
        }  # fmt: skip
        argv = [*MAIN, "up", "--json", "--port", "0", "--data", str(home / "data")]
        log = (home / "log").open("wb")
        self.process = subprocess.Popen(argv, env=self.environment, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        self.info = json.loads(self.process.stdout.readline())
        subprocess.run([*MAIN, "desktop", "up"], env=self.environment, check=True, capture_output=True)
        status = subprocess.run(
            [*MAIN, "desktop", "status", "--json"], env=self.environment, check=True, capture_output=True
        )
        (self.status,) = json.loads(status.stdout)
        self.runtime = home / "run" / "desktop-main"
        body = json.dumps({"content": [{"type": "text", "text": "say hello"}]}).encode()
        headers = {"Authorization": f"Bearer {self.info['token']}", "Content-Type": "application/json"}
        with urlopen(Request(self.info["api"] + "/chats", body, headers), timeout=60) as answer:
            self.chat_id = json.loads(answer.read())["id"]

    @property
    def target(self) -> str:
        """Our path."""
        return f"{self.info['api'].replace('http', 'ws', 1)}/chats/{self.chat_id}/desktop"

    def animate(self, seconds: float) -> "subprocess.Popen[bytes]":
        """Move something on the screen."""
        environment = self.environment | {
            "DISPLAY": self.status["display"], "XAUTHORITY": str(self.runtime / "Xauthority")
        }  # fmt: skip
        return subprocess.Popen([sys.executable, str(HERE / "animate.py"), str(seconds)], env=environment)

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(60)


def cpu_s(*pids: int) -> float:
    """Seconds of CPU that processes have used so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def family(process: "subprocess.Popen[bytes]") -> list[int]:
    """A relay and the processes that it forked, one for each viewer."""
    return [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]


def find_websockify() -> str | None:
    """The peer; it is no dependency of ours, and installed by ``script/bench vnc``."""
    beside = PEERS / "websockify"
    return str(beside) if beside.exists() else shutil.which("websockify")


def tell(text: str) -> None:
    """Say on stderr how far we are."""
    print(text, file=sys.stderr, flush=True)


def read_line(process: "subprocess.Popen[str]", limit_s: float) -> str:
    """
    A line of a process's output.

    Raises:
        TimeoutError: none came in time, or it ended.
    """
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], limit_s)
    line = process.stdout.readline() if ready else ""
    if not line:
        msg = f"{process.args!r} said nothing for {limit_s:g} s"
        raise TimeoutError(msg)
    return line


def start_relay(desk: Desk, path: str) -> "tuple[subprocess.Popen[str] | None, str, str]":
    """The relay of a path where it is a process of its own, its target, and the token that it wants."""
    rfb = str(desk.runtime / "rfb.sock")
    if path == "ours":
        return None, desk.target, desk.info["token"]
    if path == "agentd":
        return (
            None,
            f"local:{desk.runtime.parent / 'agentd.sock'}:/api/v0/desktop/main/vnc?view_only=true",
            "",
        )
    if path == "aiohttp":
        argv = [sys.executable, str(HERE / "plain.py"), rfb]
        relay = subprocess.Popen(
            argv, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."}
        )
        return relay, f"ws://127.0.0.1:{int(read_line(relay, START_S))}/", ""
    if path == "websockify":
        argv = [find_websockify() or "websockify", f"127.0.0.1:{PORT}", "--unix-target", rfb]
        relay = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        wait_listening(PORT)
        return relay, f"ws://127.0.0.1:{PORT}/", ""
    return None, f"unix:{rfb}", ""


def wait_listening(port: int) -> None:
    """Wait until somebody answers on a port of ours."""
    ends = time.monotonic() + START_S
    while time.monotonic() < ends:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise TimeoutError("the relay does not listen")


def measure(desk: Desk, count: int, path: str, seconds: float, *, moving: bool) -> tuple[object, ...]:
    """One row."""
    tell(f"{count} viewers, {path}{'' if moving else ', idle'} ...")
    relay, target, token = start_relay(desk, path)
    animation = desk.animate(seconds + 90) if moving else None
    argv = [sys.executable, str(HERE / "viewers.py"), str(count), str(seconds), target, token]
    viewers = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."})
    try:
        read_line(viewers, START_S)
        relays = [desk.process.pid] if path in ("ours", "agentd") else family(relay) if relay else []
        before = cpu_s(*relays), cpu_s(desk.status["pids"]["xvnc"]), time.monotonic()
        read_line(viewers, seconds + START_S)
        took = time.monotonic() - before[2]
        used = (cpu_s(*relays) - before[0]) / took, (cpu_s(desk.status["pids"]["xvnc"]) - before[1]) / took
        figures = json.loads(read_line(viewers, START_S))
    finally:
        for process in (viewers, animation, relay):
            if process is not None:
                process.terminate()
                process.wait(20)
    rate = statistics.mean(figures["updates"]) / took
    megabits = statistics.mean(figures["bytes"]) * 8 / took / 1e6
    trip = statistics.median(figures["round_trips"] or [float("nan")])
    name = path if moving else f"{path}, idle"
    cores = [f"{part:.3f}" for part in used]
    return count, name, f"{rate:.1f}", f"{megabits:.2f}", *cores, f"{trip:.2f}", figures["alive"]


def crowd(desk: Desk, seconds: float) -> None:
    """Fifty watchers, of which some are slow: print what they got and what it took."""
    animation = desk.animate(seconds + 120)
    argv = [
        sys.executable,
        "-m",
        "tests.bench.vnc.crowd",
        str(seconds),
        str(desk.runtime.parent / "agentd.sock"),
    ]
    watchers = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    daemon, server = desk.process.pid, desk.status["pids"]["xvnc"]
    try:
        read_line(watchers, START_S)
        before = cpu_s(daemon), cpu_s(server), time.monotonic(), psutil.Process(daemon).memory_info().rss
        read_line(watchers, seconds + START_S)
        took = time.monotonic() - before[2]
        used = (cpu_s(daemon) - before[0]) / took, (cpu_s(server) - before[1]) / took
        grown = psutil.Process(daemon).memory_info().rss - before[3]
        figures = json.loads(read_line(watchers, START_S))
    finally:
        for process in (watchers, animation):
            process.terminate()
            process.wait(20)
    for name, value in figures.items():
        print(f"{name:>20} {value:.2f}")
    print(f"{'daemon, cores':>20} {used[0]:.3f}\n{'Xvnc, cores':>20} {used[1]:.3f}")
    print(f"{'memory grown, MiB':>20} {grown / 2**20:.1f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", default="1,10,50")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--crowd", action="store_true", help="fifty watchers, ten slow and five stalled")
    parser.add_argument(
        "--broadcast-from", type=int, default=0, help="as AGENTD_BROADCAST_FROM; 0: relays alone"
    )
    parser.add_argument("--paths", default=",".join(PATHS))
    wish = parser.parse_args()
    paths = [path for path in wish.paths.split(",") if path != "websockify" or find_websockify()]
    if "websockify" in wish.paths and "websockify" not in paths:
        tell("websockify is not installed, so it is left out; `script/bench vnc` installs it")
    with tempfile.TemporaryDirectory(prefix="bvnc-") as home:
        desk = Desk(Path(home), wish.broadcast_from if not wish.crowd else 5)
        try:
            if wish.crowd:
                crowd(desk, wish.seconds)
                return
            print("  ".join(f"{head:>16}" for head in HEADS))
            for count in map(int, wish.viewers.split(",")):
                for moving in (False, True) if count == 1 else (True,):
                    for path in paths:
                        try:
                            row = measure(desk, count, path, wish.seconds, moving=moving)
                        except TimeoutError as exc:
                            tell(f"left out: {exc}")
                            continue
                        print("  ".join(f"{value!s:>16}" for value in row), flush=True)
        finally:
            desk.close()


if __name__ == "__main__":
    main()
