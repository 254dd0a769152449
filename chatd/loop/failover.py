"""Whether another model may do better after a failure. Pure."""

from chatd.errors import ProviderFault
from chatd.faults import is_overflow_fault
from chatd.wire import FaultKind

__all__ = ["helps_elsewhere"]

# What is wrong with a vendor, an account or a setting; what is wrong with the request is so everywhere.
_ELSEWHERE = frozenset(
    {
        FaultKind.OVERLOADED,
        FaultKind.RATE_LIMIT,
        FaultKind.TIMEOUT,
        FaultKind.STARTUP_TIMEOUT,
        FaultKind.STREAM_SILENCE_TIMEOUT,
        FaultKind.AUTH,
        FaultKind.CONFIG,
        FaultKind.USAGE_LIMIT,
        FaultKind.MISSING_KEY,
        FaultKind.PROVIDER_DISABLED,
    }
)


def helps_elsewhere(fault: ProviderFault, *, attempt: int, patience: int) -> bool:
    """
    Whether to go on with another model now.

    What may heal is tried *patience* times with the first one; *attempt* is the number of the try
    that failed. What never heals there is not tried again there.
    """
    if is_overflow_fault(fault):
        return False
    if fault.retryable:
        return attempt >= patience
    return fault.kind in _ELSEWHERE
