"""Classification, by table."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from chatd.errors import ProviderFault
from chatd.faults import (
    FaultKind,
    ReportedError,
    StreamCut,
    TransportReset,
    classify,
    make_fault,
    retry_banner,
    with_provider,
)
from chatd.faults.signals import CONTINUITY, PATTERNS, PROVIDERS, Signal, match_continuity, read_signals
from chatd.faults.signals import read_provider as named_in

NOW = datetime(2026, 9, 1, tzinfo=UTC)
UNAVAILABLE = "temporarily unavailable"
UNEXPECTED = "unexpected error"
SAME = "same text"


@dataclass
class _Response:
    headers: Mapping[str, str] = field(default_factory=dict)


class StatusError(Exception):
    """An SDK's status error, by shape."""

    def __init__(self, message: str, status: int, **headers: str) -> None:
        super().__init__(f"Error code: {status} - {message}")
        self.message, self.status_code = message, status
        self.body: Any = {"error": {"message": message}}
        self.response = _Response({name.replace("_", "-"): value for name, value in headers.items()})


def wrapping(outer: BaseException, cause: BaseException) -> BaseException:
    """Return *outer* raised from *cause*."""
    outer.__cause__ = cause
    return outer


# input, kind, retryable, provider, status, phrase of the message, detail (SAME: the input's own text)
Row = tuple[BaseException | str, str, bool, str, int | None, str, str | None]
TABLE: list[Row] = [
    ("status 529 from upstream", "overloaded", True, "", 529, "overloaded", SAME),
    ("anthropic overloaded_error", "overloaded", True, "anthropic", None, "Anthropic is temp", SAME),
    ("authentication failed: invalid model", "auth", False, "", None, "Authentication", None),
    ("forbidden", "auth", False, "", None, "Authentication", None),
    ("forbidden: context length exceeded", "config", False, "", None, "configuration", SAME),
    ("status 401 from upstream", "auth", False, "", 401, "Authentication", None),
    ("status 429: invalid model", "config", False, "", 429, "configuration", SAME),
    ("status 429: invalid model quota", "config", False, "", 429, "configuration", SAME),
    ("status 503: invalid model", "config", False, "", 503, "configuration", SAME),
    ("connection refused: unsupported model", "config", False, "", None, "configuration", SAME),
    (TimeoutError("deadline exceeded"), "timeout", False, "", None, "timed out", SAME),
    (TimeoutError(), "timeout", False, "", None, "timed out", "TimeoutError"),
    (TimeoutError(110, "Connection timed out"), "timeout", True, "", None, UNAVAILABLE, SAME),
    (
        BaseExceptionGroup("joined", [TransportReset("reset"), asyncio.CancelledError("context canceled")]),
        "timeout",
        True,
        "",
        None,
        UNAVAILABLE,
        "reset: context canceled",
    ),
    (asyncio.CancelledError(), "generic", False, "", None, "canceled", None),
    (
        wrapping(RuntimeError("received status 500 from upstream"), asyncio.CancelledError()),
        "generic",
        True,
        "",
        500,
        UNEXPECTED,
        SAME,
    ),
    (
        wrapping(StatusError("context canceled", 500), asyncio.CancelledError()),
        "generic",
        True,
        "",
        500,
        UNEXPECTED,
        "context canceled",
    ),
    (
        StatusError("provider_disabled: openai is off ", 503),
        "provider_disabled",
        False,
        "openai",
        503,
        "disabled",
        "provider_disabled: openai is off",
    ),
    (StatusError("service unavailable", 503), "timeout", True, "", 503, UNAVAILABLE, "service unavailable"),
    (StreamCut("anthropic"), "timeout", True, "anthropic", None, "closed unexpectedly", None),
    (StreamCut("openai"), "timeout", True, "openai", None, "OpenAI stream closed", None),
    (
        StatusError("No tool output found for function call call_x.", 400),
        "generic",
        False,
        "",
        400,
        "internal state mismatch",
        "match=function_call_output_missing",
    ),
    (
        "http2: client connection force closed via ClientConn.Close",
        "timeout",
        True,
        "",
        None,
        UNAVAILABLE,
        SAME,
    ),
    (
        'Post "https://api.anthropic.com/v1/messages": http2: client connection force closed',
        "timeout",
        True,
        "anthropic",
        None,
        "Anthropic is temporarily unavailable",
        SAME,
    ),
    ("http2: server sent GOAWAY and closed the connection", "timeout", True, "", None, UNAVAILABLE, SAME),
    ("post: use of closed network connection", "timeout", True, "", None, UNAVAILABLE, SAME),
    ("http2: server error 429 Too Many Requests", "rate_limit", True, "", 429, "rate limiting", SAME),
    ("http2: server sent GOAWAY: status 401 unauthorized", "auth", False, "", 401, "Authentication", None),
    (
        "stream error: stream ID 401; INTERNAL_ERROR; received from peer",
        "timeout",
        True,
        "",
        None,
        UNAVAILABLE,
        SAME,
    ),
    (
        "stream error: stream ID 503; PROTOCOL_ERROR; received from peer",
        "generic",
        False,
        "",
        None,
        "failed unexpectedly",
        SAME,
    ),
    ("stream error: stream ID 7; CANCEL", "generic", False, "", None, "failed unexpectedly", SAME),
    ("unauthorized: insufficient_quota", "usage_limit", False, "", None, "quota", SAME),
    ("status 429: insufficient_quota", "usage_limit", False, "", 429, "quota", SAME),
    ("gemini status 429: exhausted, check quota", "rate_limit", True, "google", 429, "Google is rate", SAME),
    (
        StatusError("see your billing plan", 500),
        "usage_limit",
        False,
        "",
        500,
        "billing",
        "see your billing plan",
    ),
    (StatusError("image too large", 400), "generic", False, "", 400, UNEXPECTED, "image too large"),
    (StatusError("bad key", 401), "auth", False, "", 401, "Authentication", "bad key"),
    (StatusError("x" * 510, 400), "generic", False, "", 400, UNEXPECTED, "x" * 499 + "…"),
    ("dial tcp 10.0.0.1:503: connection refused", "timeout", True, "", None, UNAVAILABLE, SAME),
    (
        StatusError("previous response with id r not found", 404),
        "generic",
        False,
        "",
        404,
        UNEXPECTED,
        "previous response with id r not found",
    ),
    (StatusError("tools.0.timeout: not a number", 400), "generic", False, "", 400, UNEXPECTED, None),
    (
        ReportedError("Slow down", body={"code": "rate_limit_exceeded"}),
        "rate_limit",
        True,
        "",
        None,
        "rate",
        None,
    ),
    (
        ReportedError("Oh", body={"code": "server_error", "message": "Oh"}),
        "generic",
        True,
        "",
        None,
        "",
        "Oh",
    ),
    ("request interrupted by user", "generic", False, "", None, "canceled", None),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0])[:60])
def test_failure_means_what_the_table_says(row: Row) -> None:
    """One row per rule and per order between rules."""
    given, kind, retryable, provider, status, phrase, detail = row
    exc = RuntimeError(given) if isinstance(given, str) else given
    fault = classify(exc, "", now=NOW)
    assert (fault.kind, fault.retryable, fault.status_code) == (kind, retryable, status)
    assert fault.provider == provider
    assert phrase in fault.user_text
    assert str(status or "status") not in fault.user_text
    if detail is not None:
        assert fault.detail == (str(exc) if detail == SAME else detail)


@pytest.mark.parametrize("text", ["forbidden", "status 401 from upstream", "request interrupted"])
def test_credentials_and_cancellation_show_no_raw_text(text: str) -> None:
    """Such texts tend to quote what must not be shown."""
    assert classify(RuntimeError(text), "openai").detail is None


@pytest.mark.parametrize(
    ("signal", "pattern"), [(signal, pattern) for signal, rows in PATTERNS.items() for pattern in rows]
)
def test_each_pattern_raises_its_signal(signal: Signal, pattern: str) -> None:
    """No row of the table is dead."""
    assert signal in read_signals(f"x {pattern} y")


@pytest.mark.parametrize(("pattern", "token"), CONTINUITY)
def test_continuity_patterns_map_to_fixed_tokens(pattern: str, token: str) -> None:
    """The token holds no vendor id."""
    assert match_continuity(f"{pattern} call_secret") == token


@pytest.mark.parametrize(("pattern", "provider"), PROVIDERS)
def test_provider_is_read_from_text(pattern: str, provider: str) -> None:
    """A name or a URL host tells whose failure it was."""
    assert named_in(f"post to {pattern}") == provider


def test_a_classified_fault_stays_what_it_is() -> None:
    """Wrapping does not blur a verdict; the cause is found behind other exceptions."""
    fault = make_fault(FaultKind.STREAM_SILENCE_TIMEOUT, "openai", retryable=True)
    assert classify(wrapping(RuntimeError("status 401"), fault), "openai") is fault


def test_other_providers_name_rebuilds_the_message_and_keeps_the_rest() -> None:
    """The hint is the truth about whose call it was; the vendor's hint when to retry survives."""
    first = classify(StatusError("openai received too many", 429, Retry_After="30"), "")
    again = with_provider(first, "azure openai")
    assert again.user_text == "Azure OpenAI is rate limiting requests."
    assert (again.provider, again.retry_after_s, again.detail) == ("azure", 30.0, first.detail)
    assert with_provider(first, "") is first


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_kind_has_a_sentence_and_a_banner(kind: FaultKind) -> None:
    """No failure is shown as a blank, and a waiting retry offers no remedy."""
    fault = make_fault(kind, "anthropic")
    assert fault.user_text.endswith(".")
    assert "Check" not in retry_banner(fault)
    assert retry_banner(make_fault(kind, "anthropic", retryable=True))


REQUEST = httpx2.Request("POST", "https://user:pass@api.openai.com/v1/responses?key=secret")


@pytest.mark.parametrize(
    "exc",
    [
        anthropic.APITimeoutError(request=REQUEST),
        anthropic.APIConnectionError(request=REQUEST),
        openai.APITimeoutError(request=REQUEST),
        openai.APIConnectionError(request=REQUEST),
        httpx2.ReadError("", request=REQUEST),
        httpx2.ReadTimeout("", request=REQUEST),
        httpx2.RemoteProtocolError("Server disconnected without sending a response."),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
    ids=lambda exc: f"{type(exc).__module__}.{type(exc).__name__}",
)
@pytest.mark.past_bug(16)
def test_transport_failures_of_the_sdks_are_retryable(exc: Exception) -> None:
    """The network may heal, whichever layer noticed."""
    fault = classify(exc, "openai")
    assert (fault.kind, fault.retryable) == ("timeout", True)


def test_a_base_url_that_is_no_url_is_not_retried() -> None:
    """It will not heal."""
    cause = httpx2.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol.")
    exc = wrapping(openai.APIConnectionError(request=REQUEST), cause)
    assert classify(exc, "openai").retryable is False


def test_chains_that_loop_end() -> None:
    """A cause that is its own cause is looked at a bounded number of times."""
    exc = RuntimeError("odd")
    exc.__cause__ = exc
    assert isinstance(classify(exc, ""), ProviderFault)
