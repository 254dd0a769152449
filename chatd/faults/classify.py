"""
From a failure to its meaning.

``classify`` walks an ordered table; the first rule that holds decides. Order,
where it matters: 529 is a dedicated saturation signal; an exhausted quota
explains more than the status it rode on; bad credentials outrank bad
configuration; configuration outranks transient wrappers, so that "503 invalid
model" fails at once; disabled providers answer 503, so that rule precedes
timeouts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from chatd.errors import ProviderFault
from chatd.faults import messages, signals
from chatd.faults.detail import diagnostic_text, structured_detail
from chatd.faults.kinds import FaultKind
from chatd.faults.retry_after import parse_retry_after
from chatd.faults.signals import Signal

__all__ = ["ReportedError", "StreamCut", "TransportReset", "classify", "with_provider"]

# Exceptions looked at along causes and groups.
_MAX_CHAIN = 16
_UNAVAILABLE_STATUS = frozenset({408, 502, 503, 504})


class StreamCut(Exception):
    """A stream ended before its terminal event."""

    def __init__(self, provider: str) -> None:
        super().__init__(f"{provider} stream closed before terminal event")


class TransportReset(Exception):
    """The connection was cancelled by the other side while the caller still waited."""


class ReportedError(Exception):
    """An error the vendor reported inside a healthy stream; *body* is its JSON."""

    def __init__(self, message: str, *, body: Mapping[str, Any]) -> None:
        super().__init__(f"{message} {dict(body)}")
        self.message = message
        self.body = dict(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """Everything the rules look at."""

    raw_text: str
    detail: str | None
    provider: str
    status: int
    retry_after_s: float
    signals: frozenset[Signal]
    continuity: str | None
    is_reset: bool
    is_transport: bool
    is_deadline: bool
    is_cancel: bool

    def has(self, *wanted: Signal) -> bool:
        return not self.signals.isdisjoint(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    kind: FaultKind = FaultKind.GENERIC
    retryable: bool = False
    user_text: str = ""
    detail: str | None = None
    # Whether the raw text may serve as detail when the vendor gave none.
    raw_detail: bool = True


def classify(exc: BaseException, provider: str, *, now: datetime | None = None) -> ProviderFault:
    """
    Say what a failed model call means.

    Args:
        exc: an SDK exception, anything below it, or a fault that is already classified.
        provider: whose call it was; empty to guess from the text.
        now: for HTTP dates in ``Retry-After``; the present when absent.

    Returns:
        A fault whose texts are redacted and bounded. Never raises.
    """
    chain = tuple(_chain(exc))
    for link in chain:
        if isinstance(link, ProviderFault):
            return with_provider(link, provider)
    evidence = _gather(chain, provider, now or datetime.now(UTC))
    verdict = _decide(evidence)
    detail = verdict.detail or evidence.detail or (evidence.raw_text if verdict.raw_detail else "")
    return messages.make_fault(
        verdict.kind.value,
        evidence.provider,
        retryable=verdict.retryable,
        status_code=evidence.status,
        detail=diagnostic_text(detail),
        retry_after_s=evidence.retry_after_s,
        user_text=verdict.user_text,
    )


def with_provider(fault: ProviderFault, provider: str) -> ProviderFault:
    """Return *fault* re-labelled; another provider's name rebuilds the message from its template."""
    name = messages.canonical_provider(provider)
    if not name or (name == fault.provider and fault.user_text):
        return fault
    text = messages.template(fault.kind, name, retryable=fault.retryable, status_code=fault.status_code)
    relabelled = replace(fault, provider=name, user_text=text)
    relabelled.__cause__ = fault.__cause__
    return relabelled


def _decide(found: _Evidence) -> _Verdict:
    return (
        _decide_special(found) or _decide_permanent(found) or _decide_transient(found) or _decide_rest(found)
    )


def _decide_special(found: _Evidence) -> _Verdict | None:
    if found.has(Signal.INTERRUPTED):
        return _Verdict(user_text=messages.CANCELED, raw_detail=False)
    if found.continuity:
        return _Verdict(user_text=messages.CONTINUITY, detail=found.continuity)
    if found.has(Signal.STREAM_CUT):
        text = messages.stream_cut_text(found.provider)
        return _Verdict(kind=FaultKind.TIMEOUT, retryable=True, user_text=text, raw_detail=False)
    if found.status == 529 or found.has(Signal.OVERLOADED):
        return _Verdict(kind=FaultKind.OVERLOADED, retryable=True)
    return None


def _decide_permanent(found: _Evidence) -> _Verdict | None:
    if _is_usage(found):
        return _Verdict(kind=FaultKind.USAGE_LIMIT)
    if found.status == 401 or found.has(Signal.AUTH_STRONG):
        return _Verdict(kind=FaultKind.AUTH, raw_detail=False)
    if (found.status == 403 or found.has(Signal.AUTH_WEAK)) and not found.has(Signal.CONFIG):
        return _Verdict(kind=FaultKind.AUTH, raw_detail=False)
    return None


def _decide_transient(found: _Evidence) -> _Verdict | None:
    is_config = found.has(Signal.CONFIG)
    if (found.status == 429 or found.has(Signal.RATE)) and not is_config:
        return _Verdict(kind=FaultKind.RATE_LIMIT, retryable=True)
    if found.has(Signal.DISABLED):
        return _Verdict(kind=FaultKind.PROVIDER_DISABLED)
    if _is_timeout(found) and not is_config:
        return _Verdict(kind=FaultKind.TIMEOUT, retryable=not found.is_deadline)
    return None


def _decide_rest(found: _Evidence) -> _Verdict:
    if found.has(Signal.CONFIG):
        return _Verdict(kind=FaultKind.CONFIG)
    if found.status == 500 or found.has(Signal.SERVER_ERROR):
        return _Verdict(retryable=True)
    if found.is_cancel:
        return _Verdict(user_text=messages.CANCELED, raw_detail=False)
    return _Verdict()


def _is_usage(found: _Evidence) -> bool:
    if found.has(Signal.USAGE_ALWAYS) or found.status == 402:
        return True
    return found.status != 429 and found.has(Signal.USAGE)


def _is_timeout(found: _Evidence) -> bool:
    if found.is_deadline or found.status in _UNAVAILABLE_STATUS:
        return True
    if found.status == 0 and (found.is_reset or found.is_transport):
        return True
    # A vendor that refuses a request with 4xx quotes it; "timeout" in there is an argument's name.
    return found.has(Signal.TIMEOUT) and not 400 <= found.status < 500


def _gather(chain: tuple[BaseException, ...], provider: str, now: datetime) -> _Evidence:
    raw_text = _text(chain)
    detail = next((found for link in chain if (found := structured_detail(link))), None)
    lowered = f"{raw_text} {detail or ''}".lower().strip()
    transport = any(signals.has_type(link, signals.TRANSPORT_TYPES) for link in chain)
    permanent = any(signals.has_type(link, signals.PERMANENT_TYPES) for link in chain)
    seen = signals.read_signals(lowered)
    return _Evidence(
        raw_text=raw_text,
        detail=detail,
        provider=messages.canonical_provider(provider) or signals.read_provider(lowered),
        status=_status(chain) or signals.read_status(lowered),
        retry_after_s=_retry_after(chain, now),
        signals=seen,
        continuity=signals.match_continuity(lowered),
        is_reset=any(isinstance(link, TransportReset) for link in chain),
        is_transport=transport and not permanent,
        is_deadline=Signal.DEADLINE in seen or (not transport and any(map(_is_deadline, chain))),
        is_cancel=any(signals.has_type(link, signals.CANCEL_TYPES) for link in chain),
    )


def _is_deadline(exc: BaseException) -> bool:
    # The operating system's ETIMEDOUT is a TimeoutError too, but it has an errno.
    return isinstance(exc, TimeoutError) and exc.errno is None


def _chain(exc: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [exc]
    for _ in range(_MAX_CHAIN):
        if not waiting:
            return
        link = waiting.pop(0)
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(link.exceptions)
        if link.__cause__ is not None:
            waiting.append(link.__cause__)


def _text(chain: tuple[BaseException, ...]) -> str:
    texts: dict[str, None] = {}
    for link in chain:
        text = str(link).strip()
        if text and not isinstance(link, BaseExceptionGroup):
            texts.setdefault(text)
    return ": ".join(texts) or type(chain[0]).__name__


def _status(chain: tuple[BaseException, ...]) -> int:
    for link in chain:
        status = getattr(link, "status_code", None)
        # An error event inside a stream rides on a response that began with 200.
        if isinstance(status, int) and status >= 400:
            return status
    return 0


def _retry_after(chain: tuple[BaseException, ...], now: datetime) -> float:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None)
        if headers is not None:
            return parse_retry_after(headers, now=now)
    return 0.0
