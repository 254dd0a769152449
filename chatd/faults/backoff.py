"""How long to wait before the next attempt. Seconds throughout."""

from chatd.constants import RETRY_CAP_S, RETRY_INITIAL_S, RETRY_SPREAD

__all__ = ["delay_s", "effective_delay_s", "spread_delay_s"]

# Exponent at which the doubling has passed the cap; keeps the shift small.
_MAX_EXPONENT = 6


def delay_s(n: int) -> float:
    """Return the wait before retry *n*, counted from 0: 1, 2, 4 ... 60 seconds."""
    return min(RETRY_INITIAL_S * (1 << min(max(n, 0), _MAX_EXPONENT)), RETRY_CAP_S)


def effective_delay_s(n: int, hint: float) -> float:
    """Return the wait before retry *n*; the vendor's *hint* is a floor and may exceed the cap."""
    return max(delay_s(n), hint)


def spread_delay_s(wait_s: float, chance: float) -> float:
    """Return *wait_s* and up to ``RETRY_SPREAD`` of it more, by *chance* from 0 to 1; never less."""
    return wait_s * (1 + RETRY_SPREAD * chance)
