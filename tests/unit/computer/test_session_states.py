"""The state table of a session, and when it is started again."""

import itertools
from typing import get_args

import pytest

from computer.errors import Misuse
from computer.session.restarts import LIMIT, WINDOW_S, RestartPolicy
from computer.session.states import TABLE, Event, next_state
from computer.wire import DesktopState

ALLOWED = {
    ("stopped", Event.NEED): "starting",
    ("stopped", Event.STOP): "stopped",
    ("starting", Event.CAME_UP): "running",
    ("starting", Event.LOST): "starting",
    ("starting", Event.GIVE_UP): "failed",
    ("starting", Event.STOP): "stopped",
    ("running", Event.LOST): "starting",
    ("running", Event.STOP): "stopped",
    ("failed", Event.NEED): "starting",
    ("failed", Event.STOP): "stopped",
}
CELLS = list(itertools.product(get_args(DesktopState), Event))


@pytest.mark.parametrize(("state", "event"), CELLS, ids=[f"{state}-{event}" for state, event in CELLS])
def test_every_cell_leads_where_it_should_or_nowhere(state: DesktopState, event: Event) -> None:
    """Ours: the whole table is walked."""
    if (state, event) in ALLOWED:
        assert next_state(state, event) == ALLOWED[state, event]
    else:
        with pytest.raises(Misuse, match=state):
            next_state(state, event)


def test_every_state_can_be_stopped_and_needed_again() -> None:
    """Ours: nothing is a dead end."""
    assert all(row[Event.STOP] == "stopped" for row in TABLE.values())
    assert all(TABLE[state][Event.NEED] == "starting" for state in ("stopped", "failed"))


class _Time:
    """A clock and dice that a test sets."""

    def __init__(self, dice: float) -> None:
        self.now = 0.0
        self.policy = RestartPolicy(clock=lambda: self.now, dice=lambda: dice)


@pytest.mark.parametrize("dice", [0.0, 0.5, 0.999])
def test_first_restart_comes_well_within_two_seconds(dice: float) -> None:
    """Required: within 2 s; a start takes a fraction of one."""
    pause = _Time(dice).policy.after_death()

    assert pause is not None
    assert 0 <= pause <= 0.1


def test_pauses_grow_and_are_spread() -> None:
    """Required: back-off and jitter."""
    short = [_Time(0.0).policy] * LIMIT
    least = [policy.after_death() for policy in short]
    most = [policy.after_death() for policy in [_Time(0.999).policy] * LIMIT]

    assert least == [0.0, 0.25, 0.5, 1.0, None]
    assert all(b == pytest.approx(a * 1.999) for a, b in zip(least[1:-1], most[1:-1], strict=True))


def test_deaths_far_apart_are_no_loop() -> None:
    """Ours: a desktop that dies once a minute is brought back for ever."""
    time = _Time(0.0)
    pauses = []
    for _ in range(3 * LIMIT):
        pauses.append(time.policy.after_death())
        time.now += WINDOW_S + 1

    assert set(pauses) == {0.0}


def test_loop_is_forgotten_after_a_stop() -> None:
    """Ours: whoever stops a desktop has seen to it."""
    policy = _Time(0.0).policy
    for _ in range(LIMIT):
        policy.after_death()
    policy.forget()

    assert policy.after_death() == 0.0


def test_loop_is_forgotten_after_a_quiet_minute() -> None:
    """Ours: what was mended may run again."""
    time = _Time(0.0)
    assert [time.policy.after_death() for _ in range(LIMIT)][-1] is None
    time.now += WINDOW_S + 1

    assert time.policy.after_death() == 0.0
