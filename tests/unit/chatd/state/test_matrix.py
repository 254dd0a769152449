"""Every cell of the transition matrix, and every tuple a row can hold."""

import itertools

import pytest

from chatd.errors import InvalidState, TransitionNotAllowed
from chatd.state import MATRIX, RUNNABLE_STATUSES, ChatState, Transition, check, classify, status_of

# Rows: transition; columns: states it may start from, each with the states it may end in.
ALLOWED: dict[str, dict[str, str]] = {
    "create": {"N": "R0"},
    "send": {
        "W": "R0",
        "E0": "R0",
        "E1": "R1",
        "R0": "R1",
        "R1": "R1",
        "I0": "I1",
        "I1": "I1",
        "A0": "A1",
        "A1": "A1",
    },
    "send_interrupt": {
        "W": "R0",
        "E0": "R0",
        "E1": "R1",
        "R0": "I1",
        "R1": "I1",
        "I0": "I1",
        "I1": "I1",
        "A0": "R1",
        "A1": "R1",
    },
    "edit": dict.fromkeys(("W", "E0", "E1", "R0", "R1", "I0", "I1", "A0", "A1"), "R0"),
    "delete_queued": {"E1": "E0 E1", "R1": "R0 R1", "I1": "I0 I1", "A1": "A0 A1"},
    "promote_queued": {"R1": "I1", "I1": "I1", "E1": "R0 R1", "A1": "R0 R1"},
    "interrupt": {"R0": "I0", "R1": "I1", "A0": "R0", "A1": "R1"},
    "complete_requires_action": {"A0": "R0", "A1": "R1"},
    "cancel_requires_action": {"A0": "R0", "A1": "R1"},
    "enter_requires_action": {"R0": "A0", "R1": "A1"},
    "request_compaction": {"W": "R0", "E0": "R0", "E1": "R1"},
    "clear_context": {"W": "W", "E0": "W"},
    "archive": {"W": "XW", "E0": "XE0", "E1": "XE1"},
    "unarchive": {"XW": "W", "XE0": "E0", "XE1": "E1"},
    "reconcile": {"invalid": "E0 E1"},
    "record_attempt": {"R0": "R0", "R1": "R1"},
    "record_retry": {"R0": "R0", "R1": "R1"},
    "take_steered": {"R1": "R0 R1"},
    "commit_step": {"R0": "R0", "R1": "R1"},
    "finish_turn": {"R0": "W", "R1": "R0 R1"},
    "finish_error": {"W": "E0", "R0": "E0", "R1": "E1"},
    "finish_interruption": {"I0": "W", "I1": "R0 R1"},
}
STATUSES = ("waiting", "running", "interrupting", "requires_action", "error", "paused", "")
# (status, archived, queue): state. Everything else is invalid.
STATES: dict[tuple[str, bool, bool], str] = {
    ("waiting", False, False): "W",
    ("error", False, False): "E0",
    ("error", False, True): "E1",
    ("running", False, False): "R0",
    ("running", False, True): "R1",
    ("interrupting", False, False): "I0",
    ("interrupting", False, True): "I1",
    ("requires_action", False, False): "A0",
    ("requires_action", False, True): "A1",
    ("waiting", True, False): "XW",
    ("error", True, False): "XE0",
    ("error", True, True): "XE1",
}
CELLS = list(itertools.product(Transition, ChatState))


@pytest.mark.parametrize(("transition", "state"), CELLS, ids=lambda value: value.value)
def test_every_cell_leads_where_the_table_says_or_nowhere(transition: Transition, state: ChatState) -> None:
    """Spec 1.2: anything not listed is refused; from Invalid everything but reconcile is."""
    expected = ALLOWED[transition].get(state)

    if state is ChatState.INVALID and transition is not Transition.RECONCILE:
        with pytest.raises(InvalidState):
            check(transition, state)
    elif expected is None:
        with pytest.raises(TransitionNotAllowed):
            check(transition, state)
    else:
        assert check(transition, state) == {ChatState(name) for name in expected.split()}


@pytest.mark.parametrize(
    ("status", "archived", "has_queue"), list(itertools.product(STATUSES, (False, True), (False, True)))
)
def test_every_tuple_is_classified(status: str, *, archived: bool, has_queue: bool) -> None:
    """Spec 1.1: a state is derived from (status, archived, queue); all other tuples are invalid."""
    expected = STATES.get((status, archived, has_queue), "invalid")

    assert classify(status, archived=archived, has_queue=has_queue) == ChatState(expected)


def test_only_archive_leads_to_archived_states_and_nothing_to_none_or_invalid() -> None:
    """Ours: a transition never leads out of the states that a live chat can be in."""
    live = {ChatState(state) for (_, archived, _), state in STATES.items() if not archived}
    for transition, moves in MATRIX.items():
        results = set().union(*moves.values())
        if transition is Transition.ARCHIVE:
            assert results == {ChatState.XW, ChatState.XE0, ChatState.XE1}
        else:
            assert results <= live


def test_the_status_of_a_state_classifies_back_to_it() -> None:
    """Ours: status_of is the inverse of classify where there is one."""
    for (status, _, _), name in STATES.items():
        assert status_of(ChatState(name)) == status
    for state in (ChatState.NONE, ChatState.INVALID):
        with pytest.raises(KeyError):
            status_of(state)


def test_runnable_statuses_are_those_of_busy_states() -> None:
    """Spec 1.1: runnable are R, I and A."""
    busy = {status for (status, _, _), name in STATES.items() if name[0] in "RIA"}

    assert set(RUNNABLE_STATUSES) == busy
