"""
Connections to an X server, with our own cookie and our own errors.

Owns how Xlib's failures become ours. python-xlib looks for cookies in the environment of
the process, which belongs to somebody else; here the cookie is an argument.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from Xlib import display as xdisplay
from Xlib import error as xerror
from Xlib.support import connect as xconnect

from computer.errors import DisplayLost

__all__ = ["MIT_COOKIE", "XConnection", "connect", "connected", "disconnect", "shut_down", "translate_errors"]

MIT_COOKIE = b"MIT-MAGIC-COOKIE-1"
XConnection = xdisplay.Display

_cookies = threading.local()


def _get_auth(*_: object) -> tuple[bytes, bytes]:
    cookie: bytes | None = getattr(_cookies, "current", None)
    return (MIT_COOKIE, cookie) if cookie else (b"", b"")


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


def connect(name: str, cookie: bytes | None) -> XConnection:
    """
    Connect to a local display through its Unix socket, never by TCP.

    Args:
        name: ``":10"``.
        cookie: MIT-MAGIC-COOKIE-1, or None where the server asks for none.

    Raises:
        DisplayLost: nobody answers, or the cookie is refused.
    """
    # Xlib has no argument for a cookie. Every connection of this project is made here.
    xconnect.get_auth = _get_auth  # type: ignore[assignment]
    _cookies.current = cookie
    try:
        with translate_errors():
            connection = xdisplay.Display(f"unix/{name}")
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


def _ignore(*_: Any) -> None:  # noqa: ANN401
    return None
