"""When a daemon dials again: bounds, growth, and how a fleet spreads; seeded."""

import random
from collections import Counter

from agentd.link import RECONNECT_PAUSE_S, RETRY_PAUSE_S, Pauses

FLEET = 1_000


def fleet() -> list[Pauses]:
    """The pauses of so many daemons."""
    return [Pauses(random.Random(number)) for number in range(FLEET)]  # noqa: S311 -- a schedule


def most_in(window_s: float, pauses: list[float]) -> int:
    """How many dial in the fullest of the windows of *window_s* seconds."""
    return max(Counter(int(pause / window_s) for pause in pauses).values())


def test_a_fleet_that_loses_its_control_plane_comes_back_spread_out() -> None:
    """Issue: 1,000 agents reconnecting at once (jitter): evenly over 0.8 s, an eighth in each tenth."""
    pauses = [daemon.after_connection() for daemon in fleet()]
    shortest, longest = RECONNECT_PAUSE_S

    assert shortest <= min(pauses)
    assert max(pauses) <= longest
    assert most_in(0.1, pauses) < 1.5 * FLEET / 8


def test_pauses_double_up_to_their_bound_and_never_fall_together() -> None:
    """Issue: while nobody answers each waits longer, at most 15 s, drawn from the upper half."""
    daemons = fleet()
    first, longest = RETRY_PAUSE_S

    for tries in range(10):
        upper = min(first * 2**tries, longest)
        pauses = [daemon.after_failure() for daemon in daemons]
        assert upper / 2 <= min(pauses)
        assert max(pauses) <= upper
        # A tenth of the range holds a tenth of the fleet, generously.
        assert most_in(upper / 20, pauses) < 1.7 * FLEET / 10


def test_a_connection_that_stood_lets_pauses_begin_anew() -> None:
    """Ours: an outage of a minute is forgotten once it is over."""
    daemon = Pauses(random.Random(0))  # noqa: S311 -- a schedule
    for _ in range(10):
        daemon.after_failure()
    daemon.after_connection()

    assert daemon.after_failure() <= RETRY_PAUSE_S[0]
