"""Provider failures: what they mean, what to tell a person, and how long to wait. Pure."""

from chatd.faults.backoff import MAX_ATTEMPTS, delay_s, effective_delay_s
from chatd.faults.classify import ReportedError, StreamCut, TransportReset, classify, with_provider
from chatd.faults.detail import diagnostic_text
from chatd.faults.kinds import FaultKind
from chatd.faults.messages import make_fault, retry_banner
from chatd.faults.retry_after import parse_retry_after

__all__ = [
    "MAX_ATTEMPTS",
    "FaultKind",
    "ReportedError",
    "StreamCut",
    "TransportReset",
    "classify",
    "delay_s",
    "diagnostic_text",
    "effective_delay_s",
    "make_fault",
    "parse_retry_after",
    "retry_banner",
    "with_provider",
]
