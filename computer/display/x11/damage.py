"""
Notice when the screen has come to rest, by XDamage on a connection of its own.

A separate connection, because replies read elsewhere would swallow its events.
"""

import select
import time
from collections.abc import Callable

from Xlib.ext import damage

from computer.display import Patience, Settled
from computer.display.x11.connection import XConnection, connect, disconnect, shut_down

__all__ = ["DamageWatch"]


class DamageWatch:
    """Counts changes of the whole screen."""

    def __init__(self, name: str, cookie: bytes | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._connection: XConnection = connect(name, cookie)
        try:
            self._connection.damage_query_version()
            root = self._connection.screen().root
            # Damage of the root window covers every window on it.
            self._damage = root.damage_create(damage.DamageReportNonEmpty)
            self._connection.sync()
        except BaseException:
            disconnect(self._connection)
            raise

    def drain(self) -> bool:
        """Read what has happened and re-arm; returns whether anything changed."""
        changed = False
        while self._connection.pending_events():
            self._connection.next_event()
            changed = True
        if changed:
            self._connection.damage_subtract(self._damage)
            self._connection.flush()
        return changed

    def wait(self, patience: Patience) -> Settled:
        """Block until quiet after a change, until no first change came, or until the cap."""
        started = last_change = self._clock()
        changed = False
        while True:
            if self.drain():
                changed, last_change = True, self._clock()
            now = self._clock()
            if now - started >= patience.cap_s:
                return Settled(changed=changed, is_settled=False)
            rest = last_change + patience.quiet_s if changed else started + patience.first_change_s
            if now >= rest:
                return Settled(changed=changed, is_settled=True)
            timeout = min(rest, started + patience.cap_s) - now
            select.select([self._connection.fileno()], [], [], timeout)

    def close(self) -> None:
        """Disconnect."""
        disconnect(self._connection)

    def abort(self) -> None:
        """Break the connection, from any thread."""
        shut_down(self._connection)
