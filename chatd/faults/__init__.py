"""Provider failures: what they mean, what to tell a person, and how long to wait. Pure."""

from chatd.faults.backoff import delay_s, effective_delay_s, spread_delay_s
from chatd.faults.classify import (
    ReportedError,
    StreamCut,
    TransportReset,
    classify,
    fault_words,
    is_malformed_fault,
    is_overflow_fault,
    overflow_fault,
    with_provider,
)
from chatd.faults.detail import diagnostic_text
from chatd.faults.messages import WINDOW_FULL, make_fault, retry_banner
from chatd.faults.retry_after import parse_retry_after
from chatd.wire import FaultKind

__all__ = [
    "WINDOW_FULL",
    "FaultKind",
    "ReportedError",
    "StreamCut",
    "TransportReset",
    "classify",
    "delay_s",
    "diagnostic_text",
    "effective_delay_s",
    "fault_words",
    "is_malformed_fault",
    "is_overflow_fault",
    "make_fault",
    "overflow_fault",
    "parse_retry_after",
    "retry_banner",
    "spread_delay_s",
    "with_provider",
]
