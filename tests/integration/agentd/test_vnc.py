"""`agentd vnc` with the programs that people use: TigerVNC's viewer and vncdotool."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from PIL import Image

from agentd.cli.exits import CliError
from agentd.cli.vnc import parse_listen
from tests.integration.agentd.command import MAIN, Command, Running
from tests.rfb_servers import run_xvnc

LIMIT_S = 50


@pytest.fixture
def up(runtime_dir: Path) -> Iterator[Command]:
    """A home where `agentd up` runs, with a terminal that writes what is typed to ``typed``."""
    command = Command(runtime_dir)
    running = Running(command, "up", "--json", "--port", "0")
    try:
        running.read_json()
        opened = command(
            "desktop", "open", "--", "xterm", "-e", f"sh -c 'stty -echo; cat > {runtime_dir}/typed'"
        )
        assert opened.code == 0, opened.err
        command("desktop", "do", '{"action":"left_click","coordinate":[200,150]}')
        yield command
    finally:
        running.close()


@contextmanager
def vnc(up: Command, *arguments: str, **extra: str) -> Iterator[int]:
    """The port of an `agentd vnc` that listens."""
    argv = [*MAIN, "vnc", "--listen", "127.0.0.1:0", "--json", *arguments]
    log = (up.home / "vnc.log").open("ab")
    process = subprocess.Popen(argv, env=up.environment(**extra), stdout=subprocess.PIPE, stderr=log)
    log.close()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (up.home / "vnc.log").read_text()
        yield int(json.loads(line)["listen"].rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        if process.stdout is not None:
            process.stdout.close()


def until(look: Callable[[], object], what: str) -> None:
    """Wait until *look* gives something true."""
    deadline = time.monotonic() + LIMIT_S
    while not look():
        if time.monotonic() > deadline:
            pytest.fail(f"gave up waiting for {what}")
        time.sleep(0.05)


def wait_given_back(up: Command) -> None:
    """Wait until the agent has control: a program that goes keeps it for a while, as a page that reloads."""

    def holder() -> object:
        (main,) = json.loads(up("desktop", "status", "--json").out)
        return main["control"]

    until(lambda: holder() is None, "control to be given back")


def new_chat(up: Command) -> str:
    """A chat with a workspace."""
    info = json.loads((up.runtime_dir / "up.json").read_text())
    headers = {"Authorization": f"Bearer {info['token']}", "Content-Type": "application/json"}
    body = json.dumps({"content": [{"type": "text", "text": "say hello"}]}).encode()
    with urlopen(Request(info["api"] + "/chats", body, headers), timeout=LIMIT_S) as answer:  # noqa: S310 -- loopback
        return str(json.loads(answer.read())["id"])


def viewers(up: Command) -> list[dict[str, Any]]:
    """What `agentd desktop viewers` tells."""
    rows: list[dict[str, Any]] = json.loads(up("desktop", "viewers", "--json").out)
    return rows


def vncdotool(port: int, *command: str) -> None:
    """Run vncdotool's own commands."""
    argv = [sys.executable, "-m", "vncdotool.command", "--nocursor", "-s", f"127.0.0.1::{port}", *command]
    subprocess.run(argv, check=True, timeout=LIMIT_S, capture_output=True)


@contextmanager
def vncviewer(port: int, directory: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """TigerVNC's viewer on a display of its own."""
    with run_xvnc(directory) as screen:
        assert screen.display is not None
        argv = ["xtigervncviewer", *options, f"127.0.0.1::{port}"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "DISPLAY": screen.display}
        with (directory / "viewer.log").open("wb") as log:
            process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()


@pytest.mark.timeout(200)
def test_vncdotool_sees_and_types_and_is_refused_what_it_may_not(up: Command, tmp_path: Path) -> None:
    """The issue: tested with real programs; one that only watches changes nothing."""
    picture, typed = tmp_path / "shot.png", up.home / "typed"
    with vnc(up) as port:
        vncdotool(port, "capture", str(picture), "type", "hello", "key", "enter")
        until(lambda: typed.read_text() == "hello\n", "what was typed")
        with vnc(up, "--view-only") as watching:
            vncdotool(watching, "type", "no", "key", "enter", "capture", str(picture))
    chat_id = new_chat(up)
    wait_given_back(up)
    with vnc(up, "--chat", chat_id) as port:
        vncdotool(port, "type", "again", "key", "enter")
        until(lambda: typed.read_text() == "hello\nagain\n", "what was typed by the chat's port")

    assert picture.stat().st_size > 1_000


@pytest.mark.timeout(200)
def test_tigervnc_s_viewer_is_shown_and_counted(up: Command, runtime_dir: Path) -> None:
    """The issue: real vncviewer, in control and view-only; figures of each viewer."""
    for options, role in (((), "controller"), (("--view-only",), "viewer")):
        with vnc(up, *options) as port, vncviewer(port, runtime_dir):
            until(lambda: any(row["frames"] >= 1 for row in viewers(up)), "its first picture")
            (row,) = viewers(up)
            table = up("desktop", "viewers").out
        until(lambda: viewers(up) == [], "its end")

        assert row["role"] == role
        assert row["sent_bytes"] > 1_000
        assert role in table


@pytest.mark.timeout(200)
def test_programs_that_only_watch_are_shown_a_broadcast(runtime_dir: Path, tmp_path: Path) -> None:
    """The issue: TigerVNC's viewer and vncdotool as clients of the shared encoder; what they show is true."""
    command, picture, shot = Command(runtime_dir), tmp_path / "shown.png", tmp_path / "shot.png"
    running = Running(command, "up", "--json", "--port", "0", AGENTD_BROADCAST_FROM="1")
    try:
        running.read_json()
        assert command("desktop", "up").code == 0
        with vnc(command, "--view-only") as port:
            vncdotool(port, "capture", str(picture))
            with vncviewer(port, runtime_dir):
                until(lambda: any(row["frames"] >= 1 for row in viewers(command)), "its first picture")
                (row,) = viewers(command)
        command("desktop", "screenshot", str(shot))
    finally:
        running.close()

    assert (row["source"], row["role"]) == ("broadcast", "viewer")
    with Image.open(picture) as shown, Image.open(shot) as real:
        assert shown.convert("RGB").tobytes() == real.convert("RGB").tobytes()


def greet(port: int) -> bytes:
    """What a program hears that greets as RFB 3.8."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as connection:
        connection.settimeout(LIMIT_S)
        assert connection.recv(12) == b"RFB 003.008\n"
        connection.sendall(b"RFB 003.008\n")
        connection.shutdown(socket.SHUT_WR)
        heard = b""
        while data := connection.recv(4096):
            heard += data
    return heard


def security_types(port: int) -> bytes:
    """What a program that is let in is offered."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as connection:
        connection.settimeout(LIMIT_S)
        assert connection.recv(12) == b"RFB 003.008\n"
        connection.sendall(b"RFB 003.008\n")
        return connection.recv(2, socket.MSG_WAITALL)


@pytest.mark.timeout(150)
def test_who_is_refused_reads_why_in_the_program(up: Command) -> None:
    """Ours: RFC 6143, 7.1.2: a reason that the viewer shows, not a connection that ends."""
    with vnc(up) as port, socket.create_connection(("127.0.0.1", port), LIMIT_S) as holder:
        holder.settimeout(LIMIT_S)
        assert holder.recv(12) == b"RFB 003.008\n"
        heard = greet(port)
    with vnc(up, "--agent", "nobody") as port:
        missing = greet(port)

    for answer, words in ((heard, b"another person has control"), (missing, b"no such chat, workspace")):
        assert answer[:1] == b"\0"
        (length,) = struct.unpack(">I", answer[1:5])
        assert len(answer) == 5 + length
        assert words in answer


def test_bad_use_is_told(runtime_dir: Path) -> None:
    """Ours: exit codes 2 and 4; nothing listens."""
    command = Command(runtime_dir)

    assert command("vnc", "--chat", "a", "--agent", "b").code == 2
    assert command("vnc", "--listen", "0.0.0.0:5901").code == 2
    missing = command("vnc", "--chat", "a", "--listen", "127.0.0.1:0")
    assert missing.code == 4
    assert "--url" in missing.err


@pytest.mark.parametrize(
    ("arguments", "token", "words"),
    [
        (("--url", "http://127.0.0.1:9"), "t", "--chat or --agent"),
        (("--url", "chats.example.com", "--chat", "a"), "t", "https://"),
        (("--url", "http://127.0.0.1:9", "--chat", "a"), "", "AGENTD_TOKEN"),
        (("--url", "http://127.0.0.1:9", "--chat", "a"), "two words", "AGENTD_TOKEN"),
        (("--url", "http://127.0.0.1:9", "--chat", "a", "--token-file", "none"), "t", "none"),
        (("--token-file", "none"), "t", "--url"),
    ],
    ids=["whose desktop", "no address", "no token", "no such token", "no such file", "file alone"],
)
def test_control_plane_that_is_named_badly_is_told(
    runtime_dir: Path, arguments: tuple[str, ...], token: str, words: str
) -> None:
    """Ours: what to do, before anything listens."""
    ended = Command(runtime_dir)("vnc", *arguments, "--listen", "127.0.0.1:0", AGENTD_TOKEN=token)

    assert ended.code == 2
    assert words in ended.err
    assert "two words" not in ended.err


@pytest.mark.timeout(150)
def test_desktop_of_a_control_plane_elsewhere(up: Command, tmp_path: Path) -> None:
    """Ours: nothing but its address and a token, by variable or file; a wrong one is told in the program."""
    info = json.loads((up.runtime_dir / "up.json").read_text())
    base, chat_id = info["api"].removesuffix("/api/experimental"), new_chat(up)
    file = tmp_path / "token"
    file.write_text(info["token"] + "\n")
    far = Command(tmp_path)
    offered = []
    for more, token in ((("--view-only",), info["token"]), (("--token-file", str(file)), "")):
        with vnc(far, "--url", base, "--chat", chat_id, *more, AGENTD_TOKEN=token) as port:
            offered.append(security_types(port))
    with vnc(far, "--url", base, "--chat", chat_id, AGENTD_TOKEN="wrong") as port:
        refused = greet(port)

    assert offered == [b"\x01\x01"] * 2
    assert b"token is not valid" in refused


@pytest.mark.parametrize("text", ["", "5901", "127.0.0.1", "0.0.0.0:5901", "127.0.0.1:x", "127.0.0.1:70000"])
def test_only_loopback_is_listened_on(text: str) -> None:
    """Bug 72: a raw VNC port must not be open to others."""
    with pytest.raises(CliError, match="loopback"):
        parse_listen(text)


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::1]:5901", "localhost:5901"])
def test_loopback_is_understood(text: str) -> None:
    """Ours: IPv6 too."""
    host, port = parse_listen(text)

    assert re.fullmatch(r"127\.0\.0\.1|::1|localhost", host)
    assert port in {0, 5901}
