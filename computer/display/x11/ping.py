"""
Ask the active window whether it has read its events.

Its answer to ``_NET_WM_PING`` comes after it has read the keys sent before. Many
applications answer (GTK, Chromium), others never do (xterm, Tk) or not to us (Qt).
"""

import select
import time

from Xlib import X
from Xlib.protocol import event

from computer.display.x11.connection import XConnection

__all__ = ["Pinger", "ping_active_window"]

# Seconds. A window that takes part and has nothing to do answers within a millisecond.
FIRST_TIMEOUT_S = 0.1
# Windows that never answered, remembered; more are forgotten all at once.
MAX_MUTE = 256
# Serial numbers of our pings start here, to be told from a window manager's timestamps.
FIRST_SERIAL = 0x7A11_0000


class Pinger:
    """Pings, and remembers who never answers."""

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        self._serial = FIRST_SERIAL
        self._mute: set[int] = set()
        self._known: set[int] = set()

    def wait_read(self, limit_s: float) -> bool:
        """Wait until the active window has read what was sent; False when it doesn't tell."""
        window = _find_active(self._connection)
        if window is None or window in self._mute:
            return False
        self._serial += 1
        is_known = window in self._known
        if ping_active_window(self._connection, self._serial, limit_s if is_known else FIRST_TIMEOUT_S):
            self._remember(self._known, window)
            return True
        if not is_known:
            self._remember(self._mute, window)
        return False

    def _remember(self, windows: set[int], window: int) -> None:
        if len(windows) >= MAX_MUTE:
            windows.clear()
        windows.add(window)


def ping_active_window(connection: XConnection, serial: int, timeout_s: float) -> bool:
    """
    Wait until the active window has answered; False when it takes no part or is late.

    Source: Extended Window Manager Hints, "_NET_WM_PING".
    """
    root = connection.screen().root
    active = _find_active(connection)
    if active is None:
        return False
    window = connection.create_resource_object("window", active)
    ping = connection.intern_atom("_NET_WM_PING")
    protocols = connection.intern_atom("WM_PROTOCOLS")
    offered = window.get_full_property(protocols, X.AnyPropertyType)
    if offered is None or ping not in offered.value:
        return False
    message = event.ClientMessage(
        window=window, client_type=protocols, data=(32, [ping, serial, window.id, 0, 0])
    )
    root.change_attributes(event_mask=X.SubstructureNotifyMask)
    try:
        window.send_event(message)
        connection.flush()
        return _wait_pong(connection, serial, timeout_s)
    finally:
        root.change_attributes(event_mask=0)


def _find_active(connection: XConnection) -> int | None:
    root = connection.screen().root
    active = root.get_full_property(connection.intern_atom("_NET_ACTIVE_WINDOW"), X.AnyPropertyType)
    return int(active.value[0]) or None if active is not None and len(active.value) else None


def _wait_pong(connection: XConnection, serial: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        if not connection.pending_events():
            select.select([connection.fileno()], [], [], left)
        while connection.pending_events():
            received = connection.next_event()
            if received.type == X.ClientMessage and received.data[1][1] == serial:
                return True
    return False
