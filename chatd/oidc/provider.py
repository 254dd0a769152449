"""
One OpenID provider: where it says its endpoints are, its keys, and whom it says somebody is.

Authlib speaks OAuth and joserfc reads tokens; which algorithms count, and whose answers, is said here.

Source: OpenID Connect Core 1.0, 3.1; Discovery 1.0, 4; RFC 7636 (PKCE); RFC 9207 (``iss`` in answers).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import httpx2
from authlib.integrations.base_client import OAuthError  # type: ignore[import-untyped]
from authlib.integrations.httpx_client import AsyncOAuth2Client  # type: ignore[import-untyped]
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import Key, KeySet, import_key
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chatd.errors import SignInFailed, SignInRefused
from chatd.oidc.claims import ClaimNames, lacks, read_person
from chatd.oidc.fetching import open_client
from chatd.oidc.pending import PendingLogin
from chatd.oidc_settings import is_safe_url
from chatd.settings import ChatdSettings
from chatd.store.identities import Person

__all__ = ["ALGORITHMS", "Provider"]

T = TypeVar("T", bound=BaseModel)
# Signatures by a key that only the provider has: none at all, or one by a shared secret, proves nothing.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
MAX_KEYS = 64
# Seconds for all that one request of a browser's asks of the provider.
EXCHANGE_S = 10.0
# Seconds that endpoints and keys are believed, and between looks for a key that was not among them.
BELIEVED_S, ANEW_S = 3600.0, 30.0
# Seconds that clocks may differ.
LEEWAY_S = 60
TEXT = "The provider does not answer as it should; try again later. If it stays so, tell an administrator."


class Metadata(BaseModel):
    """What is used of a discovery document."""

    model_config = ConfigDict(frozen=True)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False

    def auth_method(self, *, has_secret: bool) -> str:
        """How the token endpoint is told who we are; RFC 7591, 2."""
        if not has_secret:
            return "none"
        offered = self.token_endpoint_auth_methods_supported
        is_post = "client_secret_basic" not in offered and "client_secret_post" in offered
        return "client_secret_post" if is_post else "client_secret_basic"


class _Keys(BaseModel):
    keys: tuple[dict[str, Any], ...] = Field(max_length=MAX_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the provider told, and when."""

    metadata: Metadata
    keys: KeySet
    at: float


class Provider:
    """
    The provider of the settings.

    Args:
        settings: with an issuer.
        clock: steady seconds.
    """

    def __init__(self, settings: ChatdSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self.issuer = settings.oidc_issuer or ""
        self.redirect_uri = f"{settings.public_url}/login/oidc/callback"
        self._names = ClaimNames(
            name=settings.oidc_name_claim,
            groups=settings.oidc_groups_claim,
            admin_group=settings.oidc_admin_group,
        )
        self._known: _Known | None = None
        self._looking = asyncio.Lock()

    async def authorization_url(self, pending: PendingLogin) -> str:
        """
        Where the browser goes to log in.

        Raises:
            SignInFailed: the provider can't be asked.
        """
        async with self._asking():
            known = await self._know()
            async with await self._client(known.metadata) as client:
                url, _ = client.create_authorization_url(
                    known.metadata.authorization_endpoint,
                    state=pending.state,
                    code_verifier=pending.verifier,
                    nonce=pending.nonce,
                    redirect_uri=self.redirect_uri,
                    scope=self._settings.oidc_scopes,
                )
        return str(url)

    async def identify(
        self, pending: PendingLogin, code: str, issuer: str | None, *, now: datetime
    ) -> Person:
        """
        Trade *code* for who came.

        Args:
            pending: the login that the browser began.
            code: of the provider's answer.
            issuer: who the answer says that it is from, if it does.
            now: the time that tokens are held against.

        Raises:
            SignInRefused: the code is used, or what it brings is not for this login.
            SignInFailed: the provider can't be asked.
        """
        async with self._asking():
            known = await self._know()
            self._check_issuer(known.metadata, issuer)
            async with await self._client(known.metadata) as client:
                answer = await client.fetch_token(
                    known.metadata.token_endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=pending.verifier,
                    redirect_uri=self.redirect_uri,
                )
                claims = await self._verify(answer, pending, now=now)
                if lacks(claims, self._names) and known.metadata.userinfo_endpoint:
                    claims = await _with_userinfo(client, known.metadata.userinfo_endpoint, claims, answer)
        return read_person(claims, self.issuer, self._names)

    def _check_issuer(self, metadata: Metadata, told: str | None) -> None:
        """RFC 9207, 2.4: an answer of another provider is not taken to this one."""
        is_owed = metadata.authorization_response_iss_parameter_supported
        if told != self.issuer and (told is not None or is_owed):
            raise SignInRefused("Another provider answered; log in once more.", reason="issuer")

    async def _verify(
        self, answer: Mapping[str, object], pending: PendingLogin, *, now: datetime
    ) -> dict[str, Any]:
        """The ID token's claims; OpenID Connect Core 1.0, 3.1.3.7."""
        text = answer.get("id_token")
        if not isinstance(text, str):
            raise SignInFailed(TEXT, reason="no_id_token")
        try:
            token = await self._decode(text)
            claims = CodeIDToken(
                token.claims,
                token.header,
                options={
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                },
                params={
                    "nonce": pending.nonce,
                    "client_id": self._settings.oidc_client_id,
                    "access_token": answer.get("access_token"),
                },
            )
            claims.validate(now=int(now.timestamp()), leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError, RecursionError) as exc:
            text = "The provider's token is not good for this login; log in once more."
            raise SignInRefused(text, reason="token", detail=_told(exc)) from exc
        return dict(claims)

    async def _decode(self, text: str) -> jwt.Token:
        known = await self._know()
        try:
            return jwt.decode(text, known.keys, algorithms=ALGORITHMS)
        except InvalidKeyIdError:
            if self._clock() - known.at < ANEW_S:
                raise
        # Keys are replaced from time to time.
        known = await self._know(newer_than=known.at)
        return jwt.decode(text, known.keys, algorithms=ALGORITHMS)

    async def _know(self, *, newer_than: float | None = None) -> _Known:
        async with self._looking:
            known = self._known
            is_old = known is None or self._clock() - known.at > BELIEVED_S
            if known is None or is_old or (newer_than is not None and known.at <= newer_than):
                known = self._known = await self._look()
            return known

    async def _look(self) -> _Known:
        at = self._clock()
        async with await self._client(None) as client:
            url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = await _read(client, url, Metadata)
            self._check(metadata)
            keys = await _read(client, metadata.jwks_uri, _Keys)
        return _Known(metadata=metadata, keys=_public_keys(keys), at=at)

    def _check(self, metadata: Metadata) -> None:
        if metadata.issuer != self.issuer:
            raise SignInFailed(TEXT, reason="issuer", detail=f"the document is of {metadata.issuer[:200]}")
        is_local = self.issuer.startswith("http:")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
            url = getattr(metadata, name)
            if url is not None and not is_safe_url(url, is_local=is_local, has_query=True):
                raise SignInFailed(TEXT, reason="endpoint", detail=f"{name} is no https URL")

    async def _client(self, metadata: Metadata | None) -> AsyncOAuth2Client:
        settings, secret = self._settings, self._settings.oidc_client_secret
        method = None if metadata is None else metadata.auth_method(has_secret=secret is not None)
        client_id = settings.oidc_client_id or ""
        return await open_client(settings.outbound, self.issuer, client_id, secret, auth_method=method)

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Faults of the exchange, told as ours."""
        try:
            async with asyncio.timeout(EXCHANGE_S):
                yield
        except OAuthError as exc:
            if exc.error != "invalid_grant":
                # RFC 6749, 5.2: of us, not of the code.
                raise SignInFailed(TEXT, reason="client", detail=f"{exc.error!s:.100}") from exc
            text = "The provider does not take this login's code; log in once more."
            raise SignInRefused(text, reason="code", detail=f"{exc.error!s:.100}") from exc
        except httpx2.HTTPStatusError as exc:
            told = f"{exc.response.status_code} of {exc.request.url.path[:100]}"
            raise SignInFailed(TEXT, reason="status", detail=told) from exc
        except (httpx2.HTTPError, TimeoutError) as exc:
            raise SignInFailed(TEXT, reason="unreachable", detail=_told(exc)) from exc
        except (ValueError, RecursionError) as exc:
            raise SignInFailed(TEXT, reason="nonsense", detail=_told(exc)) from exc


def _told(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}"[:300]


async def _with_userinfo(
    client: AsyncOAuth2Client, url: str, claims: dict[str, Any], answer: Mapping[str, object]
) -> dict[str, Any]:
    """The claims and what the provider tells besides, of the same subject; Core 1.0, 5.3.2."""
    headers = {"Authorization": f"Bearer {answer.get('access_token')}"}
    response = await client.request("GET", url, headers=headers, withhold_token=True)
    response.raise_for_status()
    told = response.json()
    if not isinstance(told, dict) or told.get("sub") != claims["sub"]:
        raise SignInRefused("The provider tells of somebody else; log in once more.", reason="userinfo")
    return told | claims


async def _read(client: AsyncOAuth2Client, url: str, model: type[T]) -> T:
    response = await client.request("GET", url, withhold_token=True)
    response.raise_for_status()
    try:
        return model.model_validate_json(response.content)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        detail = f"{url[:200]}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise SignInFailed(TEXT, reason="nonsense", detail=detail) from exc


def _public_keys(told: _Keys) -> KeySet:
    """Those that verify signatures; others, and what is none, are left out: RFC 7517, 5."""
    found: list[Key] = []
    for data in told.keys:
        if data.get("kty") in KEY_TYPES and data.get("use", "sig") == "sig":
            try:
                found.append(import_key(data))
            except (JoseError, ValueError, TypeError):
                continue
    if not found:
        raise SignInFailed(TEXT, reason="no_keys", detail="no key that verifies signatures")
    return KeySet(found)
