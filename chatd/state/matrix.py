"""
Legal moves of a chat: state -> transition -> possible results.

Legend: W idle; E error; R running (a worker generates); I interrupting (a worker
commits the partial answer); A waiting for a client's tool results; X archived. 0
and 1 tell whether messages wait in the queue. There is no "idle with a queue": a
turn that ends with a backlog promotes its head at once.

Everything not listed is refused. From INVALID everything is refused.
"""

from collections.abc import Mapping
from enum import StrEnum

from chatd.errors import InvalidState, TransitionNotAllowed

__all__ = ["MATRIX", "ChatState", "Transition", "check"]


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
    INTERRUPT = "interrupt"
    RECORD_ATTEMPT = "record_attempt"
    RECORD_RETRY = "record_retry"
    COMMIT_STEP = "commit_step"
    FINISH_TURN = "finish_turn"
    FINISH_ERROR = "finish_error"
    FINISH_INTERRUPTION = "finish_interruption"


_N, _W = ChatState.NONE, ChatState.W
_E0, _E1 = ChatState.E0, ChatState.E1
_R0, _R1 = ChatState.R0, ChatState.R1
_I0, _I1 = ChatState.I0, ChatState.I1
_A0, _A1 = ChatState.A0, ChatState.A1

Moves = Mapping[ChatState, frozenset[ChatState]]

MATRIX: Mapping[Transition, Moves] = {
    Transition.CREATE: {_N: frozenset({_R0})},
    Transition.SEND: {
        _W: frozenset({_R0}),
        _E0: frozenset({_R0}),
        _E1: frozenset({_R1}),
        _R0: frozenset({_R1}),
        _R1: frozenset({_R1}),
        _I0: frozenset({_I1}),
        _I1: frozenset({_I1}),
        _A0: frozenset({_A1}),
        _A1: frozenset({_A1}),
    },
    Transition.SEND_INTERRUPT: {
        _W: frozenset({_R0}),
        _E0: frozenset({_R0}),
        _E1: frozenset({_R1}),
        _R0: frozenset({_I1}),
        _R1: frozenset({_I1}),
        _I0: frozenset({_I1}),
        _I1: frozenset({_I1}),
    },
    Transition.INTERRUPT: {_R0: frozenset({_I0}), _R1: frozenset({_I1})},
    Transition.RECORD_ATTEMPT: {_R0: frozenset({_R0}), _R1: frozenset({_R1})},
    Transition.RECORD_RETRY: {_R0: frozenset({_R0}), _R1: frozenset({_R1})},
    Transition.COMMIT_STEP: {_R0: frozenset({_R0}), _R1: frozenset({_R1})},
    Transition.FINISH_TURN: {_R0: frozenset({_W}), _R1: frozenset({_R0, _R1})},
    Transition.FINISH_ERROR: {_W: frozenset({_E0}), _R0: frozenset({_E0}), _R1: frozenset({_E1})},
    Transition.FINISH_INTERRUPTION: {_I0: frozenset({_W}), _I1: frozenset({_R0, _R1})},
}


def check(transition: Transition, state: ChatState) -> frozenset[ChatState]:
    """
    The states *transition* may lead to from *state*.

    Raises:
        InvalidState: the row is in no known state.
        TransitionNotAllowed: the matrix has no such cell.
    """
    if state is ChatState.INVALID:
        raise InvalidState(f"this chat is in no known state; {transition} is refused")
    results = MATRIX[transition].get(state)
    if results is None:
        raise TransitionNotAllowed(f"{transition} is not possible while the chat is in state {state}")
    return results
