"""Pure: whom a provider's claims name, by the names that the settings give them."""

from collections.abc import Mapping
from dataclasses import dataclass

from chatd.errors import SignInRefused
from chatd.store.identities import Person

__all__ = ["ClaimNames", "lacks", "read_person"]

# OpenID Connect Core 1.0, 2: at most 255 ASCII characters.
MAX_SUBJECT = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNames:
    """Which claims are read, and the group that administers; None: no group does."""

    name: str
    groups: str
    admin_group: str | None = None


def lacks(claims: Mapping[str, object], names: ClaimNames) -> bool:
    """Whether a claim that is needed is not there: many providers keep some for the userinfo endpoint."""
    return names.name not in claims or (names.admin_group is not None and names.groups not in claims)


def read_person(claims: Mapping[str, object], issuer: str, names: ClaimNames) -> Person:
    """
    Whom verified *claims* name.

    Raises:
        SignInRefused: they name nobody, or by an address that the provider did not verify.
    """
    subject = claims.get("sub")
    if not _is_subject(subject):
        raise SignInRefused("The provider does not say who you are.", reason="subject")
    name = claims.get(names.name)
    if names.name == "email" and claims.get("email_verified") is not True:
        text = "The provider has not verified your address; do that there, then log in once more."
        raise SignInRefused(text, reason="unverified", subject=str(subject))
    is_admin = None if names.admin_group is None else names.admin_group in _texts(claims.get(names.groups))
    shown = name if isinstance(name, str) else None
    return Person(issuer=issuer, subject=str(subject), name=shown, is_admin=is_admin)


def _is_subject(value: object) -> bool:
    return (
        isinstance(value, str) and 1 <= len(value) <= MAX_SUBJECT and value.isascii() and value.isprintable()
    )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
