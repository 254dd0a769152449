"""Clients for a provider: to addresses that the policy allows, no redirects, answers of bounded size."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import cache
from urllib.parse import urlsplit

import httpx2
from authlib.integrations.httpx_client import AsyncOAuth2Client  # type: ignore[import-untyped]
from pydantic import SecretStr

from chatd.errors import SignInFailed
from chatd.guarded import guard_client
from chatd.outbound import Outbound

__all__ = ["MAX_ANSWER_BYTES", "open_client", "tls_context"]

# Of one answer; discovery documents and key sets of large providers have some 20 KiB.
MAX_ANSWER_BYTES = 256 * 1024
# Seconds to connect, and between two pieces of an answer; the whole has a limit of its own.
PATIENCE_S = 5.0


class _Bounded(httpx2.AsyncByteStream):
    """An answer's body that ends in an error where it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for piece in self._inner:
            taken += len(piece)
            if taken > MAX_ANSWER_BYTES:
                raise SignInFailed(
                    "The provider's answer is too long.",
                    reason="large",
                    detail=f"over {MAX_ANSWER_BYTES} bytes",
                )
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _bound(response: httpx2.Response) -> None:
    # What swells would be counted before it does.
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise SignInFailed("The provider's answer is compressed, which nobody asked for.", reason="encoding")
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 -- of an async client
    response.stream = _Bounded(response.stream)


@cache
def tls_context() -> ssl.SSLContext:
    """Reads the system's authorities, which takes a while: not in the event loop."""
    return httpx2.create_ssl_context()


async def open_client(
    policy: Outbound, issuer: str, client_id: str, secret: SecretStr | None, *, auth_method: str | None = None
) -> AsyncOAuth2Client:
    """
    A client for one login; close it.

    Args:
        policy: the issuer's host may have a private address besides: whoever runs this named it.
        issuer: its URL.
        client_id: our name there.
        secret: None: a public client.
        auth_method: how the secret is shown; see RFC 7591, 2.
    """
    client = AsyncOAuth2Client(
        client_id=client_id,
        client_secret=None if secret is None else secret.get_secret_value(),
        token_endpoint_auth_method=auth_method,
        code_challenge_method="S256",
        verify=await asyncio.to_thread(tls_context),
        headers={"Accept-Encoding": "identity", "Accept": "application/json"},
        timeout=PATIENCE_S,
        follow_redirects=False,
        event_hooks={"response": [_bound]},
    )
    guard_client(client, policy.with_name(urlsplit(issuer).hostname or ""))
    return client
