"""
Numbers, sockets and lock files of X servers, which all users of a machine share.

A number is only proposed here. It is taken by the server, which makes its lock file
atomically and ends when another was quicker.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["free_displays", "make_socket_directory", "remove_leftovers"]

# Display numbers tried; below 10 are those of people's own servers.
FIRST_DISPLAY = 10
DISPLAYS = 200
X_SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108  fixed by X11


def make_socket_directory() -> None:
    """Make the directory in which X servers put their sockets, open to all users, if it is missing."""
    with suppress(FileExistsError):
        X_SOCKETS.mkdir()
        X_SOCKETS.chmod(0o1777)


def free_displays() -> Iterator[int]:
    """Yield display numbers that nobody seems to use: no lock, no socket, no abstract socket."""
    abstract = _read_abstract_sockets()
    for number in range(FIRST_DISPLAY, FIRST_DISPLAY + DISPLAYS):
        socket = X_SOCKETS / f"X{number}"
        if not (_lock(number).exists() or socket.exists() or f"@{socket}" in abstract):
            yield number


def remove_leftovers(number: int, pid: int) -> None:
    """Remove lock and socket of a server that was killed, if the lock is still its own."""
    lock = _lock(number)
    with suppress(OSError, ValueError):
        if int(lock.read_text()) == pid:
            (X_SOCKETS / f"X{number}").unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def _lock(number: int) -> Path:
    return Path(f"/tmp/.X{number}-lock")  # noqa: S108  fixed by X11


def _read_abstract_sockets() -> frozenset[str]:
    try:
        lines = Path("/proc/net/unix").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(line.rsplit(" ", 1)[-1] for line in lines if " @" in line)
