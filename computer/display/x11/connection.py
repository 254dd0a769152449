"""
Connections to an X server, with our own cookie and our own errors.

Owns how Xlib's failures become ours. python-xlib looks for cookies in the environment of
the process, which belongs to somebody else; here the cookie is an argument.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from Xlib import display as xdisplay
from Xlib import error as xerror
from Xlib.protocol import display as xprotocol
from Xlib.protocol import event as xevent
from Xlib.support import connect as xconnect

from computer.errors import DisplayLost

__all__ = ["MIT_COOKIE", "XConnection", "connect", "connected", "disconnect", "shut_down", "translate_errors"]

MIT_COOKIE = b"MIT-MAGIC-COOKIE-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Door:
    """What Xlib's ``connect`` module does, with a cookie that is an argument."""

    cookie: bytes | None

    def get_display(self, name: str) -> Any:  # noqa: ANN401  a tuple of Xlib's
        return xconnect.get_display(name)

    def get_socket(self, _name: str, _protocol: object, _host: object, number: int) -> socket.socket:
        """Connect by the file socket only; Xlib's own way leaves a failed socket open."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(f"/tmp/.X11-unix/X{number}")  # noqa: S108  where X servers listen
        except OSError as exc:
            connection.close()
            raise xerror.DisplayConnectionError(f":{number}", str(exc)) from exc
        return connection

    def get_auth(self, *_: object) -> tuple[bytes, bytes]:
        return (MIT_COOKIE, self.cookie) if self.cookie else (b"", b"")


def _with_names(function: Callable[..., None], module: object, **names: object) -> Callable[..., None]:
    """
    The same code, which finds *names* where it would find its module's.

    Xlib's constructors take no arguments for these, and other users of Xlib in this process must
    keep theirs.
    """
    scope = {**vars(module), **names}
    code: Any = function
    return FunctionType(code.__code__, scope, code.__name__, code.__defaults__)


class _Core(xdisplay._BaseDisplay):
    """
    A connection with its own cookie, and its own numbers of extensions, events and errors.

    Xlib keeps these for all connections at once, though each server deals them out anew: with
    two different servers in one process, requests and events of one are taken for the other's.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self.extension_major_opcodes: dict[str, Any] = {}
        self.error_classes = xerror.xerror_class.copy()
        self.event_classes = xevent.event_class.copy()  # type: ignore[assignment]
        self.resource_classes = vars(xdisplay)["_resource_baseclasses"].copy()
        self._atom_cache: dict[str, int] = {}
        try:
            _with_names(xprotocol.Display.__init__, xprotocol, connect=_Door(cookie=cookie))(self, name)
        except BaseException:
            # Xlib forgets its socket when the server refuses the cookie.
            if (left := getattr(self, "socket", None)) is not None:
                left.close()
            raise


class XConnection(xdisplay.Display):
    """Xlib's display on a connection of our own kind."""

    def __init__(self, name: str, cookie: bytes | None) -> None:
        make_core = partial(_Core, cookie=cookie)
        _with_names(xdisplay.Display.__init__, xdisplay, _BaseDisplay=make_core)(self, name)


@contextmanager
def translate_errors() -> Iterator[None]:
    """
    Turn Xlib's failures into ours.

    Raises:
        DisplayLost: the server is gone, closed the connection or broke the protocol.
    """
    try:
        yield
    except (xerror.ConnectionClosedError, xerror.DisplayError, OSError) as exc:
        msg = f"the X server is gone: {exc}"
        raise DisplayLost(msg) from exc
    except xerror.XError as exc:
        msg = f"the X server refused a request: {exc}"
        raise DisplayLost(msg) from exc


def connect(name: str, cookie: bytes | None, *, authority: Path | None = None) -> XConnection:
    """
    Connect to a local display through its Unix socket, never by TCP.

    Args:
        name: ``":10"``.
        cookie: MIT-MAGIC-COOKIE-1, or None where the server asks for none.
        authority: file that the cookie was read from, to be named when it is refused.

    Raises:
        DisplayLost: nobody answers, or the cookie is refused.
    """
    try:
        with translate_errors():
            connection = XConnection(f"unix/{name}", cookie)
    except DisplayLost as exc:
        raise _explain(exc, name, cookie, authority) from exc
    # A window may vanish between two requests; Xlib's default is to print that.
    connection.set_error_handler(_ignore)
    return connection


def disconnect(connection: XConnection) -> None:
    """Close a connection, whatever state it is in; harmless when repeated."""
    with suppress(xerror.ConnectionClosedError, xerror.DisplayError, OSError):
        connection.close()
    # Xlib leaves the socket open where the server hung up first.
    connection.display.socket.close()


@contextmanager
def connected(name: str, cookie: bytes | None) -> Iterator[XConnection]:
    """
    Connect for the time of a block.

    Raises:
        DisplayLost: nobody answers, or the server goes away meanwhile.
    """
    connection = connect(name, cookie)
    try:
        with translate_errors():
            yield connection
    finally:
        disconnect(connection)


def shut_down(connection: XConnection) -> None:
    """Break a connection from any thread; a read in progress ends at once."""
    with suppress(OSError):
        connection.display.socket.shutdown(socket.SHUT_RDWR)


def _explain(exc: DisplayLost, name: str, cookie: bytes | None, authority: Path | None) -> DisplayLost:
    """Say it in one sentence where it is the cookie that is wrong."""
    cause = exc.__cause__
    reason = getattr(cause, "msg", b"")
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    if "uthoriz" not in text and "COOKIE" not in text:
        return exc
    came_from = f"of {authority} " if authority else ""
    what = f"the cookie {came_from}is not its own" if cookie else "it wants a cookie and none was given"
    return DisplayLost(f"the X server {name} refuses us: {what} ({text.strip()})")


def _ignore(*_: Any) -> None:  # noqa: ANN401
    return None
