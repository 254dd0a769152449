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
        DataDirUnusable
        FileRefused
        CommandRefused
        TooMany
        ControlHeld
        NotInControl
        DesktopBusy
    Unavailable
        ShuttingDown
        NotRunning
        OutcomeUnknown
        LedgerFailed
"""

__all__ = [
    "AgentError",
    "AlreadyRunning",
    "BadRequest",
    "CallCancelled",
    "CommandRefused",
    "ControlHeld",
    "DataDirUnusable",
    "DesktopBusy",
    "FileRefused",
    "LedgerFailed",
    "NotFound",
    "NotInControl",
    "NotRunning",
    "OutcomeUnknown",
    "Refused",
    "RuntimeDirUnusable",
    "ShuttingDown",
    "TooMany",
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


class FileRefused(Refused):
    """A file that can't be read or written; nothing was changed."""

    code = "file_refused"


class CommandRefused(Refused):
    """A command that can't be started, or a process that can't be reached."""

    code = "command_refused"


class DataDirUnusable(Refused):
    """The directory for what outlives the daemon can't be used."""

    code = "data_dir_unusable"


class TooMany(Refused):
    """A limit is reached; something must end first."""

    code = "too_many"


class ControlHeld(Refused):
    """Another person has control of the desktop."""

    code = "control_held"


class NotInControl(Refused):
    """Somebody who has no control wanted to give it back."""

    code = "not_in_control"


class DesktopBusy(Refused):
    """Another agent works at the desktop, and was not done in time."""

    code = "desktop_busy"


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


class LedgerFailed(Unavailable):
    """The call can't be written down, so it is not run."""

    code = "ledger_failed"
