"""How often somebody may ask: the bounds of GCRA, and of its memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.ratelimit import RateLimit


def test_a_burst_of_a_minute_s_worth_passes_and_then_one_each_interval() -> None:
    """Ours: 60 a minute: 60 at once, then one a second; the wait that is told lets in."""
    limit = RateLimit(60)
    waits = [limit.take("a", 100.0) for _ in range(61)]

    assert waits[:60] == [0.0] * 60
    assert waits[60] == pytest.approx(1.0)
    assert limit.take("a", 100.9) > 0
    assert limit.take("a", 101.0) == 0.0
    assert limit.take("b", 100.0) == 0.0


def test_zero_is_no_limit() -> None:
    """Ours: and nothing is remembered."""
    limit = RateLimit(0)

    assert [limit.take("a", 0.0) for _ in range(1000)] == [0.0] * 1000
    assert len(limit) == 0


def test_a_limit_may_change_meanwhile() -> None:
    """Ours: the next request goes by what holds then; no limit lets everybody in at once."""
    allowed = [1]
    limit = RateLimit(lambda: allowed[0])
    assert [limit.take("a", 0.0) > 0 for _ in range(2)] == [False, True]
    allowed[0] = 10
    assert limit.take("a", 6.1) == 0.0
    allowed[0] = 0

    assert limit.take("a", 6.1) == 0.0


def test_looking_counts_nothing() -> None:
    """Ours: ``wait_s`` tells what ``take`` would."""
    limit = RateLimit(1)
    assert limit.wait_s("a", 0.0) == limit.take("a", 0.0) == 0.0

    assert limit.wait_s("a", 0.0) == limit.wait_s("a", 0.0) == pytest.approx(60.0)


def test_memory_is_bounded_whoever_asks() -> None:
    """Ours: a million addresses take no more room than the newest thousand."""
    limit = RateLimit(10, most=1000)
    for number in range(20_000):
        limit.take(number, number / 1000)

    assert len(limit) <= 1000


def test_the_silent_are_forgotten() -> None:
    """Ours: who has a whole burst again needs no memory."""
    limit = RateLimit(60)
    for number in range(100):
        limit.take(number, 0.0)
    for _ in range(60):
        limit.take("late", 1000.0)

    assert len(limit) == 1


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200), st.integers(1, 50))
def test_no_minute_lets_more_than_twice_its_worth_through(gaps: list[float], per_minute: int) -> None:
    """GCRA: in any window of a minute at most the burst and a minute's worth pass."""
    limit, now, passed = RateLimit(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        if limit.take("a", now) == 0.0:
            passed.append(now)

    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= 2 * per_minute
