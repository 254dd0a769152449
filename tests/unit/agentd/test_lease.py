"""The lease's table: every state and every wish."""

import pytest

from agentd.errors import ControlHeld, NotInControl
from agentd.lease import Lease, Party, Verdict

ANN, ANNS_OTHER_PAGE, BOB = (
    Party(seat="ann/1", name="Ann"),
    Party(seat="ann/2", name="Ann"),
    Party(seat="bob/1", name="Bob"),
)
AGENT_S = Lease(epoch=7)
ANN_S = Lease(epoch=8, holder=ANN, used_at=100.0)


def test_control_is_taken_from_the_agent_at_once() -> None:
    """The issue: a person takes over; who has control changed, so the epoch grows."""
    assert Lease(epoch=8, holder=ANN, used_at=100.0) == AGENT_S.take(ANN, 100.0)


def test_taking_again_only_renews() -> None:
    """Ours: a page that asks twice changes nothing for anybody else."""
    assert Lease(epoch=8, holder=ANN, used_at=150.0) == ANN_S.take(ANN, 150.0)


@pytest.mark.parametrize("other", [BOB, ANNS_OTHER_PAGE])
def test_another_person_is_refused_and_told_who_has_it(other: Party) -> None:
    """The issue: refusal, not queueing; another page of the same person is another seat."""
    with pytest.raises(ControlHeld, match="Ann"):
        ANN_S.take(other, 150.0)


def test_only_the_holder_gives_back() -> None:
    """The issue: release; the agent has control again, in a new epoch."""
    assert Lease(epoch=9) == ANN_S.give_back(ANN.seat)
    for lease, seat in ((ANN_S, BOB.seat), (ANN_S, ANNS_OTHER_PAGE.seat), (AGENT_S, ANN.seat)):
        with pytest.raises(NotInControl):
            lease.give_back(seat)


def test_only_the_holder_s_input_counts_as_use() -> None:
    """Ours: who watches does not prolong anybody's control."""
    assert Lease(epoch=8, holder=ANN, used_at=200.0) == ANN_S.touch(ANN.seat, 200.0)
    assert ANN_S.touch(BOB.seat, 200.0) == ANN_S
    assert AGENT_S.touch(ANN.seat, 200.0) == AGENT_S


def test_unused_control_ends() -> None:
    """The issue: time-out."""
    assert ANN_S.expire(159.9, 60.0) == ANN_S
    assert Lease(epoch=9) == ANN_S.expire(160.0, 60.0)
    assert AGENT_S.expire(1e9, 60.0) == AGENT_S


@pytest.mark.parametrize(
    ("lease", "seen", "verdict"),
    [
        (AGENT_S, 7, Verdict.GO),
        (AGENT_S, 6, Verdict.LOOK_FIRST),
        (AGENT_S, None, Verdict.GO),
        (ANN_S, 8, Verdict.HELD),
        (ANN_S, 7, Verdict.HELD),
        (ANN_S, None, Verdict.HELD),
    ],
)
def test_the_agent_acts_when_nobody_else_does_and_it_has_seen_the_screen(
    lease: Lease, seen: int | None, verdict: Verdict
) -> None:
    """The issue: a picture from before a person's turn is no ground to click on."""
    assert lease.admit(seen) is verdict
