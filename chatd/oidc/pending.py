"""
A login that is under way, as the browser carries it: sealed, for one try, for some minutes.

Any replica that has the same keys can go on with it; nothing is remembered between the two requests.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from chatd.errors import SignInRefused
from chatd.sealing import SealBroken, Sealer

__all__ = ["LIFETIME", "PendingLogin", "begin_login", "open_login", "seal_login"]

# How long somebody may take at the provider.
LIFETIME = timedelta(minutes=10)
# Characters of what a browser sends back; ours are some 600.
MAX_SEALED = 2000
AGAIN = "This login was not begun in this browser, or took too long; log in once more."


class PendingLogin(BaseModel):
    """What the answer of the provider is held against."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Other secrets are sealed with the same keys.
    purpose: Literal["oidc-login"] = "oidc-login"
    issuer: str
    state: str
    nonce: str
    # Of PKCE; RFC 7636, 4.1: 43 to 128 characters.
    verifier: str
    ends_at: AwareDatetime

    @property
    def login_id(self) -> UUID:
        """Its id: the session's, so that there is one at most."""
        return UUID(bytes=hashlib.sha256(self.nonce.encode()).digest()[:16])


def begin_login(issuer: str, *, now: datetime) -> PendingLogin:
    """A new one."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return PendingLogin(issuer=issuer, state=state, nonce=nonce, verifier=verifier, ends_at=now + LIFETIME)


def seal_login(pending: PendingLogin, sealer: Sealer) -> str:
    """What the browser gets."""
    return sealer.seal(pending.model_dump_json()).decode()


def open_login(sealed: str, state: str, issuer: str, sealer: Sealer, *, now: datetime) -> PendingLogin:
    """
    The login that the browser carries, if it is the one that the provider answers.

    Raises:
        SignInRefused: there is none, another's answer came, or it is too late.
    """
    try:
        if not sealed.isascii() or len(sealed) > MAX_SEALED:
            raise SignInRefused(AGAIN, reason="cookie")
        pending = PendingLogin.model_validate_json(sealer.open(sealed.encode()))
    except (SealBroken, ValidationError):
        raise SignInRefused(AGAIN, reason="cookie") from None
    if not secrets.compare_digest(pending.state.encode(), state.encode(errors="replace")):
        raise SignInRefused(AGAIN, reason="state")
    if pending.ends_at <= now or pending.issuer != issuer:
        raise SignInRefused(AGAIN, reason="late")
    return pending
