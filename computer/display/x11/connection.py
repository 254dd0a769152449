"""
Connections to an X server, with our own cookie and our own errors.

Owns how Xlib's failures become ours. python-xlib looks for cookies in the environment of
the process, which belongs to somebody else; here the cookie is an argument.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from Xlib import display as xdisplay
from Xlib import error as xerror
from Xlib.protocol import event as xevent
from Xlib.support import connect as xconnect

from computer.errors import DisplayLost

__all__ = ["MIT_COOKIE", "XConnection", "connect", "connected", "disconnect", "shut_down", "translate_errors"]

MIT_COOKIE = b"MIT-MAGIC-COOKIE-1"
XConnection = xdisplay.Display

_cookies = threading.local()


class _OwnTables(xdisplay._BaseDisplay):
    """
    A connection whose numbers of extensions, events and errors are its own.

    Xlib keeps them for all connections at once, though each server deals them out anew: with
    two different servers in one process, requests and events of one are taken for the other's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self.extension_major_opcodes: dict[str, Any] = {}
        self.error_classes = xerror.xerror_class.copy()
        self.event_classes = xevent.event_class.copy()  # type: ignore[assignment]
        try:
            super().__init__(*args, **kwargs)
        except BaseException:
            # Xlib forgets its socket when the server refuses the cookie.
            if (left := getattr(self, "socket", None)) is not None:
                left.close()
            raise


def _get_auth(*_: object) -> tuple[bytes, bytes]:
    cookie: bytes | None = getattr(_cookies, "current", None)
    return (MIT_COOKIE, cookie) if cookie else (b"", b"")


def _get_socket(_name: str, _protocol: object, _host: object, number: int) -> socket.socket:
    """Connect by the file socket only; Xlib's own way leaves a failed socket open."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/tmp/.X11-unix/X{number}")  # noqa: S108  where X servers listen
    except OSError as exc:
        connection.close()
        raise xerror.DisplayConnectionError(f":{number}", str(exc)) from exc
    return connection


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
    # Xlib has no arguments for these. Every connection of this project is made here.
    xconnect.get_auth = _get_auth  # type: ignore[assignment]
    xconnect.get_socket = _get_socket  # type: ignore[assignment]
    xdisplay._BaseDisplay = _OwnTables  # type: ignore[misc]
    _cookies.current = cookie
    try:
        with translate_errors():
            connection = xdisplay.Display(f"unix/{name}")
    except DisplayLost as exc:
        raise _explain(exc, name, cookie, authority) from exc
    finally:
        _cookies.current = None
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
