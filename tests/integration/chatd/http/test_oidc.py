"""Login by OpenID Connect, from a browser's side, with a certified provider and with one that can lie."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chatd.scopes import Role
from chatd.store import users
from tests.integration.chatd.http.site import API, Site, bearer, serving
from tests.support.oidc_provider import CLIENT, SECRET, OidcProvider, certified, lying

Provider = OidcProvider
KINDS = {"certified": certified, "lying": lying}


class Browser:
    """Cookies, and nothing else that a browser has."""

    def __init__(self, site: Site, provider: Provider) -> None:
        self.site, self.provider = site, provider
        self.cookies: dict[str, str] = {}
        self.page = ""

    async def get(self, url: str, **headers: str) -> tuple[int, str]:
        """Status of an answer, and where it leads."""
        carried = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Cookie": carried} | headers
        async with self.site.http.get(url, headers=sent, allow_redirects=False) as answer:
            self.page = await answer.text()
            for line in answer.headers.getall("Set-Cookie", []):
                for name, cookie in SimpleCookie(line).items():
                    self.cookies[name] = cookie.value
                    if not cookie.value or cookie["max-age"] == "0":
                        del self.cookies[name]
            return answer.status, answer.headers.get("Location", "")

    async def begin(self) -> str:
        """Where the provider's page is."""
        status, url = await self.get("/login/oidc")
        assert status == 303, self.page
        return url

    async def log_in(self, name: str, *groups: str) -> tuple[int, str]:
        """The whole way."""
        return await self.get(await self.provider.log_in(await self.begin(), name, *groups))

    async def me(self) -> Any:
        """Who is logged in."""
        cookie = f"agentd_session={self.cookies['agentd_session']}"
        async with self.site.http.get(f"{API}/me", headers={"Cookie": cookie}) as answer:
            return (await answer.json())["user"]


async def audit(site: Site, *actions: str) -> list[dict[str, Any]]:
    """Entries of these actions, the oldest first."""
    await site.store.write(users.set_role, "me", Role.ADMIN)
    found = await site.ask("GET", "/audit")
    return [entry for entry in reversed(found) if entry["action"] in actions]


@asynccontextmanager
async def deployment(
    path: Path, kind: str, *, tls: ssl.SSLContext | None = None, **settings: Any
) -> AsyncIterator[tuple[Site, Any]]:
    """A control plane that people log in to with a provider."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        public_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        place = f"{public_url}/login/oidc/callback"
        async with lying(place, tls) if tls else KINDS[kind](place) as provider:
            wish = {
                "public_url": public_url,
                "oidc_issuer": provider.issuer,
                "oidc_client_id": CLIENT,
                "oidc_client_secret": SECRET,
            }
            async with serving(path / "data", listener=listener, **(wish | settings)) as site:
                yield site, provider


@pytest.fixture(params=KINDS)
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser at each kind of provider; ``admins`` of it administer."""
    async with deployment(tmp_path, request.param, oidc_admin_group="admins") as (site, provider):
        yield Browser(site, provider)


async def add(site: Site, name: str, role: Role = Role.MEMBER) -> None:
    """A user who has not been in yet."""
    await site.store.write(users.create_user, name, role, now=site.store.now())


async def test_who_was_added_comes_in_by_the_provider(both: Browser) -> None:
    """Issue 10: the code flow with PKCE, state and nonce ends in the session of a one-time URL."""
    await add(both.site, "ann")
    url = await both.begin()
    status, place = await both.get(await both.provider.log_in(url, "ann"))

    asked = parse_qs(urlsplit(url).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["openid profile email"]
    assert (status, place) == (303, "../../")
    assert set(both.cookies) == {"agentd_session"}
    assert (await both.me())["name"] == "ann"


async def test_the_same_person_is_the_same_user_under_another_name(both: Browser) -> None:
    """Ours: tied by issuer and subject; a user's new name, here or there, changes nothing."""
    await add(both.site, "ann")
    await both.log_in("ann")
    first = await both.me()
    both.cookies.clear()
    status, _ = await both.log_in("ann")

    assert status == 303
    assert (await both.me())["id"] == first["id"]
    assert [entry["target"] for entry in await audit(both.site, "identity_tied")] == ["ann"]
    assert [entry["actor"] for entry in await audit(both.site, "login")] == ["ann", "ann"]


async def test_members_of_the_group_administer_until_they_leave_it(both: Browser) -> None:
    """Ours: the provider's group gives the role, and takes what it gave, at the next login."""
    await add(both.site, "ann")
    await both.log_in("ann", "staff", "admins")
    inside = (await both.me())["is_admin"]
    await both.site.store.write(users.set_role, "me", Role.ADMIN)
    status, _ = await both.log_in("ann", "staff")

    assert status == 303
    assert (inside, (await both.me())["is_admin"]) == (True, False)
    changed = await audit(both.site, "role_changed")
    assert [entry["details"]["role"] for entry in changed] == ["admin", "member"]


async def test_who_is_not_known_is_told_who_can_help(both: Browser) -> None:
    """Ours: no user is made unless the settings say so."""
    status, _ = await both.log_in("zoe")

    assert status == 401
    assert "an administrator adds you" in both.page
    assert both.cookies == {}
    (entry,) = await audit(both.site, "login_failed")
    assert (entry["target"], entry["details"]["reason"]) == ("zoe", "unknown")


@pytest.mark.parametrize("kind", KINDS)
async def test_users_are_made_where_the_settings_say_so(tmp_path: Path, kind: str) -> None:
    """Ours: members, except by the group."""
    async with deployment(tmp_path, kind, oidc_creates_users=True) as (site, provider):
        browser = Browser(site, provider)
        status, _ = await browser.log_in("zoe")

        assert status == 303
        assert (await browser.me())["is_admin"] is False
        assert [entry["target"] for entry in await audit(site, "user_made")] == ["zoe"]


async def test_without_a_provider_there_is_no_such_login(site: Site) -> None:
    """Ours: 404, and the page is told that there is none."""
    assert await site.status("GET", "/login/oidc", {}) == 404
    assert await site.status("GET", "/login/oidc/callback?code=x&state=y", {}) == 404
    async with site.http.get("/login/methods") as answer:
        assert await answer.json() == {"oidc": None}


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser at the provider that can be told to lie."""
    async with deployment(tmp_path, "lying", oidc_label="Example") as (site, provider):
        yield Browser(site, provider)


async def test_the_page_is_told_of_the_provider(browser: Browser) -> None:
    """Ours: the button leads to the one address that the provider returns to."""
    async with browser.site.http.get("/login/methods") as answer:
        told = await answer.json()

    assert told == {"oidc": {"url": f"{browser.site.plane.url}/login/oidc", "title": "Example"}}


@pytest.mark.parametrize("algorithm", ["ES256", "Ed25519"])
async def test_other_kinds_of_keys_are_taken(browser: Browser, algorithm: str) -> None:
    """Ours: not RSA alone."""
    browser.provider.use_key(algorithm)  # type: ignore[attr-defined]
    await add(browser.site, "ann")

    assert (await browser.log_in("ann"))[0] == 303


async def test_claims_are_also_taken_from_the_userinfo_endpoint(browser: Browser) -> None:
    """Core 1.0, 5.4: of scopes a provider may tell there alone."""
    browser.provider.tells_name = False  # type: ignore[attr-defined]
    await add(browser.site, "ann")

    assert (await browser.log_in("ann"))[0] == 303


async def test_a_user_who_was_here_is_tied_in_a_browser_that_is_logged_in(browser: Browser) -> None:
    """Ours: so that whoever worked here before keeps their chats, administrators included."""
    status, _ = await browser.log_in("owner")
    refused = browser.page
    browser.cookies["agentd_session"] = await browser.site.issue("session", "owner")
    again, _ = await browser.log_in("owner")
    browser.cookies.clear()

    assert (status, again) == (401, 303)
    assert "one-time URL" in refused
    assert (await browser.log_in("owner"))[0] == 303
    assert (await browser.me())["id"] == str(browser.site.ids["owner"])


async def test_what_was_tied_is_forgotten_by_an_administrator(browser: Browser) -> None:
    """Ours: a provider that was set up anew knows people under other subjects."""
    await add(browser.site, "ann")
    await browser.log_in("ann")
    browser.provider.change["sub"] = "other"  # type: ignore[attr-defined]
    taken, _ = await browser.log_in("ann")
    told = browser.page
    browser.cookies["agentd_session"] = await _session_of(browser.site, "ann")
    untied = f"{API}/users/ann/identities"
    member = await browser.site.status("DELETE", untied, bearer(browser.site.tokens["other"]))
    await browser.site.store.write(users.set_role, "me", Role.ADMIN)
    admin = await browser.site.status("DELETE", untied, bearer(browser.site.tokens["me"]))

    assert (member, admin) == (403, 204)
    assert [entry["target"] for entry in await audit(browser.site, "identity_untied")] == ["ann"]
    assert taken == 401
    assert "chatd users untie" in told
    assert (await browser.log_in("ann"))[0] == 303


async def _session_of(site: Site, name: str) -> str:
    site.ids[name] = (await site.store.read(users.find_user, name))["id"]
    return await site.issue("session", name)


async def test_keys_that_were_replaced_are_looked_up(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Core 1.0, 10.1.1: an unknown key id has the key set read again."""
    monkeypatch.setattr("chatd.oidc.provider.ANEW_S", 0.0)
    await add(browser.site, "ann")
    await browser.log_in("ann")
    browser.provider.use_key("ES256")  # type: ignore[attr-defined]

    assert (await browser.log_in("ann"))[0] == 303


async def test_a_wrong_secret_is_for_operators(tmp_path: Path) -> None:
    """Ours: who logs in can't help it; the audit log has the provider's word."""
    async with deployment(tmp_path, "certified", oidc_client_secret="wrong") as (site, provider):
        await add(site, "ann")
        browser = Browser(site, provider)
        status, _ = await browser.log_in("ann")

        assert status == 502
        assert "tell an administrator" in browser.page
        (entry,) = await audit(site, "login_failed")
        assert (entry["details"]["reason"], entry["details"]["detail"]) == ("client", "invalid_client")


async def test_endpoints_may_have_a_query(browser: Browser) -> None:
    """RFC 6749, 3.1: it is kept."""
    liar = browser.provider
    liar.document["authorization_endpoint"] = f"{liar.issuer}/authorize?p=policy"  # type: ignore[attr-defined]
    liar.document["token_endpoint"] = f"{liar.issuer}/token?p=policy"  # type: ignore[attr-defined]
    await add(browser.site, "ann")
    url = await browser.begin()

    assert parse_qs(urlsplit(url).query)["p"] == ["policy"]
    assert (await browser.get(await liar.log_in(url, "ann")))[0] == 303


async def test_an_ended_session_does_not_hold_up_the_login(browser: Browser) -> None:
    """Ours: a stale cookie is no reason to refuse."""
    await add(browser.site, "ann")
    browser.cookies["agentd_session"] = "session_old"

    assert (await browser.log_in("ann"))[0] == 303


async def test_bearer_tokens_work_beside_it(browser: Browser) -> None:
    """Ours: programs and one-time URLs stay as they were."""
    link = (await browser.site.ask("POST", "/login-tokens", status=201))["path"]

    assert await browser.site.status("GET", link, {}) == 303
    assert await browser.site.status("GET", f"{API}/me", bearer(browser.site.tokens["me"])) == 200
