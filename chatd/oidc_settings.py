"""Settings of the login by OpenID Connect; part of ``chatd.settings``."""

import ipaddress
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

__all__ = ["OidcSettings", "is_safe_url"]

# What has no meaning without an issuer.
_DEPENDENT = ("oidc_client_id", "oidc_client_secret", "oidc_admin_group", "oidc_creates_users", "oidc_label")


class OidcSettings(BaseSettings):
    """
    Where people come from, and who of them may.

    Raises:
        ValueError: the settings do not belong together.
    """

    public_url: str | None = Field(
        default=None,
        description="Where people reach this deployment, https://host or https://host/prefix; http only on "
        "loopback. Login by OpenID Connect returns there, whatever a request says of its host.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="The OpenID provider people log in with, as its discovery document names it; none: no "
        "such login.",
    )
    oidc_client_id: str | None = Field(default=None, min_length=1, description="Our name at the provider.")
    oidc_client_secret: SecretStr | None = Field(
        default=None, repr=False, description="Our secret at the provider; none: a public client, by PKCE."
    )
    oidc_scopes: str = Field(
        default="openid profile email", description="What is asked for, with spaces; openid is among it."
    )
    oidc_name_claim: str = Field(
        default="preferred_username",
        min_length=1,
        description="The claim that is the user's name here at the first login; one that people can't "
        "choose freely at the provider. email counts only where the provider has verified it.",
    )
    oidc_groups_claim: str = Field(
        default="groups", min_length=1, description="The claim that lists a person's groups."
    )
    oidc_admin_group: str | None = Field(
        default=None, min_length=1, description="Its members administer; looked at with each login."
    )
    oidc_creates_users: bool = Field(
        default=False, description="Make users of whom nobody has heard; else an administrator adds them."
    )
    oidc_label: str | None = Field(
        default=None, max_length=60, description='The button says "Sign in with …"; none: the issuer\'s host.'
    )

    @field_validator("public_url")
    @classmethod
    def _public(cls, url: str | None) -> str | None:
        if url is not None and not is_safe_url(url, is_local=True):
            msg = "https://host or https://host/prefix (http only on loopback), without query"
            raise ValueError(msg)
        return url and url.rstrip("/")

    @field_validator("oidc_issuer")
    @classmethod
    def _issuer(cls, url: str | None) -> str | None:
        if url is not None and not is_safe_url(url, is_local=True):
            msg = "an https URL (http only on loopback) without query, as the provider spells it"
            raise ValueError(msg)
        return url

    @field_validator("oidc_scopes")
    @classmethod
    def _openid(cls, scopes: str) -> str:
        if "openid" not in scopes.split():
            msg = "openid is missing, without which it is no login"
            raise ValueError(msg)
        return " ".join(scopes.split())

    @model_validator(mode="after")
    def _whole(self) -> "OidcSettings":
        if self.oidc_issuer is None:
            given = [name for name in _DEPENDENT if getattr(self, name)]
            if given:
                msg = f"{given[0]} is given without oidc_issuer"
                raise ValueError(msg)
            return self
        missing = [name for name in ("oidc_client_id", "public_url") if not getattr(self, name)]
        if missing:
            msg = f"oidc_issuer needs {missing[0]} besides"
            raise ValueError(msg)
        return self

    @property
    def oidc_title(self) -> str:
        """What the button calls the provider."""
        return self.oidc_label or urlsplit(self.oidc_issuer or "").hostname or ""


def is_safe_url(url: str, *, is_local: bool, has_query: bool = False) -> bool:
    """
    Whether *url* may be trusted with a login: HTTPS, or HTTP that stays on this machine.

    Args:
        url: without user and fragment, else it is not.
        is_local: HTTP on loopback will do.
        has_query: a query will do.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_plain = not (parts.fragment or parts.username or parts.password) and (has_query or "?" not in url)
    if not parts.hostname or not is_plain or not url.isprintable() or " " in url or port == 0:
        return False
    if parts.scheme == "https":
        return True
    return parts.scheme == "http" and is_local and _is_loopback(parts.hostname)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
