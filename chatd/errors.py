"""
Errors of the control plane.

ChatdError
    Refused
        TransitionNotAllowed
        InvalidState
        QueueFull
            TooManyRequests
        LeaseLost
        UsageLimitReached
        KeyReused
        LastAdmin
        NotFound
        BadRequest
            ResultsMismatch
            TooLarge
            ModelGone
        Unauthorised
            SignInRefused
        Forbidden
            AdminOnly
        ControlHeld
        NotInControl
    Unavailable
        AgentUnavailable
        NoModel
    PeerError
        ProviderFault
        SignInFailed
    Misuse
"""

from dataclasses import dataclass

__all__ = [
    "AdminOnly",
    "AgentUnavailable",
    "BadRequest",
    "ChatdError",
    "ControlHeld",
    "Forbidden",
    "InvalidState",
    "KeyReused",
    "LastAdmin",
    "LeaseLost",
    "Misuse",
    "ModelGone",
    "NoModel",
    "NotFound",
    "NotInControl",
    "PeerError",
    "ProviderFault",
    "QueueFull",
    "Refused",
    "ResultsMismatch",
    "SignInFailed",
    "SignInRefused",
    "TooLarge",
    "TooManyRequests",
    "TransitionNotAllowed",
    "Unauthorised",
    "Unavailable",
    "UsageLimitReached",
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


@dataclass(eq=False)
class TooManyRequests(QueueFull):
    """More requests than the caller may make; another one may come after *retry_after_s*."""

    retry_after_s: float = 1.0
    code = "too_many_requests"


class LastAdmin(Refused):
    """Nobody could administer the deployment any more."""

    code = "last_admin"


class LeaseLost(Refused):
    """Another runner owns the chat, or its history moved on."""

    code = "lease_lost"


class NotFound(Refused):
    """No such thing, or not yours."""

    code = "not_found"


class BadRequest(Refused):
    """The request does not make sense."""

    code = "bad_request"


class ResultsMismatch(BadRequest):
    """The client's results are not those that its calls wait for."""

    code = "results_mismatch"


class TooLarge(BadRequest):
    """More bytes than we take."""

    code = "too_large"


class ModelGone(BadRequest):
    """A chat's model is not offered any more: its key is gone."""

    code = "model_gone"


@dataclass(eq=False)
class UsageLimitReached(Refused):
    """The user's spending limit of this period is used up; amounts in millionths of a dollar."""

    spent_micros: int = 0
    limit_micros: int = 0
    resets_at: str = ""
    code = "usage_limit"


class KeyReused(Refused):
    """An idempotency key that stands for another request."""

    code = "idempotency_key_reused"


class Unauthorised(Refused):
    """No valid credential."""

    code = "unauthorised"


@dataclass(eq=False)
class SignInRefused(Unauthorised):
    """
    Somebody whom a provider knows does not come in.

    *reason* is a stable word, *detail* is for operators; *subject* and *name* are the provider's, as far as
    they are known.
    """

    reason: str = ""
    detail: str = ""
    subject: str = ""
    name: str = ""
    code = "sign_in_refused"


class Forbidden(Refused):
    """A valid credential without this right."""

    code = "forbidden"


class AdminOnly(Forbidden):
    """A right of administrators."""

    code = "admin_only"


class ControlHeld(Refused):
    """Another person has control of the desktop."""

    code = "control_held"


class NotInControl(Refused):
    """Somebody who has no control wanted to give it back."""

    code = "not_in_control"


class AgentUnavailable(Unavailable):
    """The workspace's daemon is not connected, or did not answer."""

    code = "agent_unavailable"


class NoModel(Unavailable):
    """No model could answer."""

    code = "no_model"


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


@dataclass(eq=False)
class SignInFailed(PeerError):
    """A provider did not do what a login needs; *reason* is a stable word, *detail* is for operators."""

    reason: str = ""
    detail: str = ""
    code = "sign_in_failed"
