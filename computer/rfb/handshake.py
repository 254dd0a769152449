"""
From the greeting to the first message: versions, security, the screen's size and name.

Pure: a generator that yields how many bytes it needs next and is sent exactly these.

Source: RFC 6143, 7.1 to 7.3.
"""

import re
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from computer.errors import DisplayLost, RfbProtocolError
from computer.geometry import Size
from computer.rfb.des import answer_challenge

__all__ = [
    "GREETING_BYTES",
    "MAX_NAME_BYTES",
    "MAX_PIXELS",
    "Greeted",
    "Need",
    "check_size",
    "handshake",
    "read_minor",
]

T = TypeVar("T")
# A parser: yields a number of bytes, gets them, returns its result.
Need = Generator[int, bytes, T]

# Pixels of a screen; four of 4K wide and high are a quarter of it. Larger ones are refused.
MAX_PIXELS = 1 << 26
# Bytes of a name or a reason that are read; a server that sends more is not one.
MAX_NAME_BYTES = 65_536
GREETING_BYTES = 12
_NONE = 1
_VNC_AUTHENTICATION = 2
_SECURITY_NAMES = {
    5: "RA2", 6: "RA2ne", 16: "Tight", 17: "Ultra", 18: "TLS", 19: "VeNCrypt", 20: "SASL", 30: "Apple",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeted:
    """What the handshake has settled; *init* is the server's last message of it, as it came."""

    size: Size
    name: str
    init: bytes


def handshake(send: Callable[[bytes], None], password: str | None) -> Need[Greeted]:
    """
    Shake hands, as a client that shares the screen.

    Raises:
        RfbProtocolError: this is no RFB server, or one that breaks the rules.
        DisplayLost: it does not let us in; says why.
    """
    minor = read_minor((yield GREETING_BYTES), "server")
    send(b"RFB 003.%03d\n" % minor)
    security = yield from (_read_security_3_3() if minor == 3 else _choose_security(send, password))
    if security == _VNC_AUTHENTICATION:
        challenge = yield 16
        if password is None:
            raise DisplayLost("the VNC server wants a password, and none was given")
        send(answer_challenge(password, challenge))
    if security == _VNC_AUTHENTICATION or minor == 8:
        yield from _check_result(has_reason=minor == 8)
    send(b"\x01")
    head = yield 24
    width, height, _, length = struct.unpack(">HH16sI", head)
    size = check_size(width, height)
    if length > MAX_NAME_BYTES:
        msg = f"the VNC server's name has {length} bytes"
        raise RfbProtocolError(msg)
    name = yield length
    return Greeted(size=size, name=name.decode("utf-8", "replace"), init=head + name)


def check_size(width: int, height: int) -> Size:
    """
    Accept the size of a screen.

    Raises:
        RfbProtocolError: it has no pixels, or more than ``MAX_PIXELS``.
    """
    if not (width and height and width * height <= MAX_PIXELS):
        msg = f"the VNC server's screen can't be {width}x{height}"
        raise RfbProtocolError(msg)
    return Size(width=width, height=height)


def read_minor(greeting: bytes, whose: str) -> int:
    """
    The protocol that a greeting of 12 bytes means: 3, 7 or 8 of RFB 3.

    Raises:
        RfbProtocolError: it is no greeting of RFB; says that this is no VNC *whose*.
    """
    found = re.fullmatch(rb"RFB (\d{3})\.(\d{3})\n", greeting)
    if found is None:
        msg = f"this is no VNC {whose}: it greets with {greeting!r}"
        raise RfbProtocolError(msg)
    major, minor = int(found[1]), int(found[2])
    if (major, minor) < (3, 3):
        msg = f"RFB {major}.{minor} is older than the oldest version there is"
        raise RfbProtocolError(msg)
    # Only three versions exist; those that claim others (3.5, 3.889, 5.0) mean one of these.
    return 8 if (major, minor) >= (3, 8) else 7 if minor == 7 else 3


def _read_security_3_3() -> Need[int]:
    (security,) = struct.unpack(">I", (yield 4))
    if security == 0:
        yield from _refuse("the VNC server refuses the connection")
    if security not in (_NONE, _VNC_AUTHENTICATION):
        raise _unsupported([security])
    return int(security)


def _choose_security(send: Callable[[bytes], None], password: str | None) -> Need[int]:
    count = (yield 1)[0]
    if count == 0:
        yield from _refuse("the VNC server refuses the connection")
    offered = list((yield count))
    wanted = (_NONE,) if password is None else (_VNC_AUTHENTICATION, _NONE)
    chosen = next((kind for kind in wanted if kind in offered), None)
    if chosen is None and _VNC_AUTHENTICATION in offered:
        raise DisplayLost("the VNC server wants a password, and none was given")
    if chosen is None:
        raise _unsupported(offered)
    send(bytes([chosen]))
    return chosen


def _unsupported(offered: list[int]) -> DisplayLost:
    names = ", ".join(_SECURITY_NAMES.get(kind, str(kind)) for kind in offered)
    return DisplayLost(f"the VNC server offers only security that is not supported here: {names}")


def _check_result(*, has_reason: bool) -> Need[None]:
    (result,) = struct.unpack(">I", (yield 4))
    if result == 0:
        return
    if has_reason:
        yield from _refuse("the VNC server does not let us in")
    raise DisplayLost("the VNC server does not accept the password")


def _refuse(what: str) -> Need[None]:
    (length,) = struct.unpack(">I", (yield 4))
    reason = yield min(length, MAX_NAME_BYTES)
    msg = f"{what}: {reason.decode('utf-8', 'replace')[:500]}"
    raise DisplayLost(msg)
