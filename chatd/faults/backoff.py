"""How long to wait before the next attempt. Seconds throughout."""

__all__ = ["CAP_S", "INITIAL_S", "MAX_ATTEMPTS", "delay_s", "effective_delay_s"]

# Seconds before the first retry.
INITIAL_S = 1.0
# Seconds; the longest wait without a hint.
CAP_S = 60.0
# Attempts in total: 24 waits, about 19 minutes without hints.
MAX_ATTEMPTS = 25
# Exponent at which the doubling has passed the cap; keeps the shift small.
_MAX_EXPONENT = 6


def delay_s(n: int) -> float:
    """Return the wait before retry *n*, counted from 0: 1, 2, 4 ... 60 seconds."""
    return min(INITIAL_S * (1 << min(max(n, 0), _MAX_EXPONENT)), CAP_S)


def effective_delay_s(n: int, hint: float) -> float:
    """Return the wait before retry *n*; the vendor's *hint* is a floor and may exceed the cap."""
    return max(delay_s(n), hint)
