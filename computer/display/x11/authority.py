"""
Find the cookie of a display that somebody else has started.

Source: Xau library, "Xauthority file format".
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from computer.errors import DisplayLost

__all__ = ["authority_path", "read_cookie"]

_FAMILY_LOCAL = 256
_FAMILY_WILD = 65_535
_PROTOCOL = b"MIT-MAGIC-COOKIE-1"
# Bytes. A file of this length holds thousands of displays; anything longer is something else.
MAX_BYTES = 1_048_576


def authority_path(environment: Mapping[str, str]) -> Path:
    """Where X clients with these variables look for their cookies."""
    return Path(environment.get("XAUTHORITY") or Path(environment.get("HOME", "/"), ".Xauthority"))


def read_cookie(path: Path, name: str) -> bytes:
    """
    Read the cookie for the local display *name* (``":10"``, ``":10.0"``).

    Raises:
        DisplayLost: the file is missing, unreadable or damaged, or does not know the display;
            the sentence names the file.
    """
    number = name.rpartition(":")[2].partition(".")[0].encode()
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES)
    except OSError as exc:
        msg = f"no cookie for {name}: the X authority file {path} can't be read ({exc.strerror})"
        raise DisplayLost(msg) from exc
    try:
        entries = list(_entries(content))
    except (struct.error, ValueError) as exc:
        msg = f"no cookie for {name}: {path} is not an X authority file"
        raise DisplayLost(msg) from exc
    for family, display, protocol, cookie in entries:
        is_here = family in {_FAMILY_LOCAL, _FAMILY_WILD} and display in {number, b""}
        if is_here and protocol == _PROTOCOL:
            return cookie
    msg = f"no cookie for {name}: the X authority file {path} has no entry for it"
    raise DisplayLost(msg)


def _entries(content: bytes) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    at = 0
    while at < len(content):
        (family,) = struct.unpack_from(">H", content, at)
        at += 2
        fields = []
        for _ in range(4):
            (length,) = struct.unpack_from(">H", content, at)
            at += 2 + length
            if at > len(content):
                msg = "the last entry is cut off"
                raise ValueError(msg)
            fields.append(content[at - length : at])
        yield family, fields[1], fields[2], fields[3]
