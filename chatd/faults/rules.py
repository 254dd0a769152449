"""
The ordered table of failures: the first rule that holds decides. Data only.

Order, where it matters: 529 is a dedicated saturation signal; an exhausted quota
explains more than the status it rode on; bad credentials outrank bad
configuration; configuration outranks transient wrappers, so that "503 invalid
model" fails at once; disabled providers answer 503, so that rule precedes
timeouts. Settings that can't work (no URL, an untrusted certificate) never heal,
whatever transport error they arrive as.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from chatd.faults.evidence import Evidence
from chatd.faults.signals import Signal
from chatd.wire import FaultKind

__all__ = ["RULES", "Rule", "Text"]

_UNAVAILABLE_STATUS = frozenset({408, 502, 503, 504})


class Text(Enum):
    """Which sentence a person reads."""

    TEMPLATE = "template"
    CANCELED = "canceled"
    CONTINUITY = "continuity"
    STREAM_CUT = "stream cut"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    One row.

    *retryable* holds unless *unless* does. Without *shows_raw*, only the vendor's own
    message may become the detail: other texts could hold what a person must not see.
    """

    name: str
    holds: Callable[[Evidence], bool]
    kind: FaultKind
    retryable: bool = False
    unless: Callable[[Evidence], bool] | None = None
    text: Text = Text.TEMPLATE
    shows_raw: bool = True


def _is_config(found: Evidence) -> bool:
    return found.has(Signal.CONFIG)


def _is_usage(found: Evidence) -> bool:
    if found.has(Signal.USAGE_ALWAYS) or found.status == 402:
        return True
    return found.status != 429 and found.has(Signal.USAGE)


def _is_timeout(found: Evidence) -> bool:
    if found.is_deadline or found.status in _UNAVAILABLE_STATUS:
        return True
    if found.status == 0 and found.is_reset:
        return True
    # A vendor that refuses a request with 4xx quotes it; "timeout" in there is an argument's name.
    return found.has(Signal.TIMEOUT) and not 400 <= found.status < 500


RULES: tuple[Rule, ...] = (
    Rule(
        name="interrupted",
        holds=lambda found: found.has(Signal.INTERRUPTED),
        kind=FaultKind.GENERIC,
        text=Text.CANCELED,
        shows_raw=False,
    ),
    Rule(
        name="continuity",
        holds=lambda found: found.continuity is not None,
        kind=FaultKind.GENERIC,
        text=Text.CONTINUITY,
    ),
    Rule(
        name="stream cut",
        holds=lambda found: found.has(Signal.STREAM_CUT) or (found.is_malformed and not found.status),
        kind=FaultKind.TIMEOUT,
        retryable=True,
        text=Text.STREAM_CUT,
        shows_raw=False,
    ),
    Rule(
        name="overloaded",
        holds=lambda found: found.status == 529 or found.has(Signal.OVERLOADED),
        kind=FaultKind.OVERLOADED,
        retryable=True,
    ),
    Rule(name="usage", holds=_is_usage, kind=FaultKind.USAGE_LIMIT),
    Rule(
        name="filtered",
        holds=lambda found: found.status in {0, 400, 403} and found.has(Signal.FILTERED),
        kind=FaultKind.CONTENT_FILTER,
    ),
    Rule(
        name="strong auth",
        holds=lambda found: found.status == 401 or found.has(Signal.AUTH_STRONG),
        kind=FaultKind.AUTH,
        shows_raw=False,
    ),
    Rule(
        name="weak auth",
        holds=lambda found: (found.status == 403 or found.has(Signal.AUTH_WEAK)) and not _is_config(found),
        kind=FaultKind.AUTH,
        shows_raw=False,
    ),
    Rule(
        name="rate",
        holds=lambda found: (found.status == 429 or found.has(Signal.RATE)) and not _is_config(found),
        kind=FaultKind.RATE_LIMIT,
        retryable=True,
    ),
    Rule(
        name="disabled",
        holds=lambda found: found.has(Signal.DISABLED),
        kind=FaultKind.PROVIDER_DISABLED,
    ),
    Rule(
        name="untrusted",
        holds=lambda found: found.has(Signal.UNTRUSTED) and not found.status,
        kind=FaultKind.CONFIG,
        text=Text.UNTRUSTED,
    ),
    Rule(
        name="settings",
        holds=lambda found: found.is_permanent and not found.status,
        kind=FaultKind.CONFIG,
    ),
    Rule(
        name="timeout",
        holds=lambda found: _is_timeout(found) and not _is_config(found),
        kind=FaultKind.TIMEOUT,
        retryable=True,
        unless=lambda found: found.is_deadline,
    ),
    Rule(name="config", holds=_is_config, kind=FaultKind.CONFIG),
    Rule(
        name="server",
        holds=lambda found: found.status == 500 or found.has(Signal.SERVER_ERROR),
        kind=FaultKind.GENERIC,
        retryable=True,
    ),
    Rule(
        name="canceled",
        holds=lambda found: found.is_cancel,
        kind=FaultKind.GENERIC,
        text=Text.CANCELED,
        shows_raw=False,
    ),
    Rule(name="rest", holds=lambda found: True, kind=FaultKind.GENERIC),  # noqa: ARG005 -- one shape for all
)
