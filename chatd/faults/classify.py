"""From a failure to its meaning, by the ordered rules."""

from dataclasses import replace
from datetime import UTC, datetime

from chatd.errors import ProviderFault
from chatd.faults import messages, signals
from chatd.faults.detail import diagnostic_text
from chatd.faults.evidence import Evidence, ReportedError, StreamCut, TransportReset, chain_of, gather
from chatd.faults.rules import RULES, Rule, Text
from chatd.wire import FaultKind

__all__ = [
    "ReportedError",
    "StreamCut",
    "TransportReset",
    "classify",
    "fault_words",
    "is_malformed_fault",
    "is_overflow_fault",
    "overflow_fault",
    "with_provider",
]


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
    chain = tuple(chain_of(exc))
    for link in chain:
        if isinstance(link, ProviderFault):
            return with_provider(link, provider)
    found = gather(chain, provider, now or datetime.now(UTC))
    rule = next(rule for rule in RULES if rule.holds(found))
    detail = found.continuity or found.detail or (found.raw_text if rule.shows_raw else "")
    return messages.make_fault(
        rule.kind,
        found.provider,
        retryable=rule.retryable and not (rule.unless is not None and rule.unless(found)),
        status_code=found.status,
        detail=diagnostic_text(detail),
        retry_after_s=found.retry_after_s,
        user_text=_sentence(rule, found),
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


def is_overflow_fault(fault: ProviderFault) -> bool:
    """Whether the vendor refused a prompt as longer than the model's window: a summary may help."""
    return not fault.retryable and signals.is_overflow(fault_words(fault).lower())


def overflow_fault(provider: str) -> ProviderFault:
    """What an answer amounts to that filled the model's window: an overflow, though nobody refused it."""
    detail = signals.OVERFLOW[0]
    return messages.make_fault(FaultKind.CONFIG, provider, user_text=messages.WINDOW_FULL, detail=detail)


def is_malformed_fault(fault: ProviderFault) -> bool:
    """Whether the vendor refused a request for what is in it, and no setting explains that."""
    is_plain = fault.kind == FaultKind.GENERIC and fault.status_code in {400, 422}
    return is_plain and not fault.retryable and not is_overflow_fault(fault)


def fault_words(fault: ProviderFault) -> str:
    """All that a failure says, the vendor's own fields included; for us alone: nothing is taken out."""
    return " ".join([fault.detail or "", *(str(link) for link in chain_of(fault))])


def _sentence(rule: Rule, found: Evidence) -> str:
    match rule.text:
        case Text.CANCELED:
            return messages.CANCELED
        case Text.CONTINUITY:
            return messages.CONTINUITY
        case Text.STREAM_CUT:
            return messages.stream_cut_text(found.provider)
        case Text.UNTRUSTED:
            return messages.untrusted_text(found.provider)
        case Text.TEMPLATE:
            return ""
