"""
OpenID providers to log in with: a certified one of others, and one of our own that can be told to lie.

Both pass the same tests of what a login is; only the second attacks.
"""

import asyncio
import base64
import hashlib
import json
import re
import secrets
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urljoin

import aiohttp
from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from tests.peers import NODE, ROOT

__all__ = [
    "CLIENT",
    "SECRET",
    "CertifiedProvider",
    "LyingProvider",
    "OidcProvider",
    "certified",
    "lying",
    "unsigned",
]

CLIENT, SECRET = "chatd", "s3cret-of-the-client"
Claims = dict[str, Any]


class OidcProvider(Protocol):
    """Somebody whom people log in with."""

    issuer: str

    async def log_in(self, url: str, name: str, *groups: str) -> str:
        """Be a browser that was sent to *url*, and *name* in it; where it is sent back to."""
        ...


class CertifiedProvider:
    """node-oidc-provider, with its forms."""

    def __init__(self, issuer: str, groups_file: Path) -> None:
        self.issuer = issuer
        self._groups_file = groups_file

    async def log_in(self, url: str, name: str, *groups: str) -> str:
        """Fill in its forms."""
        self._groups_file.write_text(json.dumps({name: groups}))
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            form: dict[str, str] | None = None
            while url.startswith(self.issuer):
                async with http.request(
                    "GET" if form is None else "POST", url, data=form, allow_redirects=False
                ) as answer:
                    page, form = await answer.text(), None
                    if answer.status >= 400:
                        raise AssertionError(page)
                    if "Location" in answer.headers:
                        url = urljoin(url, answer.headers["Location"])
                        continue
                action = re.search(r'<form[^>]* action="([^"]+)"', page)
                prompt = re.search(r'name="prompt" value="(\w+)"', page)
                assert action, page
                assert prompt, page
                url, form = urljoin(url, action[1]), {"prompt": prompt[1]}
                if prompt[1] == "login":
                    form |= {"login": name, "password": "any"}
        return url


class LyingProvider:
    """
    One that does what is right unless it is told otherwise.

    Attributes:
        forge: makes the ID token of the claims; None: signed as it should be.
        change: of the right claims.
        document: what the discovery document says besides.
        answers: in place of a path's answer, by path.
        reuses_codes: takes a code twice.
        tells_name: whether the ID token has the name, or only the userinfo endpoint.
    """

    def __init__(self, port: int, redirect_uri: str, *, is_tls: bool = False) -> None:
        self.issuer = f"{'https' if is_tls else 'http'}://127.0.0.1:{port}"
        self.redirect_uri = redirect_uri
        self.key: Key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})
        self.algorithm = "RS256"
        self.forge: Callable[[Claims], str] | None = None
        self.change: Claims = {}
        self.document: Claims = {}
        self.answers: dict[str, Callable[[web.Request], Any]] = {}
        self.reuses_codes = False
        self.tells_name = True
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: dict[str, Claims] = {}
        self._people: dict[str, tuple[str, tuple[str, ...]]] = {}

    async def log_in(self, url: str, name: str, *groups: str) -> str:
        """It asks nothing."""
        person = secrets.token_urlsafe(8)
        self._people[person] = (name, groups)
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{url}&person={person}", allow_redirects=False, ssl=False) as answer,
        ):
            assert answer.status == 303, await answer.text()
            return answer.headers["Location"]

    def use_key(self, kind: str) -> None:
        """Sign with a key of another kind."""
        kid = {"kid": f"k-{kind}", "use": "sig"}
        made = {
            "ES256": lambda: ECKey.generate_key("P-256", kid),
            "Ed25519": lambda: OKPKey.generate_key("Ed25519", kid),
        }
        self.key, self.algorithm = made[kind](), kind

    def sign(self, claims: Claims, key: Key | None = None, **header: str) -> str:
        """An ID token."""
        key = key or self.key
        head = {"alg": self.algorithm, "kid": key.kid, **header}
        return jwt.encode(head, claims, key, algorithms=[head["alg"]])

    def sign_raw(self, claims: Claims, **header: Any) -> str:
        """One that libraries would not make, with the RSA key."""
        head = {"alg": "RS256", "kid": self.key.kid, **header}
        signed = unsigned(claims, head).rpartition(".")[0]
        assert isinstance(self.key, RSAKey)
        signature = self.key.private_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return unsigned(claims, head, signature)

    def app(self) -> web.Application:
        """Its routes."""
        app = web.Application(middlewares=[self._middleware])
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/jwks", self._jwks)
        app.router.add_get("/userinfo", self._userinfo)
        return app

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(request.path)
        if request.path in self.answers:
            answer = self.answers[request.path](request)
            found: web.StreamResponse = await answer if asyncio.iscoroutine(answer) else answer
            return found
        response: web.StreamResponse = await handler(request)
        return response

    async def _discovery(self, _: web.Request) -> web.Response:
        places = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        document = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in places.items()}
        document |= {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks"}
        return web.json_response(document | self.document)

    async def _authorize(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        right = {"client_id": CLIENT, "redirect_uri": self.redirect_uri, "response_type": "code"}
        right["code_challenge_method"] = "S256"
        wrong = {name for name, value in right.items() if query.get(name) != value}
        if wrong or not all(query.get(name) for name in ("state", "nonce", "code_challenge")):
            return web.Response(status=400, text=f"wrong: {wrong}")
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        back = urlencode({"code": code, "state": query["state"]})
        raise web.HTTPSeeOther(f"{self.redirect_uri}?{back}")

    async def _token(self, request: web.Request) -> web.Response:
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        form = dict(parse_qsl(await request.text()))
        asked = self._codes.get(form.get("code", ""))
        if request.headers.get("Authorization") != f"Basic {basic}":
            return web.json_response({"error": "invalid_client"}, status=401)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_right = asked is not None and asked["code_challenge"] == challenge
        if asked is None or not is_right or form.get("redirect_uri") != self.redirect_uri:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if not self.reuses_codes:
            del self._codes[form["code"]]
        name, groups = self._people[asked["person"]]
        told = {"preferred_username": name, "groups": list(groups)}
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": f"sub-{name}", "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"]} | (told if self.tells_name else {}) | self.change
        claims = {key: value for key, value in claims.items() if value is not None}
        access = secrets.token_urlsafe(16)
        self._tokens[access] = {"sub": f"sub-{name}"} | told
        made = self.sign(claims) if self.forge is None else self.forge(claims)
        return web.json_response({"access_token": access, "token_type": "Bearer", "id_token": made})

    async def _jwks(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def _userinfo(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self._tokens:
            return web.json_response({"error": "invalid_token"}, status=401)
        return web.json_response(self._tokens[token])


def unsigned(claims: Claims, header: Claims, signature: bytes = b"") -> str:
    """A token that nobody signed, or that was signed by other means."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@asynccontextmanager
async def lying(redirect_uri: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[LyingProvider]:
    """Ours, running."""
    listener = _listener()
    provider = LyingProvider(listener.getsockname()[1], redirect_uri, is_tls=tls is not None)
    runner = web.AppRunner(provider.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=tls).start()
    try:
        yield provider
    finally:
        await runner.cleanup()


@asynccontextmanager
async def certified(redirect_uri: str) -> AsyncIterator[CertifiedProvider]:
    """That of others, running."""
    with _listener() as listener:
        port = listener.getsockname()[1]
    with tempfile.NamedTemporaryFile("w+") as groups:
        groups.write("{}")
        groups.flush()
        script = str(ROOT / "tests" / "peers" / "oidc_provider.mjs")
        command = [NODE, script, str(port), redirect_uri, groups.name]
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=quiet)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(30):
                while b"ready" not in (line := await process.stdout.readline()):
                    assert line, "the provider did not start"
            yield CertifiedProvider(f"http://127.0.0.1:{port}", Path(groups.name))
        finally:
            process.kill()
            await process.wait()


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    return listener
