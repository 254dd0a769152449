"""
Numbers, sockets and lock files of X servers, which all users of a machine share.

A number is only proposed here. It is taken by the server, which makes its lock file
atomically and ends when another was quicker.
"""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from computer.errors import StartFailed

__all__ = [
    "LOCKS",
    "X_SOCKETS",
    "check_socket_directory",
    "connect_unix",
    "free_displays",
    "free_port",
    "lock_of",
    "make_socket_directory",
    "remove_leftovers",
    "socket_of",
]

# Display numbers tried; below 10 are those of people's own servers.
FIRST_DISPLAY = 10
DISPLAYS = 200
X_SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108  fixed by X11
LOCKS = Path("/tmp")  # noqa: S108  fixed by X11

# Seconds until a server must have room in its queue, and between two tries.
CONNECT_LIMIT_S = 10.0
CONNECT_PAUSE_S = 0.005

log = logging.getLogger(__name__)


async def connect_unix(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """
    Connect to a Unix socket whose server may have a short queue, as Xvnc's of five.

    asyncio takes the EAGAIN of a full queue for a connection on its way, which then fails in use.

    Raises:
        OSError: nobody listens there, or the queue stays full; the latter is a TimeoutError.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            while not _try_connect(sock, path):  # noqa: ASYNC110 -- the kernel has no event for it
                await asyncio.sleep(CONNECT_PAUSE_S)
        return await asyncio.open_unix_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


def _try_connect(sock: socket.socket, path: Path) -> bool:
    try:
        sock.connect(str(path))
    except BlockingIOError:
        return False
    return True


def socket_of(number: int) -> Path:
    """Where the X server of display *number* listens."""
    return X_SOCKETS / f"X{number}"


def lock_of(number: int) -> Path:
    """The file by which an X server holds display *number*; contains its process id."""
    return LOCKS / f".X{number}-lock"


def make_socket_directory() -> None:
    """
    Make the directory in which X servers put their sockets, open to all users, if it is missing.

    Raises:
        StartFailed: it can't be used; says what to do.
    """
    with suppress(FileExistsError):
        X_SOCKETS.mkdir()
        X_SOCKETS.chmod(0o1777)
    problem = check_socket_directory()
    if problem is not None:
        raise StartFailed(problem)


def check_socket_directory() -> str | None:
    """Say what keeps us from putting a socket there, and the remedy; None when nothing does."""
    try:
        info = X_SOCKETS.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(info.st_mode) and os.access(X_SOCKETS, os.W_OK | os.X_OK):
        return None
    mode = stat.S_IMODE(info.st_mode)
    return (
        f"{X_SOCKETS} belongs to user {info.st_uid} with mode {mode:04o}, and X servers of user "
        f"{os.geteuid()} can't put their sockets there; run: sudo chmod 1777 {X_SOCKETS}"
    )


def free_displays() -> Iterator[int]:
    """
    Yield display numbers that nobody holds, first those that nobody left anything of.

    What a server that is dead left is taken over by the next one; so such numbers come last, and
    a server that answers, an empty lock and one of a process that lives are never touched.
    """
    abstract = _read_abstract_sockets()
    stale = []
    for number in range(FIRST_DISPLAY, FIRST_DISPLAY + DISPLAYS):
        reason = _holder(number, abstract)
        if reason is not None:
            log.info("display :%d is skipped: %s", number, reason)
        elif lock_of(number).exists() or socket_of(number).exists():
            stale.append(number)
        else:
            yield number
    for number in stale:
        log.info("display :%d is taken over: its server is dead", number)
        yield number


def free_port() -> int:
    """A loopback port that nobody has; another may take it before it is used."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def remove_leftovers(number: int, pid: int) -> None:
    """Remove lock and socket of a server that was killed, if the lock is still its own."""
    lock = lock_of(number)
    with suppress(OSError, ValueError):
        if int(lock.read_text()) == pid:
            socket_of(number).unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def _holder(number: int, abstract: frozenset[str]) -> str | None:
    """Why a number can't be had; None when it can."""
    path = socket_of(number)
    if f"@{path}" in abstract:
        return "a server listens on its abstract socket"
    if _answers(path):
        return "a server listens on its socket"
    try:
        content = lock_of(number).read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        return f"its lock can't be read: {exc}"
    if not content.strip().isdecimal():
        return "its lock names no process; remove it if no server is starting there"
    pid = int(content)
    return f"process {pid} holds its lock" if _is_alive(pid) else None


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            # Somebody else's, or too busy to answer: not ours to take.
            return True
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _read_abstract_sockets() -> frozenset[str]:
    try:
        lines = Path("/proc/net/unix").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(line.rsplit(" ", 1)[-1] for line in lines if " @" in line)
