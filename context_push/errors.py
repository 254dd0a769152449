"""
Errors of finding and pushing context.

ContextError
    Refused
        SourceRefused
        SourceNotFound
        PushRefused
    Unavailable
        PushUnavailable
        PassTimedOut

An unreadable resource is a status, never an exception.
"""

__all__ = [
    "ContextError",
    "PassTimedOut",
    "PushRefused",
    "PushUnavailable",
    "Refused",
    "SourceNotFound",
    "SourceRefused",
    "Unavailable",
]


class ContextError(Exception):
    """Something about context could not be done; the text says what to do about it."""

    code = "context_error"


class Refused(ContextError):
    """Our rule said no."""

    code = "refused"


class SourceRefused(Refused):
    """The path may not be a source."""

    code = "source_refused"


class SourceNotFound(Refused):
    """The path is no source that was added."""

    code = "source_not_found"


class PushRefused(Refused):
    """The control plane takes no pushes; asking again on this connection can't help."""

    code = "push_refused"


class Unavailable(ContextError):
    """May work later."""

    code = "unavailable"


class PushUnavailable(Unavailable):
    """The control plane could not take the push now."""

    code = "push_unavailable"


class PassTimedOut(Unavailable):
    """Reading the sources took too long; a file system may hang."""

    code = "pass_timed_out"
