"""
States of a desktop session: one table, and nothing else.

A session is ``stopped``, ``starting``, ``running`` or ``failed``. What is not in the table can't
happen; asking for it is our bug. A restart after a death is ``starting`` again, also while it waits.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from computer.errors import Misuse
from computer.wire import DesktopState

__all__ = ["TABLE", "Event", "next_state"]


class Event(StrEnum):
    """What happens to a session."""

    NEED = "need"  # somebody wants it
    CAME_UP = "came_up"  # it greets, and a picture of it was taken
    LOST = "lost"  # a member died, or a restart did not come up: it is tried again by itself
    GIVE_UP = "give_up"  # it did not come up for whoever asked, or dies again and again
    STOP = "stop"  # everything in it has been ended


TABLE: Mapping[DesktopState, Mapping[Event, DesktopState]] = MappingProxyType(
    {
        "stopped": {Event.NEED: "starting", Event.STOP: "stopped"},
        "starting": {
            Event.CAME_UP: "running",
            Event.LOST: "starting",
            Event.GIVE_UP: "failed",
            Event.STOP: "stopped",
        },
        "running": {Event.LOST: "starting", Event.STOP: "stopped"},
        "failed": {Event.NEED: "starting", Event.STOP: "stopped"},
    }
)


def next_state(state: DesktopState, event: Event) -> DesktopState:
    """
    Look up where *event* leads.

    Raises:
        Misuse: it can't happen in this state.
    """
    try:
        return TABLE[state][event]
    except KeyError:
        msg = f"a desktop that is {state} can't be asked to {event}"
        raise Misuse(msg) from None
