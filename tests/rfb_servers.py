"""Real VNC servers for tests: Xvnc, x11vnc and QEMU; each started here and ended here."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from computer.rfb.des import encrypt_block
from computer.session.sockets import free_displays, make_socket_directory

__all__ = ["RfbServer", "free_port", "run_qemu", "run_x11vnc", "run_xvnc", "wait_greeting"]

LIMIT_S = 30
# Seconds between SIGTERM and SIGKILL. x11vnc often takes no notice of the first.
GRACE_S = 0.5
# The key under which VNC servers keep a password in a file.
FILE_KEY = bytes((23, 82, 107, 6, 35, 78, 88, 7))
Address = Path | tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RfbServer:
    """A running server; *display* is the X display that it shows, None for QEMU."""

    address: Address
    display: str | None
    pid: int


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def run_xvnc(
    directory: Path, *, tcp: bool = False, password: str | None = None, extra: Sequence[str] = ()
) -> Iterator[RfbServer]:
    """Xvnc of 1280x800, through its Unix socket or by TCP."""
    security = ["-SecurityTypes", "None"]
    if password is not None:
        file = directory / "passwd"
        mirrored = bytes(int(f"{byte:08b}"[::-1], 2) for byte in FILE_KEY)
        file.write_bytes(encrypt_block(mirrored, password.encode().ljust(8, b"\0")[:8]))
        security = ["-SecurityTypes", "VncAuth", "-rfbauth", str(file)]
    port, path = free_port(), directory / "rfb"
    listen = (
        ["-rfbport", str(port), "-interface", "127.0.0.1"]
        if tcp
        else ["-rfbport", "-1", "-rfbunixpath", str(path)]
    )
    argv = ["-geometry", "1280x800", "-depth", "24", "-ac", "-nolisten", "tcp", "-AlwaysShared",
            "-BlacklistThreshold=1000000", *security, *listen, *extra]  # fmt: skip
    address: Address = ("127.0.0.1", port) if tcp else path
    with _x_server("Xvnc", argv, directory) as (display, process):
        wait_greeting(address, process)
        yield RfbServer(address=address, display=display, pid=process.pid)


@contextmanager
def run_x11vnc(
    directory: Path, *, password: str | None = None, size: tuple[int, int] = (1280, 800)
) -> Iterator[RfbServer]:
    """x11vnc on an Xvfb, by TCP."""
    argv = ["-screen", "0", f"{size[0]}x{size[1]}x24", "-ac", "-nolisten", "tcp"]
    with _x_server("Xvfb", argv, directory) as (display, _):
        port = free_port()
        secret = ["-passwd", password] if password is not None else ["-nopw"]
        vnc = ["x11vnc", "-display", display, "-rfbport", str(port), "-listen", "127.0.0.1", "-no6",
               "-noipv6", "-forever", "-shared", "-quiet", "-noxdamage", "-nonap", *secret]  # fmt: skip
        with _process(vnc, directory / "x11vnc.log", DISPLAY=display) as process:
            wait_greeting(("127.0.0.1", port), process)
            yield RfbServer(address=("127.0.0.1", port), display=display, pid=process.pid)


@contextmanager
def run_qemu(directory: Path, *, tcp: bool = False) -> Iterator[RfbServer]:
    """QEMU without a guest: the firmware's screen, by its Unix socket or by TCP."""
    port, path = free_port(), directory / "qemu"
    where = f"127.0.0.1:{port - 5900}" if tcp else f"unix:{path}"
    argv = [
        "qemu-system-x86_64",
        "-machine",
        "accel=tcg",
        "-m",
        "32",
        "-nic",
        "none",
        "-display",
        "none",
        "-vnc",
        where,
    ]
    address: Address = ("127.0.0.1", port) if tcp else path
    with _process(argv, directory / "qemu.log") as process:
        wait_greeting(address, process)
        yield RfbServer(address=address, display=None, pid=process.pid)


def wait_greeting(address: Address, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a server greets; raises RuntimeError when it ends instead."""
    deadline = time.monotonic() + LIMIT_S
    while not _greets(address):
        if process.poll() is not None:
            msg = f"{process.args!r} ended with status {process.returncode}"
            raise RuntimeError(msg)
        if time.monotonic() > deadline:
            msg = f"{process.args!r} does not greet"
            raise RuntimeError(msg)
        time.sleep(0.02)


def _greets(address: Address) -> bool:
    kind = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
    with socket.socket(kind) as connection, contextlib.suppress(OSError):
        connection.settimeout(1)
        connection.connect(address if isinstance(address, tuple) else str(address))
        return connection.recv(12).startswith(b"RFB ")
    return False


@contextmanager
def _x_server(
    program: str, argv: Sequence[str], directory: Path
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    make_socket_directory()
    for number in free_displays():
        with _process([program, f":{number}", *argv], directory / f"{program}.log") as process:
            # Another server may have taken the number in the same moment.
            if _wait_socket(number, process):
                yield f":{number}", process
                return


def _wait_socket(number: int, process: "subprocess.Popen[bytes]") -> bool:
    lock = Path(f"/tmp/.X{number}-lock")
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if int(lock.read_text()) == process.pid and Path(f"/tmp/.X11-unix/X{number}").exists():
                return True
        time.sleep(0.01)
    return False


@contextmanager
def _process(argv: Sequence[str], log: Path, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        **variables,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
