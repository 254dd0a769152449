"""
Errors of the control plane.

ChatdError
    Refused
        TransitionNotAllowed
        InvalidState
        QueueFull
        LeaseLost
        NotFound
        BadRequest
        Unauthorised
        Forbidden
    Unavailable
        AgentUnavailable
    PeerError
        ProviderFault
    Misuse
"""

from dataclasses import dataclass

__all__ = [
    "AgentUnavailable",
    "BadRequest",
    "ChatdError",
    "Forbidden",
    "InvalidState",
    "LeaseLost",
    "Misuse",
    "NotFound",
    "PeerError",
    "ProviderFault",
    "QueueFull",
    "Refused",
    "TransitionNotAllowed",
    "Unauthorised",
    "Unavailable",
]


@dataclass(eq=False)
class ChatdError(Exception):
    """Something chatd could not do; *user_text* may be shown to a person."""

    user_text: str = ""
    code = "error"

    def __str__(self) -> str:
        return self.user_text or self.code


class Refused(ChatdError):
    """Our rule said no."""

    code = "refused"


class Unavailable(ChatdError):
    """May work later."""

    code = "unavailable"


class PeerError(ChatdError):
    """The other side misbehaved."""

    code = "peer_error"


class Misuse(ChatdError, RuntimeError):
    """Our bug."""

    code = "misuse"


class TransitionNotAllowed(Refused):
    """The chat's state does not allow this transition."""

    code = "transition_not_allowed"


class InvalidState(Refused):
    """The chat's row is in no known state."""

    code = "invalid_state"


class QueueFull(Refused):
    """Too many messages wait."""

    code = "queue_full"


class LeaseLost(Refused):
    """Another runner owns the chat, or its history moved on."""

    code = "lease_lost"


class NotFound(Refused):
    """No such thing, or not yours."""

    code = "not_found"


class BadRequest(Refused):
    """The request does not make sense."""

    code = "bad_request"


class Unauthorised(Refused):
    """No valid credential."""

    code = "unauthorised"


class Forbidden(Refused):
    """A valid credential without this right."""

    code = "forbidden"


class AgentUnavailable(Unavailable):
    """The workspace's daemon is not connected, or did not answer."""

    code = "agent_unavailable"


@dataclass(eq=False)
class ProviderFault(PeerError):
    """
    A model call failed.

    *detail* is the vendor's own words, redacted and at most 500 characters.
    *retry_after_s* is the vendor's hint, 0 when it gave none.
    """

    kind: str = "generic"
    provider: str = ""
    retryable: bool = False
    status_code: int | None = None
    retry_after_s: float = 0.0
    detail: str | None = None
    code = "provider_fault"
