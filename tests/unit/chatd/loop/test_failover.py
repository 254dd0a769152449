"""When another model is asked in a failed one's place."""

import pytest

from chatd.faults import make_fault
from chatd.loop.failover import helps_elsewhere
from chatd.wire import FaultKind

# Kinds, and whether they help elsewhere: never retried, and at the first, second and third try if retried.
TABLE = [
    (FaultKind.OVERLOADED, True),
    (FaultKind.RATE_LIMIT, True),
    (FaultKind.TIMEOUT, True),
    (FaultKind.STARTUP_TIMEOUT, True),
    (FaultKind.STREAM_SILENCE_TIMEOUT, True),
    (FaultKind.AUTH, True),
    (FaultKind.CONFIG, True),
    (FaultKind.USAGE_LIMIT, True),
    (FaultKind.MISSING_KEY, True),
    (FaultKind.PROVIDER_DISABLED, True),
    (FaultKind.GENERIC, False),
    (FaultKind.CONTENT_FILTER, False),
]


@pytest.mark.parametrize(("kind", "is_elsewhere"), TABLE)
def test_what_never_heals_goes_over_at_once_and_what_may_heal_after_some_tries(
    kind: FaultKind, is_elsewhere: bool
) -> None:
    """Ours: a request that is at fault itself is refused by everybody."""
    final, healing = (make_fault(kind, "openai", retryable=retryable) for retryable in (False, True))

    assert helps_elsewhere(final, attempt=1, patience=3) is is_elsewhere
    assert [helps_elsewhere(healing, attempt=n, patience=3) for n in (1, 2, 3)] == [False, False, True]


def test_every_kind_is_judged() -> None:
    """Ours: a new kind must say whether another vendor may do better."""
    assert {kind for kind, _ in TABLE} == set(FaultKind)


def test_a_prompt_that_is_too_long_is_summarised_instead() -> None:
    """Ours: another window may be smaller still."""
    fault = make_fault(FaultKind.CONFIG, "anthropic", detail="prompt is too long: 9 tokens > 8 maximum")

    assert not helps_elsewhere(fault, attempt=1, patience=1)
