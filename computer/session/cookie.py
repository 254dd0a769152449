"""
The key to an X server: a random cookie, and the file in which its clients find it.

Source: Xau library, "Xauthority file format".
"""

import secrets
import socket
import struct
from pathlib import Path

__all__ = ["create_cookie", "write_authority"]

_FAMILY_LOCAL = 256
_FAMILY_WILD = 65_535
_PROTOCOL = b"MIT-MAGIC-COOKIE-1"


def create_cookie() -> bytes:
    """Make 128 random bits."""
    return secrets.token_bytes(16)


def write_authority(path: Path, number: int, cookie: bytes) -> None:
    """
    Write an authority file (mode 0600) for display *number*.

    Two entries: libxcb and the server take the wildcard, which survives a change of the host
    name; python-xlib knows no wildcard and looks for the host.

    Whoever reads meanwhile finds the old file or the new one, whole: a server that looks while there is
    none, or an empty one, lets every local user in and stays so.
    """
    host = socket.gethostname().encode()
    display = str(number).encode()
    content = _entry(_FAMILY_LOCAL, host, display, cookie) + _entry(_FAMILY_WILD, b"", b"", cookie)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600, exist_ok=False)
    part.write_bytes(content)
    part.replace(path)


def _entry(family: int, address: bytes, display: bytes, cookie: bytes) -> bytes:
    fields = (address, display, _PROTOCOL, cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(field)) + field for field in fields)
