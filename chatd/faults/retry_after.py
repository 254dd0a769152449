"""
The vendor's hint when to come back.

Source: RFC 9110, 10.2.3; ``retry-after-ms`` is the vendors' own finer header.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["MAX_HINT_S", "parse_retry_after", "parse_retry_delay"]

# Seconds. A longer hint is a mistake or an attack; a chat would appear dead.
MAX_HINT_S = 3_600.0


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float:
    """
    Read the hint from response headers.

    Args:
        headers: names in any case.
        now: aware; HTTP dates are measured from here.

    Returns:
        Seconds, 0 when there is no usable hint, at most ``MAX_HINT_S``.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    hint = _positive(lowered.get("retry-after-ms", "")) / 1_000 or _seconds(
        lowered.get("retry-after", ""), now
    )
    return min(hint, MAX_HINT_S)


def parse_retry_delay(details: object) -> float:
    """
    Read Google's hint, which comes in the error's *details*, as ``{"retryDelay": "34s"}``.

    Source: google.rpc.RetryInfo.
    """
    for item in details if isinstance(details, list) else ():
        delay = item.get("retryDelay") if isinstance(item, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return min(_positive(delay[:-1]), MAX_HINT_S)
    return 0.0


def _seconds(value: str, now: datetime) -> float:
    return _positive(value) or _until(value, now)


def _positive(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


def _until(value: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now).total_seconds(), 0.0)
