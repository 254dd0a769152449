"""Every cell of the matrix through the store: what is allowed happens, what is not leaves no trace."""

import itertools
from functools import partial

import pytest

from chatd.errors import InvalidState, Misuse, TransitionNotAllowed
from chatd.state import MATRIX, ChatState, Transition
from chatd.store.machine import ChatTx
from tests.contract.store.bench import ROWS, Bench, apply

TRANSITIONS = [transition for transition in Transition if transition is not Transition.CREATE]
CELLS = [(transition.value, state) for transition, state in itertools.product(TRANSITIONS, ROWS)]
ALLOWED = [(t, s) for t, s in CELLS if ChatState(s) in MATRIX[Transition(t)]]
REFUSED = [cell for cell in CELLS if cell not in ALLOWED]
# What each transition changes besides the snapshot: history, queue, retry.
EFFECTS: dict[tuple[str, str], str] = {
    ("send", "W"): "history",
    ("send", "E0"): "history",
    ("send", "E1"): "history queue",
    ("send_interrupt", "W"): "history",
    ("send_interrupt", "E0"): "history",
    ("send_interrupt", "E1"): "history queue",
    ("interrupt", "R0"): "",
    ("interrupt", "R1"): "",
    ("record_attempt", "R0"): "",
    ("record_attempt", "R1"): "",
    ("record_retry", "R0"): "retry_state",
    ("record_retry", "R1"): "retry_state",
    ("take_steered", "R1"): "history queue",
    ("commit_step", "R0"): "history",
    ("commit_step", "R1"): "history",
    ("finish_turn", "R0"): "",
    ("finish_turn", "R1"): "history queue",
    ("finish_error", "W"): "",
    ("finish_error", "R0"): "",
    ("finish_error", "R1"): "",
    ("send_interrupt", "A0"): "history queue",
    ("send_interrupt", "A1"): "history queue",
    ("interrupt", "A0"): "history",
    ("interrupt", "A1"): "history",
    **{("edit", state): "history" for state in ("W", "E0", "R0", "I0", "A0")},
    **{("edit", state): "history queue" for state in ("E1", "R1", "I1", "A1")},
    **{("delete_queued", state): "queue" for state in ("E1", "R1", "I1", "A1")},
    **{("promote_queued", state): "queue" for state in ("R1", "I1")},
    **{("promote_queued", state): "history queue" for state in ("E1", "A1")},
    **{("complete_requires_action", state): "history" for state in ("A0", "A1")},
    **{("cancel_requires_action", state): "history" for state in ("A0", "A1")},
    **{("enter_requires_action", state): "history" for state in ("R0", "R1")},
    **{("request_compaction", state): "history" for state in ("W", "E0", "E1")},
    **{("clear_context", state): "history" for state in ("W", "E0")},
    **{("archive", state): "" for state in ("W", "E0", "E1")},
    **{("unarchive", state): "" for state in ("XW", "XE0", "XE1")},
    ("reconcile", "invalid"): "",
    ("finish_interruption", "I0"): "history",
    ("finish_interruption", "I1"): "history queue",
}
# Sends that wait.
EFFECTS |= {cell: "queue" for cell in ALLOWED if cell not in EFFECTS}


@pytest.mark.parametrize(("transition", "state"), ALLOWED, ids=["-".join(cell) for cell in ALLOWED])
@pytest.mark.past_bug(11)
async def test_an_allowed_cell_is_possible_and_moves_the_right_versions(
    bench: Bench, transition: str, state: str
) -> None:
    """Spec 1.2, 2.2: one snapshot a transaction; a version equals the snapshot that changed its rows."""
    chat_id = await bench.chat_in(state)
    before = await bench.row(chat_id)
    bench.notices.clear()
    await bench.store.transition(chat_id, lambda tx: apply(tx, transition, bench.user_id))
    after = await bench.row(chat_id)

    assert await bench.state(chat_id) in MATRIX[Transition(transition)][ChatState(state)]
    assert after["snapshot_version"] == before["snapshot_version"] + 1 == 11
    for name in ("history", "queue", "retry_state"):
        changed = name in EFFECTS[transition, state].split()
        assert after[f"{name}_version"] == (11 if changed else before[f"{name}_version"]), name
    assert [notice.snapshot_version for notice in bench.notices] == [11]


@pytest.mark.parametrize("state", ROWS)
async def test_every_refused_cell_raises_and_leaves_no_trace(bench: Bench, state: str) -> None:
    """Spec 1.2: nothing is written and nobody is told."""
    chat_id = await bench.chat_in(state)
    before = await bench.dump(chat_id)
    bench.notices.clear()
    error = InvalidState if state == "invalid" else TransitionNotAllowed
    for transition in (transition for transition, start in REFUSED if start == state):
        with pytest.raises(error):
            await bench.store.transition(
                chat_id, partial(apply, transition=transition, user_id=bench.user_id)
            )

        assert await bench.dump(chat_id) == before, transition
    assert bench.notices == []


async def test_create_makes_a_running_chat(bench: Bench) -> None:
    """Spec 1.2: N to R0; snapshot 1, history 1, queue 0."""
    chat = await bench.create("hi")
    row = await bench.row(chat.id)

    versions = ("snapshot_version", "history_version", "queue_version", "retry_state_version")
    assert await bench.state(chat.id) is ChatState.R0
    assert [row[name] for name in versions] == [1, 1, 0, 0]
    assert row["generation_attempt"] == 0
    assert await bench.texts(chat.id) == ["user:hi"]
    assert [(notice.chat_id, notice.is_runnable) for notice in bench.notices] == [(chat.id, True)]


async def test_several_transitions_in_one_transaction_are_one_snapshot(bench: Bench) -> None:
    """Spec 5.1: one bump a transaction, even when it bundles several transitions."""
    chat_id = await bench.chat_in("R0")

    def both(tx: ChatTx) -> None:
        apply(tx, "commit_step", bench.user_id)
        tx.finish_turn()

    await bench.store.transition(chat_id, both)
    row = await bench.row(chat_id)

    assert (row["snapshot_version"], row["history_version"]) == (11, 11)
    assert await bench.state(chat_id) is ChatState.W


async def test_a_result_that_the_matrix_forbids_is_rolled_back(bench: Bench) -> None:
    """Ours: flush checks what the transition led to."""
    chat_id = await bench.chat_in("R0")
    before = await bench.dump(chat_id)

    def wrong(tx: ChatTx) -> None:
        tx.record_attempt()
        tx._values["status"] = "waiting"

    with pytest.raises(Misuse):
        await bench.store.transition(chat_id, wrong)
    with pytest.raises(Misuse):
        await bench.store.transition(chat_id, lambda tx: tx.commit_step([]))

    assert await bench.dump(chat_id) == before
