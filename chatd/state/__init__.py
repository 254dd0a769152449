"""The chat state machine, pure: states are classified from a row, never stored."""

from chatd.state.matrix import KEEPS_COMPACTION_MARKER, MATRIX, ChatState, Transition, check
from chatd.state.states import RUNNABLE_STATUSES, classify, status_of

__all__ = [
    "KEEPS_COMPACTION_MARKER",
    "MATRIX",
    "RUNNABLE_STATUSES",
    "ChatState",
    "Transition",
    "check",
    "classify",
    "status_of",
]
