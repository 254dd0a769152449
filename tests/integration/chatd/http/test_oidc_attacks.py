"""Attacks on the login by OpenID Connect: foreign answers, tokens that lie, providers that misbehave."""

import asyncio
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from chatd.oidc.fetching import tls_context
from chatd.scopes import Role
from chatd.store import users
from tests.integration.chatd.http.site import API, Site
from tests.integration.chatd.http.test_oidc import Browser, add, audit, deployment
from tests.support.certificates import Authority, self_signed
from tests.support.oidc_provider import SECRET, Claims, LyingProvider, unsigned

pytestmark = pytest.mark.attack
SECRETS = (SECRET, "code=", "eyJ")


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser, whose user ``ann`` was added."""
    async with deployment(tmp_path, "lying") as (site, provider):
        await add(site, "ann")
        yield Browser(site, provider)


def liar(browser: Browser) -> LyingProvider:
    """Its provider."""
    assert isinstance(browser.provider, LyingProvider)
    return browser.provider


async def reasons(site: Site) -> list[str]:
    """Why logins were refused, as the audit log has it; no secret is in there."""
    entries = await audit(site, "login_failed")
    told = json.dumps(entries)
    assert not [secret for secret in SECRETS if secret in told]
    return [entry["details"]["reason"] for entry in entries]


async def test_an_answer_counts_in_the_browser_that_began_alone(browser: Browser) -> None:
    """Login CSRF: another's answer, an answer without a login, and one that answers another login."""
    other = Browser(browser.site, browser.provider)
    theirs = await liar(browser).log_in(await other.begin(), "ann")
    bare, _ = await browser.get(theirs)
    await browser.begin()
    carried = dict(browser.cookies)
    foreign, _ = await browser.get(theirs)

    assert (bare, foreign) == (401, 401)
    # The login that the browser began goes on.
    assert browser.cookies == carried
    assert await reasons(browser.site) == ["cookie", "state"]
    assert "/token" not in liar(browser).asked


@pytest.mark.parametrize("state", ["", "x", "\udcff", "é" * 50])
async def test_a_state_that_was_made_up_is_refused(browser: Browser, state: str) -> None:
    """Ours: whatever stands in it."""
    await browser.begin()
    query = urlencode({"code": "c", "state": state}, errors="surrogateescape")

    assert (await browser.get(f"/login/oidc/callback?{query}"))[0] == 401
    assert await reasons(browser.site) == ["state"]


@pytest.mark.parametrize("carried", ["", "x", "x" * 3000, "gAAAAABmade-up"])
async def test_what_a_browser_carries_is_ours_or_nothing(browser: Browser, carried: str) -> None:
    """Ours: it is sealed."""
    back = await liar(browser).log_in(await browser.begin(), "ann")
    browser.cookies["agentd_oidc"] = carried

    assert (await browser.get(back))[0] == 401
    assert await reasons(browser.site) == ["cookie"]


async def test_another_secret_is_no_login(browser: Browser) -> None:
    """Ours: the same keys seal headers of MCP servers; one is not taken for the other."""
    back = await liar(browser).log_in(await browser.begin(), "ann")
    sealer = browser.site.plane.services.sealer
    browser.cookies["agentd_oidc"] = sealer.seal('{"Authorization": "Bearer x"}').decode()

    assert (await browser.get(back))[0] == 401


async def test_a_login_that_took_too_long_is_over(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: ten minutes."""
    monkeypatch.setattr("chatd.oidc.pending.LIFETIME", timedelta(seconds=-1))
    back = await liar(browser).log_in(await browser.begin(), "ann")

    assert (await browser.get(back))[0] == 401
    assert await reasons(browser.site) == ["late"]


@pytest.mark.parametrize("reuses_codes", [False, True])
async def test_an_answer_works_once(browser: Browser, *, reuses_codes: bool) -> None:
    """Replay: with all that the browser had, also where the provider takes a code twice."""
    liar(browser).reuses_codes = reuses_codes
    back = await liar(browser).log_in(await browser.begin(), "ann")
    kept = dict(browser.cookies)
    first, _ = await browser.get(back)
    browser.cookies = kept
    again, _ = await browser.get(back)

    assert (first, again) == (303, 401)
    assert "agentd_session" not in browser.cookies
    assert await reasons(browser.site) == ["used" if reuses_codes else "code"]


async def test_of_two_at_once_one_comes_in(browser: Browser) -> None:
    """Replay: at the same moment."""
    liar(browser).reuses_codes = True
    await browser.log_in("ann")
    back = await liar(browser).log_in(await browser.begin(), "ann")
    twins = [Browser(browser.site, browser.provider) for _ in range(5)]
    for twin in twins:
        twin.cookies = dict(browser.cookies)
    found = await asyncio.gather(*(twin.get(back) for twin in twins))

    assert sorted(status for status, _ in found) == [303, 401, 401, 401, 401]


async def test_a_code_of_another_login_is_refused(browser: Browser) -> None:
    """Code injection: the verifier of PKCE is of one login."""
    other = Browser(browser.site, browser.provider)
    theirs = parse_qs(urlsplit(await liar(browser).log_in(await other.begin(), "ann")).query)
    own = parse_qs(urlsplit(await browser.begin()).query)
    query = urlencode({"code": theirs["code"][0], "state": own["state"][0]})

    assert (await browser.get(f"/login/oidc/callback?{query}"))[0] == 401
    assert await reasons(browser.site) == ["code"]


def wrong(**claims: Any) -> Callable[[LyingProvider], None]:
    """Claims that are signed as they should be."""

    def lie(provider: LyingProvider) -> None:
        provider.change = claims

    return lie


def forged(make: Callable[[LyingProvider, Claims], str]) -> Callable[[LyingProvider], None]:
    """Tokens that are not."""

    def lie(provider: LyingProvider) -> None:
        provider.forge = lambda claims: make(provider, claims)

    return lie


def by_public_key(provider: LyingProvider, claims: Claims) -> str:
    """HS256 with what everybody knows as its secret, by hand: libraries refuse to."""
    public = provider.key.as_pem(private=False)
    head = {"alg": "HS256", "kid": "k1"}
    signed = unsigned(claims, head).rpartition(".")[0]
    return unsigned(claims, head, hmac.digest(public, signed.encode(), hashlib.sha256))


def by_client_secret(_: LyingProvider, claims: Claims) -> str:
    """HS256 with the client's secret."""
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET * 2), algorithms=["HS256"])


def by_stranger(provider: LyingProvider, claims: Claims) -> str:
    """Another's key under the known id."""
    return provider.sign(claims, RSAKey.generate_key(2048, {"kid": "k1"}))


def by_own_header(provider: LyingProvider, claims: Claims) -> str:
    """A key that the token brings along."""
    stranger = RSAKey.generate_key(2048, {"kid": "k1"})
    head = {"alg": "RS256", "kid": "k1", "jwk": stranger.as_dict(private=False)}
    return jwt.encode(head, claims, stranger, algorithms=["RS256"])


LIES = {
    "foreign nonce": wrong(nonce="of another login"),
    "no nonce": wrong(nonce=None),
    "wrong audience": wrong(aud="another client"),
    "audience of several without azp": wrong(aud=["chatd", "another"]),
    "for another by azp": wrong(azp="another"),
    "wrong issuer": wrong(iss="https://evil.example"),
    "expired": wrong(exp=int(time.time()) - 3600),
    "never expires": wrong(exp=None),
    "expires at no number": wrong(exp="2999"),
    "of the future": wrong(iat=int(time.time()) + 3600),
    "no subject": wrong(sub=None),
    "subject is no text": wrong(sub=7),
    "empty subject": wrong(sub=""),
    "subject that can't be shown": wrong(sub="a\u202eb"),
    "wrong at_hash": wrong(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "alg none": forged(lambda _, claims: unsigned(claims, {"alg": "none"})),
    "alg None": forged(lambda _, claims: unsigned(claims, {"alg": "None", "kid": "k1"})),
    "HS256 by the public key": forged(by_public_key),
    "HS256 by the client's secret": forged(by_client_secret),
    "unknown key id": forged(lambda self, claims: self.sign(claims, kid="k9")),
    "another's key": forged(by_stranger),
    "a key that it brings along": forged(by_own_header),
    "unknown critical header": forged(lambda self, claims: self.sign_raw(claims, crit=["x"], x=1)),
    "signature cut off": forged(lambda self, claims: self.sign(claims).rpartition(".")[0] + "."),
    "no token": forged(lambda _, __: "x"),
    "empty": forged(lambda _, __: ""),
    "dots": forged(lambda _, __: "." * 1000),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_a_token_that_is_not_for_this_login_is_refused(
    browser: Browser, lie: Callable[[LyingProvider], None]
) -> None:
    """Core 1.0, 3.1.3.7: signature, algorithm, issuer, audience, time and nonce; nobody comes in."""
    lie(liar(browser))
    status, _ = await browser.log_in("ann")

    assert status == 401, browser.page
    assert browser.cookies == {}
    assert await reasons(browser.site) in (["token"], ["subject"])


async def test_another_provider_s_answer_is_not_taken_to_this_one(browser: Browser) -> None:
    """Mix-up: RFC 9207."""
    liar(browser).document["authorization_response_iss_parameter_supported"] = True
    back = await liar(browser).log_in(await browser.begin(), "ann")
    lacking, _ = await browser.get(back)
    back = await liar(browser).log_in(await browser.begin(), "ann")
    foreign, _ = await browser.get(f"{back}&iss=https%3A%2F%2Fevil.example")
    back = await liar(browser).log_in(await browser.begin(), "ann")
    right, _ = await browser.get(f"{back}&{urlencode({'iss': liar(browser).issuer})}")

    assert (lacking, foreign, right) == (401, 401, 303)
    assert "/token" in liar(browser).asked
    assert await reasons(browser.site) == ["issuer", "issuer"]


async def test_userinfo_of_somebody_else_is_refused(browser: Browser) -> None:
    """Core 1.0, 5.3.2: the subject is the token's."""
    provider = liar(browser)
    provider.tells_name = False
    provider.answers["/userinfo"] = lambda _: web.json_response({"sub": "x", "preferred_username": "ann"})

    assert (await browser.log_in("bob"))[0] == 401
    assert await reasons(browser.site) == ["userinfo"]


def giant(_: web.Request) -> web.Response:
    """More than anybody wants."""
    return web.Response(body=b'{"x":"' + b"x" * 2_000_000 + b'"}', content_type="application/json")


def swelling(_: web.Request) -> web.Response:
    """Little that becomes much."""
    return web.Response(body=gzip.compress(b" " * 2_000_000), headers={"Content-Encoding": "gzip"})


def nested(_: web.Request) -> web.Response:
    """Deep."""
    return web.Response(text="[" * 100_000, content_type="application/json")


def elsewhere(_: web.Request) -> web.Response:
    """Another place."""
    raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/")


async def silent(_: web.Request) -> web.Response:
    """Never."""
    await asyncio.Event().wait()
    raise AssertionError


async def dripping(request: web.Request) -> web.StreamResponse:
    """A byte now and then."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.05)


def broken(_: web.Request) -> web.Response:
    """No JSON."""
    return web.Response(status=500, text="<html>oops</html>", content_type="text/html")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks", "/token", "/userinfo"])
@pytest.mark.parametrize("answer", [giant, swelling, nested, elsewhere, silent, dripping, broken])
async def test_a_provider_that_misbehaves_costs_little(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, path: str, answer: Callable[[web.Request], Any]
) -> None:
    """Ours: bounded in size and time, no redirects; the person is told, and the next try works."""
    monkeypatch.setattr("chatd.oidc.provider.EXCHANGE_S", 0.5)
    provider = liar(browser)
    provider.tells_name = False
    provider.answers[path] = answer
    async with asyncio.timeout(20):
        status, url = await browser.get("/login/oidc")
        if status == 303:
            status, _ = await browser.get(await provider.log_in(url, "ann"))
    told = browser.page
    provider.answers.clear()
    monkeypatch.setattr("chatd.oidc.provider.EXCHANGE_S", 10.0)

    assert status == 502, told
    assert "try again later" in told or "too long" in told or "compressed" in told
    assert "oops" not in told
    assert (await browser.log_in("ann"))[0] == 303


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("issuer", "https://evil.example"),
        ("issuer", None),
        ("token_endpoint", "http://169.254.169.254/token"),
        ("token_endpoint", "file:///etc/passwd"),
        ("jwks_uri", "http://evil.example/jwks"),
        ("authorization_endpoint", "javascript:alert(1)"),
        ("userinfo_endpoint", "https://user:pass@evil.example/"),
    ],
)
async def test_a_document_that_leads_astray_is_refused(
    browser: Browser, name: str, value: str | None
) -> None:
    """Discovery 1.0, 4.3, and ours: of this issuer, HTTPS or this machine."""
    liar(browser).document[name] = value
    status, _ = await browser.get("/login/oidc")

    assert status == 502
    assert browser.cookies == {}


async def test_endpoints_keep_to_the_outbound_policy(tmp_path: Path) -> None:
    """SSRF: the issuer was named by who runs this; what its document names was not."""
    async with deployment(tmp_path, "lying", outbound_allow=()) as (site, provider):
        await add(site, "ann")
        browser = Browser(site, provider)
        provider.document["token_endpoint"] = provider.issuer.replace("127.0.0.1", "127.0.0.2") + "/token"
        status, _ = await browser.log_in("ann")

        assert status == 502
        (entry,) = await audit(site, "login_failed")
        assert "CHATD_OUTBOUND_ALLOW" in entry["details"]["detail"]


@pytest.mark.parametrize("kind", ["good", "self-signed", "stranger's", "another host's", "expired"])
async def test_a_provider_proves_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, kind: str
) -> None:
    """Ours: over HTTPS with a certificate that is trusted, before anything is sent."""
    authority, stranger = Authority(tmp_path, "authority"), Authority(tmp_path, "stranger")
    made = {
        "good": authority.server,
        "self-signed": lambda: self_signed(tmp_path),
        "stranger's": stranger.server,
        "another host's": lambda: authority.server("evil.example"),
        "expired": lambda: authority.server(starts=timedelta(days=-2), ends=timedelta(days=-1)),
    }
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    tls_context.cache_clear()
    request.addfinalizer(tls_context.cache_clear)
    async with deployment(tmp_path, "lying", tls=made[kind]()) as (site, provider):
        await add(site, "ann")
        browser = Browser(site, provider)
        status, url = await browser.get("/login/oidc")
        if kind == "good":
            assert (await browser.get(await provider.log_in(url, "ann")))[0] == 303
            return
        assert (status, provider.asked) == (502, [])
        assert await reasons(site) == ["unreachable"]


@pytest.mark.parametrize("host", ["evil.example", "localhost:1", "127.0.0.1:1"])
async def test_where_the_provider_returns_to_is_a_setting(browser: Browser, host: str) -> None:
    """Ours: no Host or X-Forwarded-Host chooses where a code goes."""
    status, url = await browser.get("/login/oidc", Host=host, **{"X-Forwarded-Host": "evil.example"})

    if host == "evil.example":
        assert status == 400
        return
    asked = parse_qs(urlsplit(url).query)
    assert asked["redirect_uri"] == [f"{browser.site.plane.url}/login/oidc/callback"]


async def test_a_disabled_user_stays_out(browser: Browser) -> None:
    """Ours: whatever the provider says; also at a first login."""
    await browser.log_in("ann")
    await add(browser.site, "ben")
    for name in ("ann", "ben"):
        await browser.site.store.write(users.disable_user, name, now=browser.site.store.now())
    browser.cookies.clear()
    found = [(await browser.log_in(name))[0] for name in ("ann", "ben")]

    assert found == [401, 401]
    assert browser.cookies == {}
    assert await reasons(browser.site) == ["disabled", "disabled"]
    assert len(await audit(browser.site, "identity_tied")) == 1


async def test_a_name_takes_over_nobody_who_was_here(browser: Browser) -> None:
    """Ours: who may choose a name at the provider gets no chats, workspaces or tokens by it."""
    found = [(await browser.log_in(name))[0] for name in ("me", "owner", "other")]

    assert found == [401, 401, 401]
    assert await reasons(browser.site) == ["unproven"] * 3
    assert await audit(browser.site, "identity_tied") == []


async def test_a_session_of_somebody_else_proves_nothing(browser: Browser) -> None:
    """Ours: to be tied the browser is logged in as that very user."""
    browser.cookies["agentd_session"] = await browser.site.issue("session", "other")

    assert (await browser.log_in("owner"))[0] == 401
    assert await reasons(browser.site) == ["unproven"]


async def test_a_name_makes_no_administrator(tmp_path: Path) -> None:
    """Ours: neither one who was added, nor one whom the settings name."""
    wish = {"oidc_creates_users": True, "admins": ["root"]}
    async with deployment(tmp_path, "lying", **wish) as (site, provider):
        await add(site, "boss", Role.ADMIN)
        browser = Browser(site, provider)
        found = [(await browser.log_in(name))[0] for name in ("boss", "root")]

        assert found == [401, 401]
        assert await reasons(site) == ["unproven", "administrator"]


async def test_a_second_subject_is_not_the_same_user(browser: Browser) -> None:
    """Ours: a name that changed hands at the provider opens nothing here."""
    await browser.log_in("ann")
    browser.cookies.clear()
    liar(browser).change["sub"] = "somebody-else"

    assert (await browser.log_in("ann"))[0] == 401
    assert await reasons(browser.site) == ["taken"]


@pytest.mark.parametrize(
    "name", ["", " ann", "ann ", "a/b", "a\u202eb", "x" * 101, None, 7, ["ann"], {"a": 1}, "\ud800"]
)
async def test_a_name_that_could_deceive_ties_nobody(tmp_path: Path, name: Any) -> None:
    """Ours: as for every other user."""
    async with deployment(tmp_path, "lying", oidc_creates_users=True) as (site, provider):
        provider.change["preferred_username"] = name
        provider.forge = provider.sign_raw
        browser = Browser(site, provider)
        provider.answers["/userinfo"] = lambda _: web.json_response({"sub": "sub-ann"})

        assert (await browser.log_in("ann"))[0] == 401
        assert await reasons(site) == ["name"]


@pytest.mark.parametrize("verified", [None, False, "true", 1])
async def test_an_address_that_nobody_verified_is_no_name(tmp_path: Path, verified: Any) -> None:
    """Ours: else anybody could say that it is theirs."""
    async with deployment(tmp_path, "lying", oidc_name_claim="email") as (site, provider):
        await add(site, "ann@example.com")
        browser = Browser(site, provider)
        provider.change |= {"email": "ann@example.com", "email_verified": verified}
        refused, _ = await browser.log_in("ann")
        provider.change["email_verified"] = True

        assert refused == 401
        assert await reasons(site) == ["unverified"]
        assert (await browser.log_in("ann"))[0] == 303


@pytest.mark.parametrize("source", ["cross-site", "same-site"])
async def test_no_other_site_begins_a_login(browser: Browser, source: str) -> None:
    """Ours: a browser that is led here is asked first; nothing is set."""
    status, _ = await browser.get("/login/oidc", **{"Sec-Fetch-Site": source})

    assert status == 200
    assert "Another page sent you" in browser.page
    assert (browser.cookies, liar(browser).asked) == ({}, [])


async def test_what_a_provider_says_is_not_shown(browser: Browser) -> None:
    """Ours: anybody can write a link with an error in it; its words are not our page's."""
    back = await liar(browser).log_in(await browser.begin(), "ann")
    state = parse_qs(urlsplit(back).query)["state"][0]
    lie = {"state": state, "error": "<b>x</b>\n", "error_description": "Call 555 <script>alert(1)</script>"}
    status, _ = await browser.get(f"/login/oidc/callback?{urlencode(lie)}")

    assert status == 401
    assert "555" not in browser.page
    assert "<b>" not in browser.page
    (entry,) = await audit(browser.site, "login_failed")
    assert entry["details"]["detail"] == "<b>x</b>\\x0a"


async def test_logins_with_a_provider_are_slowed_down(tmp_path: Path) -> None:
    """Ours: as one-time URLs are; the provider is not asked for what is refused."""
    async with deployment(tmp_path, "lying", login_attempts_per_minute=3) as (site, provider):
        browser = Browser(site, provider)
        found = [(await browser.get("/login/oidc"))[0] for _ in range(5)]
        asked = len(provider.asked)
        callback = (await browser.get("/login/oidc/callback?state=x&code=y"))[0]

        assert found == [303, 303, 303, 429, 429]
        assert (callback, len(provider.asked)) == (429, asked)


async def test_what_the_browser_carries_is_kept_from_scripts_and_neighbours(tmp_path: Path) -> None:
    """Cookie tossing: over HTTPS under a name that no host below the same domain can set."""
    async with deployment(tmp_path, "lying", public_url="https://chats.example/team") as (site, _):
        headers = {"Host": "chats.example", "X-Forwarded-Proto": "https"}
        async with site.http.get("/login/oidc", headers=headers, allow_redirects=False) as answer:
            (line,) = answer.headers.getall("Set-Cookie")
            asked = parse_qs(urlsplit(answer.headers["Location"]).query)
            cached = answer.headers["Cache-Control"]

        assert line.startswith("__Host-agentd_oidc=")
        assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=600"} <= set(line.split("; "))
        assert "Domain" not in line
        assert asked["redirect_uri"] == ["https://chats.example/team/login/oidc/callback"]
        assert cached == "no-store"


async def test_no_secret_of_a_login_is_told(browser: Browser, capfd: pytest.CaptureFixture[str]) -> None:
    """Ours: not in logs, pages, addresses or the audit log."""
    url = await browser.begin()
    carried = browser.cookies["agentd_oidc"]
    back = await liar(browser).log_in(url, "ann")
    code = parse_qs(urlsplit(back).query)["code"][0]
    await browser.get(back)
    session = browser.cookies["agentd_session"]
    await browser.get(back)
    liar(browser).answers["/token"] = broken
    await browser.log_in("ann")
    logged = "".join(capfd.readouterr())
    entries = json.dumps(await audit(browser.site, "login", "login_failed", "identity_tied"))

    for secret in (SECRET, carried, code, session, "eyJ"):
        assert secret not in logged + entries + browser.page
    assert SECRET not in url
    assert await browser.site.status("GET", f"{API}/me", {"Cookie": f"agentd_session={session}"}) == 200
