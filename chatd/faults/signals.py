"""
What a failure's text and types reveal. The only place where vendor strings are matched.

Text arrives lowercased. One row per pattern; a test row goes with each.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

__all__ = [
    "CANCEL_TYPES",
    "MALFORMED_TYPES",
    "PERMANENT_TYPES",
    "TRANSPORT_TYPES",
    "Signal",
    "has_type",
    "match_continuity",
    "read_peer_reset",
    "read_provider",
    "read_signals",
    "read_status",
]


class Signal(StrEnum):
    """A fact found in a failure's text."""

    OVERLOADED = "overloaded"
    RATE = "rate"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    AUTH_STRONG = "auth_strong"
    AUTH_WEAK = "auth_weak"
    USAGE = "usage"
    USAGE_ALWAYS = "usage_always"
    CONFIG = "config"
    SERVER_ERROR = "server_error"
    INTERRUPTED = "interrupted"
    DISABLED = "disabled"
    STREAM_CUT = "stream_cut"
    FILTERED = "filtered"
    UNTRUSTED = "untrusted"
    NO_TLS = "no_tls"


# A prompt that does not fit into the window, as each vendor says it.
OVERFLOW: tuple[str, ...] = (
    "context length exceeded",
    "context_length_exceeded",
    "context_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceed context limit",
    "prompt is too long",
    "input token count exceeds",
    "input token count (",
    "exceeds the available context size",
)

PATTERNS: dict[Signal, tuple[str, ...]] = {
    Signal.OVERLOADED: ("overloaded",),
    Signal.RATE: ("rate limit", "rate_limit", "rate limited", "rate-limited", "too many requests"),
    Signal.TIMEOUT: (
        "timeout",
        "timed out",
        "service unavailable",
        "unavailable",
        "connection reset",
        "connection refused",
        "eof",
        "broken pipe",
        "bad gateway",
        "gateway timeout",
        # Covers closed, unusable, force-closed and lost client connections alike.
        "client conn",
        "goaway",
        "http2: stream closed",
        "use of closed network connection",
        "server disconnected",
        # HTTP/2's GOAWAY, as the HTTP library tells it.
        "<connectionterminated",
        "internal_error; received from peer",
        "refused_stream; received from peer",
        "cancel; received from peer",
        "enhance_your_calm; received from peer",
        "no_error; received from peer",
    ),
    Signal.DEADLINE: ("deadline exceeded",),
    Signal.AUTH_STRONG: (
        "authentication",
        "unauthorized",
        "invalid api key",
        "invalid_api_key",
        "api key not valid",
    ),
    Signal.AUTH_WEAK: ("forbidden",),
    Signal.USAGE: ("quota", "billing", "payment required"),
    Signal.USAGE_ALWAYS: ("insufficient_quota",),
    Signal.CONFIG: (
        "invalid model",
        "model not found",
        "model_not_found",
        "unsupported model",
        "malformed config",
        "malformed configuration",
        # Anthropic, Google, servers like vLLM, Ollama, Azure: there is no such model.
        "not_found_error",
        "is not found for api version",
        "` does not exist",
        "not found, try pulling it",
        "deploymentnotfound",
        "user location is not supported",
        *OVERFLOW,
    ),
    Signal.SERVER_ERROR: ("server error", "internal server error", "server_error", "internalservererror"),
    Signal.INTERRUPTED: ("chat interrupted", "request interrupted", "operation interrupted"),
    Signal.DISABLED: ("provider_disabled",),
    Signal.STREAM_CUT: (
        "before message_stop",
        "before terminal event",
        "without sending complete message body",
    ),
    Signal.FILTERED: ("content_filter", "content management policy", "was flagged", "content_policy"),
    # Self-signed, of an unknown issuer, expired, not valid yet, of another host.
    Signal.UNTRUSTED: ("certificate_verify_failed", "certificate verify failed"),
    Signal.NO_TLS: ("wrong_version_number",),
}

# Tokens are fixed, so that no vendor id reaches a stored error.
CONTINUITY: tuple[tuple[str, str], ...] = (
    ("no tool output found for function call", "match=function_call_output_missing"),
    ("missing tool output for call", "match=function_call_output_missing"),
    ("without its required 'reasoning' item", "match=web_search_reasoning_missing"),
)

# First hit wins, so the compatible and hosted forms stand before the vendor they imitate.
PROVIDERS: tuple[tuple[str, str], ...] = (
    ("openai-compat", "openai-compat"),
    ("openai compatible", "openai-compat"),
    ("azure openai", "azure"),
    ("azure-openai", "azure"),
    ("openrouter", "openrouter"),
    ("bedrock", "bedrock"),
    ("vercel", "vercel"),
    ("anthropic", "anthropic"),
    ("claude", "anthropic"),
    ("google", "google"),
    ("gemini", "google"),
    ("vertex", "google"),
    ("openai", "openai"),
)

# Class names in the method resolution order. Names, not classes: this package
# stays free of the SDKs and their HTTP clients, which share these names.
TRANSPORT_TYPES = frozenset(
    {"APIConnectionError", "NetworkError", "TimeoutException", "RemoteProtocolError", "ConnectionError"}
)
# Transport failures that will not heal: a base URL that is no URL.
PERMANENT_TYPES = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
CANCEL_TYPES = frozenset({"CancelledError"})
# What the SDKs raise at an event that is no JSON, or no text: something broken stands in the way.
MALFORMED_TYPES = frozenset(
    {"JSONDecodeError", "UnicodeDecodeError", "UnknownApiResponseError", "APIResponseValidationError"}
)
# Codes of HTTP/2 (RFC 9113, 7) with which a peer gives up a stream that may be tried again: NO_ERROR,
# INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM.
RETRYABLE_RESETS = frozenset({0, 2, 7, 8, 11})

_NAMED_STATUS = re.compile(r"(?:status(?:\s+code)?|http)\s*[:=]?\s*(\d{3})(?!\d)")
_BARE_STATUS = re.compile(r"(?<!\d)(401|403|408|429|500|502|503|504|529)(?!\d)")
_PEER_RESET = re.compile(r"<streamreset stream_id:\d+, error_code:(\d+), remote_reset:(true|false)>")
_STREAM_ID = re.compile(r"stream id[\s:=]*$")


def read_signals(text: str) -> frozenset[Signal]:
    """Return every signal whose patterns occur in the lowercased *text*."""
    return frozenset(signal for signal, rows in PATTERNS.items() if any(row in text for row in rows))


def is_overflow(text: str) -> bool:
    """Whether the lowercased *text* says that the prompt is longer than the model's window."""
    return any(pattern in text for pattern in OVERFLOW)


def match_continuity(text: str) -> str | None:
    """Return the fixed token for a history the vendor calls incomplete, None if it does not."""
    return next((token for pattern, token in CONTINUITY if pattern in text), None)


def read_provider(text: str) -> str:
    """Return the provider named in the lowercased *text* (URL hosts count), empty if none."""
    return next((provider for pattern, provider in PROVIDERS if pattern in text), "")


def read_status(text: str) -> int:
    """Return the HTTP status written in the lowercased *text*, 0 if none."""
    for pattern in (_NAMED_STATUS, _BARE_STATUS):
        for match in pattern.finditer(text):
            if not _is_other_number(text[: match.start(1)]):
                return int(match.group(1))
    return 0


def read_peer_reset(text: str) -> bool | None:
    """Whether the lowercased *text* tells of an HTTP/2 reset to be tried again; None if it tells of none."""
    found = _PEER_RESET.search(text)
    return None if found is None else found[2] == "true" and int(found[1]) in RETRYABLE_RESETS


def has_type(exc: BaseException, names: Iterable[str]) -> bool:
    """Return whether *exc* is an instance of a class with one of these *names*."""
    return any(cls.__name__ in names for cls in type(exc).__mro__)


def _is_other_number(before: str) -> bool:
    # A port follows its colon directly; "status: 503" has a name before it.
    if _STREAM_ID.search(before):
        return True
    return before.endswith(":") and not re.search(r"(?:status(?:\s+code)?|http)\s*:$", before)
