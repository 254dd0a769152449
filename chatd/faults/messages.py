"""
What a person is told about a provider failure.

Status codes never appear in the text; they travel as a field.
"""

from chatd.errors import ProviderFault
from chatd.wire import FaultKind

__all__ = [
    "CANCELED",
    "CONTINUITY",
    "WINDOW_FULL",
    "canonical_provider",
    "make_fault",
    "retry_banner",
    "stream_cut_text",
    "template",
    "untrusted_text",
]

CANCELED = "The request was canceled."
CONTINUITY = (
    "The chat's stored history does not match what the AI provider expects. This is an internal state "
    "mismatch, not a problem of configuration or billing."
)
WINDOW_FULL = "The conversation filled the model's context window before the answer was whole."

_DISPLAY_NAMES = {
    "anthropic": "Anthropic",
    "azure": "Azure OpenAI",
    "bedrock": "AWS Bedrock",
    "google": "Google",
    "openai": "OpenAI",
    "openai-compat": "OpenAI Compatible",
    "openrouter": "OpenRouter",
    "vercel": "Vercel AI Gateway",
}
_ALIASES = {
    "azure openai": "azure",
    "azure-openai": "azure",
    "openai compat": "openai-compat",
    "openai compatible": "openai-compat",
    "openai_compat": "openai-compat",
}
# (statement, remedy); {s} is the provider's name. A retry banner shows the statement only.
_TEMPLATES: dict[FaultKind, tuple[str, str]] = {
    FaultKind.OVERLOADED: ("{s} is temporarily overloaded.", ""),
    FaultKind.RATE_LIMIT: ("{s} is rate limiting requests.", ""),
    FaultKind.TIMEOUT: ("{s} is temporarily unavailable.", ""),
    FaultKind.STARTUP_TIMEOUT: ("{s} did not start responding in time.", ""),
    FaultKind.STREAM_SILENCE_TIMEOUT: ("{s} sent no data in time.", ""),
    FaultKind.USAGE_LIMIT: ("The usage quota for {s} is exceeded.", "Check the account's billing and quota."),
    FaultKind.AUTH: ("Authentication with {s} failed.", "Check the API key and its permissions."),
    FaultKind.CONFIG: ("{s} rejected the model configuration.", "Check the model and provider settings."),
    FaultKind.MISSING_KEY: ("The API key this conversation used is gone.", "Send the message again."),
    FaultKind.PROVIDER_DISABLED: ("{s} is disabled here.", "Ask an administrator to enable it."),
    FaultKind.CONTENT_FILTER: ("{s} blocked the response under its content policy.", ""),
}
_KNOWN = {kind.value: kind for kind in FaultKind}


def canonical_provider(name: str) -> str:
    """Return the one spelling of a provider's *name*; unknown names are only lowercased."""
    lowered = name.strip().lower()
    return _ALIASES.get(lowered, lowered)


def template(
    kind: str, provider: str, *, retryable: bool, status_code: int | None, remedy: bool = True
) -> str:
    """Return the sentence for a failure; *remedy* adds what to do about it."""
    known = _KNOWN.get(kind, FaultKind.GENERIC)
    if known is FaultKind.TIMEOUT and not retryable and not status_code:
        return "The request timed out."
    if known is FaultKind.GENERIC:
        if retryable or status_code:
            return _named("{s} returned an unexpected error.", provider)
        return "The request failed unexpectedly."
    statement, advice = _TEMPLATES[known]
    return _named(" ".join(filter(None, (statement, advice if remedy else ""))), provider)


def stream_cut_text(provider: str) -> str:
    """Return the sentence for a stream that ended before its terminal event."""
    return _named("The {s} stream closed unexpectedly.", provider).replace("The the", "The")


def untrusted_text(provider: str) -> str:
    """Return the sentence for a server whose certificate proves nothing to us."""
    sentence = (
        "The identity of {s} could not be verified. "
        "Check the base URL, this machine's clock and the certificates it trusts (SSL_CERT_FILE)."
    )
    return _named(sentence, provider)


def make_fault(
    kind: str,
    provider: str,
    *,
    retryable: bool = False,
    status_code: int | None = None,
    detail: str | None = None,
    retry_after_s: float = 0.0,
    user_text: str = "",
) -> ProviderFault:
    """Build a fault; a blank *user_text* is filled from the template of its *kind*."""
    name = canonical_provider(provider)
    text = user_text or template(kind, name, retryable=retryable, status_code=status_code)
    return ProviderFault(
        user_text=text,
        kind=str(kind),
        provider=name,
        retryable=retryable,
        status_code=status_code or None,
        retry_after_s=max(retry_after_s, 0.0),
        detail=detail or None,
    )


def retry_banner(fault: ProviderFault) -> str:
    """Return what to show while a retry waits: the fault's sentence, without remedies."""
    if fault.retryable and fault.user_text:
        return fault.user_text
    return template(
        fault.kind, fault.provider, retryable=fault.retryable, status_code=fault.status_code, remedy=False
    )


def _named(sentence: str, provider: str) -> str:
    text = sentence.format(s=_DISPLAY_NAMES.get(provider, "the AI provider"))
    return text[0].upper() + text[1:]
