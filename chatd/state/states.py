"""Classify a chat from (status, archived, queue non-empty)."""

from chatd.state.matrix import ChatState
from chatd.wire import ChatStatus

__all__ = ["RUNNABLE_STATUSES", "classify", "status_of"]

# Statuses in which a worker may own the chat.
RUNNABLE_STATUSES: tuple[ChatStatus, ...] = ("interrupting", "requires_action", "running")

_BY_TUPLE: dict[tuple[str, bool, bool], ChatState] = {
    ("waiting", False, False): ChatState.W,
    ("error", False, False): ChatState.E0,
    ("error", False, True): ChatState.E1,
    ("running", False, False): ChatState.R0,
    ("running", False, True): ChatState.R1,
    ("interrupting", False, False): ChatState.I0,
    ("interrupting", False, True): ChatState.I1,
    ("requires_action", False, False): ChatState.A0,
    ("requires_action", False, True): ChatState.A1,
    ("waiting", True, False): ChatState.XW,
    ("error", True, False): ChatState.XE0,
    ("error", True, True): ChatState.XE1,
}
_STATUS = {state: status for (status, _, _), state in _BY_TUPLE.items()}


def classify(status: str, *, archived: bool, has_queue: bool) -> ChatState:
    """The state of a row; a tuple outside the table is ``INVALID``."""
    return _BY_TUPLE.get((status, archived, has_queue), ChatState.INVALID)


def status_of(state: ChatState) -> str:
    """The status stored for *state*; ``KeyError`` for NONE and INVALID."""
    return _STATUS[state]
