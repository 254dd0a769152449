"""
Whether a desktop is closed to others: looked up in the kernel and tried, never believed.

A server's options may be overridden, misspelt or unknown to its version; what counts is where it
listens in the end and whether it takes a client without the key.
"""

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from computer.errors import StartFailed
from computer.session.sockets import socket_of

__all__ = ["Listener", "check_closed", "listeners_of", "parse_tcp", "parse_unix", "takes_strangers"]

LOOPBACK = ("127.0.0.1", "::1")
# Seconds for a server on the same machine to refuse a client.
ANSWER_S = 5.0
# Connection set-up of protocol 11.0, least significant byte first, without any authorization.
_STRANGER = struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0)
_LISTEN = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A socket that waits for clients: ``("tcp", "0.0.0.0", 5910)`` or ``("unix", "@/tmp/…", 0)``."""

    kind: str
    address: str
    port: int
    inode: int

    def __str__(self) -> str:
        """As an operator reads it."""
        return f"{self.address}:{self.port}" if self.kind == "tcp" else self.address


def parse_tcp(text: str) -> Iterator[Listener]:
    """
    Listening sockets in the text of ``/proc/net/tcp`` or ``tcp6``.

    Source: proc(5); addresses are in words of the host's byte order.
    """
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            words, port = fields[1].split(":")
            yield Listener(kind="tcp", address=_address(words), port=int(port, 16), inode=int(fields[9]))


def parse_unix(text: str) -> Iterator[Listener]:
    """Listening sockets in the text of ``/proc/net/unix``; an abstract one begins with ``@``."""
    for line in text.splitlines()[1:]:
        found = re.match(r"\S+ \S+ \S+ (\S+) \S+ \S+ +(\d+) (.+)", line)
        # Bit 16 of the flags: it accepts connections.
        if found and int(found[1], 16) & 0x1_0000:
            yield Listener(kind="unix", address=found[3], port=0, inode=int(found[2]))


def listeners_of(pid: int) -> tuple[Listener, ...]:
    """Where a process of ours listens."""
    own = _socket_inodes(pid)
    every: list[Listener] = []
    for name, parse in (("tcp", parse_tcp), ("tcp6", parse_tcp), ("unix", parse_unix)):
        with suppress(FileNotFoundError):
            every += parse(Path(f"/proc/{pid}/net/{name}").read_text())
    return tuple(listener for listener in every if listener.inode in own)


def check_closed(pid: int, number: int, *, allow_loopback: bool) -> None:
    """
    See that X server *pid* of display *number* is closed to other machines and other users.

    Raises:
        StartFailed: it is not; names what is open.
    """
    try:
        listeners = listeners_of(pid)
    except OSError as exc:
        msg = f"whether the desktop is open to others can't be seen, so it is not used: {exc}"
        raise StartFailed(msg) from exc
    for listener in listeners:
        is_allowed = allow_loopback and listener.address in LOOPBACK
        if (listener.kind == "tcp" and not is_allowed) or listener.address.startswith("@"):
            msg = f"the desktop's server listens on {listener}, open to others; it is not used"
            raise StartFailed(msg)
    if takes_strangers(number):
        msg = "the desktop's X server takes clients without its cookie, so any user; it is not used"
        raise StartFailed(msg)


def takes_strangers(number: int) -> bool:
    """Whether the X server of display *number* takes a client that shows no cookie."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(ANSWER_S)
        try:
            client.connect(str(socket_of(number)))
            client.sendall(_STRANGER)
            return client.recv(1) == b"\x01"
        except OSError:
            return False


def _address(words: str) -> str:
    raw = bytes.fromhex(words)
    swapped = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, swapped)


def _socket_inodes(pid: int) -> frozenset[int]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return frozenset(found)
