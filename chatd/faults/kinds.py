"""The closed set of provider failures; clients switch on these words."""

from enum import StrEnum

__all__ = ["FaultKind"]


class FaultKind(StrEnum):
    """What went wrong with a model call."""

    GENERIC = "generic"
    OVERLOADED = "overloaded"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    STARTUP_TIMEOUT = "startup_timeout"
    STREAM_SILENCE_TIMEOUT = "stream_silence_timeout"
    AUTH = "auth"
    CONFIG = "config"
    USAGE_LIMIT = "usage_limit"
    MISSING_KEY = "missing_key"
    PROVIDER_DISABLED = "provider_disabled"
    CONTENT_FILTER = "content_filter"
