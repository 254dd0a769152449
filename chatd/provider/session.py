"""What the vendors' clients share: limits, headers and the one place where failures are classified."""

from collections.abc import Iterator
from contextlib import contextmanager

from chatd.faults import classify

__all__ = ["CONNECT_TIMEOUT_S", "READ_TIMEOUT_S", "USER_AGENT", "vendor_faults"]

# Seconds until a connection stands.
CONNECT_TIMEOUT_S = 10.0
# Seconds between two chunks. Above the loop's own limit on silence, which names the cause better.
READ_TIMEOUT_S = 660.0
USER_AGENT = "chatd"


@contextmanager
def vendor_faults(provider: str) -> Iterator[None]:
    """
    Turn whatever a vendor's SDK raises into a ``ProviderFault``.

    Raises:
        ProviderFault: classified, from the original exception.

    Cancellation: passes through untouched, like every ``BaseException``.
    """
    try:
        yield
    except Exception as error:
        raise classify(error, provider) from error
