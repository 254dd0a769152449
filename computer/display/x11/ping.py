"""
Ask the active window whether it has read its events.

Before a keycode is bound anew, the application must have looked up what was typed with the
old binding. Its answer to ``_NET_WM_PING`` comes after it has read the keys sent before.
"""

import select
import time

from Xlib import X
from Xlib.protocol import event

from computer.display.x11.connection import XConnection

__all__ = ["ping_active_window"]


def ping_active_window(connection: XConnection, serial: int, timeout_s: float) -> bool:
    """
    Wait until the active window has answered; False when it takes no part or is late.

    Source: Extended Window Manager Hints, "_NET_WM_PING".
    """
    root = connection.screen().root
    active = root.get_full_property(connection.intern_atom("_NET_ACTIVE_WINDOW"), X.AnyPropertyType)
    if active is None or not active.value[0]:
        return False
    window = connection.create_resource_object("window", active.value[0])
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
