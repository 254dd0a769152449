"""
Legal moves of a chat: state -> transition -> possible results.

Legend: W idle; E error; R running (a worker generates); I interrupting (a worker
commits the partial answer); A waiting for a client's tool results; X archived. 0
and 1 tell whether messages wait in the queue. There is no "idle with a queue": a
turn that ends with a backlog promotes its head at once.

Everything not listed is refused. From INVALID only ``reconcile`` leads on.
"""

from collections.abc import Mapping
from enum import StrEnum

from chatd.errors import InvalidState, TransitionNotAllowed

__all__ = ["KEEPS_COMPACTION_MARKER", "MATRIX", "ChatState", "Transition", "check"]


class ChatState(StrEnum):
    """What a chat's row amounts to."""

    NONE = "N"
    W = "W"
    E0 = "E0"
    E1 = "E1"
    R0 = "R0"
    R1 = "R1"
    I0 = "I0"
    I1 = "I1"
    A0 = "A0"
    A1 = "A1"
    XW = "XW"
    XE0 = "XE0"
    XE1 = "XE1"
    INVALID = "invalid"


class Transition(StrEnum):
    """A move; the store has a method of the same name."""

    CREATE = "create"
    SEND = "send"
    SEND_INTERRUPT = "send_interrupt"
    EDIT = "edit"
    DELETE_QUEUED = "delete_queued"
    PROMOTE_QUEUED = "promote_queued"
    INTERRUPT = "interrupt"
    COMPLETE_REQUIRES_ACTION = "complete_requires_action"
    REQUEST_COMPACTION = "request_compaction"
    CLEAR_CONTEXT = "clear_context"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    RECORD_ATTEMPT = "record_attempt"
    RECORD_RETRY = "record_retry"
    TAKE_STEERED = "take_steered"
    COMMIT_STEP = "commit_step"
    ENTER_REQUIRES_ACTION = "enter_requires_action"
    CANCEL_REQUIRES_ACTION = "cancel_requires_action"
    FINISH_TURN = "finish_turn"
    FINISH_ERROR = "finish_error"
    FINISH_INTERRUPTION = "finish_interruption"
    RECONCILE = "reconcile"


Moves = Mapping[ChatState, frozenset[ChatState]]


def _moves(**ends: str) -> Moves:
    """From each state, named, to the states written behind it."""
    return {
        ChatState(start): frozenset(ChatState(end) for end in names.split()) for start, names in ends.items()
    }


MATRIX: Mapping[Transition, Moves] = {
    Transition.CREATE: _moves(N="R0"),
    Transition.SEND: _moves(W="R0", E0="R0", E1="R1", R0="R1", R1="R1", I0="I1", I1="I1", A0="A1", A1="A1"),
    Transition.SEND_INTERRUPT: _moves(
        W="R0", E0="R0", E1="R1", R0="I1", R1="I1", I0="I1", I1="I1", A0="R1", A1="R1"
    ),
    Transition.EDIT: _moves(W="R0", E0="R0", E1="R0", R0="R0", R1="R0", I0="R0", I1="R0", A0="R0", A1="R0"),
    Transition.DELETE_QUEUED: _moves(E1="E0 E1", R1="R0 R1", I1="I0 I1", A1="A0 A1"),
    Transition.PROMOTE_QUEUED: _moves(R1="I1", I1="I1", E1="R0 R1", A1="R0 R1"),
    Transition.INTERRUPT: _moves(R0="I0", R1="I1", A0="R0", A1="R1"),
    Transition.COMPLETE_REQUIRES_ACTION: _moves(A0="R0", A1="R1"),
    Transition.REQUEST_COMPACTION: _moves(W="R0", E0="R0", E1="R1"),
    Transition.CLEAR_CONTEXT: _moves(W="W", E0="W"),
    Transition.ARCHIVE: _moves(W="XW", E0="XE0", E1="XE1"),
    Transition.UNARCHIVE: _moves(XW="W", XE0="E0", XE1="E1"),
    Transition.RECORD_ATTEMPT: _moves(R0="R0", R1="R1"),
    Transition.RECORD_RETRY: _moves(R0="R0", R1="R1"),
    Transition.TAKE_STEERED: _moves(R1="R0 R1"),
    Transition.COMMIT_STEP: _moves(R0="R0", R1="R1"),
    Transition.ENTER_REQUIRES_ACTION: _moves(R0="A0", R1="A1"),
    Transition.CANCEL_REQUIRES_ACTION: _moves(A0="R0", A1="R1"),
    Transition.FINISH_TURN: _moves(R0="W", R1="R0 R1"),
    Transition.FINISH_ERROR: _moves(W="E0", R0="E0", R1="E1"),
    Transition.FINISH_INTERRUPTION: _moves(I0="W", I1="R0 R1"),
    Transition.RECONCILE: _moves(invalid="E0 E1"),
}


# What asks for a compaction outlives these moves only (a queued send, not one that starts a turn).
KEEPS_COMPACTION_MARKER = frozenset({Transition.SEND, Transition.ARCHIVE, Transition.UNARCHIVE})


def check(transition: Transition, state: ChatState) -> frozenset[ChatState]:
    """
    The states *transition* may lead to from *state*.

    Raises:
        InvalidState: the row is in no known state.
        TransitionNotAllowed: the matrix has no such cell.
    """
    if state is ChatState.INVALID and transition is not Transition.RECONCILE:
        raise InvalidState(f"this chat is in no known state; {transition} is refused")
    results = MATRIX[transition].get(state)
    if results is None:
        raise TransitionNotAllowed(f"{transition} is not possible while the chat is in state {state}")
    return results
