"""Settings of the login by OpenID Connect: what belongs together, and which addresses are trusted."""

import pytest
from pydantic import ValidationError

from chatd.oidc_settings import OidcSettings, is_safe_url

WHOLE = {
    "public_url": "https://chats.example",
    "oidc_issuer": "https://id.example/",
    "oidc_client_id": "chatd",
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PUBLIC_URL", "OIDC_ISSUER", "OIDC_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "is_local", "is_safe"),
    [
        ("https://id.example", False, True),
        ("https://id.example:8443/realms/x", False, True),
        ("http://127.0.0.1:9400", True, True),
        ("http://localhost/x", True, True),
        ("http://[::1]:80", True, True),
        ("http://127.0.0.1:9400", False, False),
        ("http://id.example", True, False),
        ("http://localhost.evil.example", True, False),
        ("https://id.example/?a=b", False, False),
        ("https://id.example?", False, False),
        ("https://id.example/#x", False, False),
        ("https://user:pass@id.example", False, False),
        ("https://user@id.example", False, False),
        ("https://id.example:0", False, False),
        ("https://id.example:x", False, False),
        ("https://id.example:99999", False, False),
        ("https://[::1", False, False),
        ("https://", False, False),
        ("https://a b", False, False),
        ("https://id.example/\u202e", False, False),
        ("ftp://id.example", True, False),
        ("javascript:alert(1)", True, False),
        ("", True, False),
    ],
)
def test_a_login_goes_over_https_or_stays_here(url: str, *, is_local: bool, is_safe: bool) -> None:
    """Ours: also what a discovery document names."""
    assert is_safe_url(url, is_local=is_local) is is_safe


def test_endpoints_may_have_a_query() -> None:
    """RFC 6749, 3.1; an issuer may not: Discovery 1.0, 3."""
    assert is_safe_url("https://id.example/authorize?p=x", is_local=False, has_query=True)
    assert not is_safe_url("https://u@id.example/authorize?p=x", is_local=False, has_query=True)


def test_what_belongs_together_is_taken() -> None:
    """Ours: the issuer is kept as the provider spells it, the other without its last slash."""
    found = OidcSettings.model_validate(WHOLE | {"public_url": "https://chats.example/team/"})

    assert (found.oidc_issuer, found.public_url) == ("https://id.example/", "https://chats.example/team")
    assert found.oidc_title == "id.example"
    assert OidcSettings.model_validate(WHOLE | {"oidc_label": "Example"}).oidc_title == "Example"
    assert OidcSettings.model_validate({"public_url": "https://chats.example"}).oidc_issuer is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"oidc_client_id": None}, "oidc_client_id"),
        ({"public_url": None}, "public_url"),
        ({"oidc_issuer": None}, "without oidc_issuer"),
        ({"oidc_issuer": "http://id.example"}, "https"),
        ({"oidc_issuer": "https://id.example?x=1"}, "query"),
        ({"public_url": "http://chats.example"}, "https"),
        ({"public_url": "chats.example"}, "https"),
        ({"oidc_scopes": "profile"}, "openid"),
        ({"oidc_name_claim": ""}, "oidc_name_claim"),
        ({"oidc_admin_group": ""}, "oidc_admin_group"),
        ({"oidc_label": "x" * 61}, "oidc_label"),
    ],
)
def test_what_does_not_belong_together_is_named(change: dict[str, str | None], says: str) -> None:
    """Ours: at the start, and by --check-config."""
    with pytest.raises(ValidationError, match=says):
        OidcSettings.model_validate(WHOLE | change)


def test_the_secret_is_not_shown() -> None:
    """Ours: a line of a log shows settings."""
    assert "hunter2" not in repr(OidcSettings.model_validate(WHOLE | {"oidc_client_secret": "hunter2"}))
