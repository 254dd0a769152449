"""
Errors of the workspace daemon.

AgentError
    Refused
        BadRequest
        NotFound
        Unauthorised
        AlreadyRunning
        CallCancelled
        RuntimeDirUnusable
    Unavailable
        ShuttingDown
        NotRunning
        OutcomeUnknown
"""

__all__ = [
    "AgentError",
    "AlreadyRunning",
    "BadRequest",
    "CallCancelled",
    "NotFound",
    "NotRunning",
    "OutcomeUnknown",
    "Refused",
    "RuntimeDirUnusable",
    "ShuttingDown",
    "Unauthorised",
    "Unavailable",
]


class AgentError(Exception):
    """Something the daemon could not do; the text says what to do about it."""

    code = "error"


class Refused(AgentError):
    """Our rule said no."""

    code = "refused"


class BadRequest(Refused):
    """The request does not make sense."""

    code = "bad_request"


class NotFound(Refused):
    """No such tool, desktop or stream."""

    code = "not_found"


class Unauthorised(Refused):
    """No valid credential."""

    code = "unauthorised"


class AlreadyRunning(Refused):
    """Another process owns the data directory or the port."""

    code = "already_running"


class CallCancelled(Refused):
    """Somebody stopped the call before it ended."""

    code = "cancelled"


class RuntimeDirUnusable(Refused):
    """The directory for sockets can't be used."""

    code = "runtime_dir_unusable"


class Unavailable(AgentError):
    """May work later."""

    code = "unavailable"


class ShuttingDown(Unavailable):
    """The daemon is on its way out."""

    code = "shutting_down"


class NotRunning(Unavailable):
    """No daemon answers."""

    code = "not_running"


class OutcomeUnknown(Unavailable):
    """The call may have run in an earlier life of the daemon; it is not run again."""

    code = "outcome_unknown"
