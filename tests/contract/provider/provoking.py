"""Provoke every failure of a provider and say what came of it; run as a module to record it again."""

import asyncio
import json
import re
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import httpx2
import pytest

from chatd.errors import ProviderFault
from chatd.provider.factory import IMPLEMENTATIONS, ProviderName, create_provider
from chatd.provider.protocol import ModelRequest, PromptMessage, Provider
from chatd.wire import TextPart
from tests.contract.provider.failures import COMMON, HTTP2, REFUSALS, STREAMS, find_failure, find_http2
from tests.support.certificates import Authority, self_signed
from tests.support.failing_vendor import failing_vendor, failing_vendor_http2

__all__ = ["RECORD", "outcome", "outcomes_of", "speak_http2"]

RECORD = Path(__file__).parents[2] / "vectors" / "provider_failures.json"
REQUEST = ModelRequest(
    model="m", system="", messages=(PromptMessage(role="user", content=(TextPart(text="Hello?"),)),)
)
# Seconds of silence that a client bears: a limit that is never reached, and one that is, on purpose.
PATIENT_S, HASTY_S = 30.0, 1.0
SILENT = ("silent", "silent in the middle")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
# Where in Python's sources the error was raised.
_LINE = re.compile(r"_ssl\.c:\d+")
Outcome = dict[str, Any]


async def outcome(provider: Provider) -> Outcome:
    """Ask, fail, and tell how: types and texts as raised, and what they were taken for."""
    try:
        async with asyncio.timeout(PATIENT_S * 2):
            async for _ in provider.stream(REQUEST):
                pass
    except ProviderFault as fault:
        return _told(fault)
    return {"kind": None}


def _told(fault: ProviderFault) -> Outcome:
    links, link = [], fault.__cause__
    while link is not None:
        links.append(link)
        link = link.__cause__
    return {
        "raised": " < ".join(
            f"{type(link).__module__.split('.')[0]}.{type(link).__name__}" for link in links
        ),
        "text": _plain(str(links[0])),
        "kind": fault.kind,
        "retryable": fault.retryable,
        "status": fault.status_code,
        "retry_after_s": fault.retry_after_s,
        "message": fault.user_text,
        "detail": _plain(fault.detail or ""),
    }


def _plain(text: str) -> str:
    return _LINE.sub("_ssl.c:LINE", _PORT.sub("127.0.0.1:PORT", text))


@asynccontextmanager
async def tls_vendors(name: ProviderName, folder: Path) -> AsyncIterator[tuple[Path, dict[str, str]]]:
    """What a client is to trust, and servers by what is wrong with their certificates (nothing: the last)."""
    known, unknown = Authority(folder, "known"), Authority(folder, "unknown")
    day = timedelta(days=1)
    servers: dict[str, ssl.SSLContext] = {
        "self-signed certificate": self_signed(folder),
        "certificate of an unknown issuer": unknown.server(),
        "certificate that has expired": known.server(starts=-2 * day, ends=-day),
        "certificate that is not valid yet": known.server(starts=day, ends=2 * day),
        "certificate of another host": known.server("api.example.com"),
        "trusted certificate, then a gateway page": known.server(),
    }
    async with AsyncExitStack() as stack:
        addresses = {}
        for case, context in servers.items():
            find = lambda failure: find_failure(name, unquote(failure))  # noqa: E731
            address = await stack.enter_async_context(failing_vendor(find, context))
            addresses[case] = f"https://{address}/{quote('gateway page')}"
        yield known.file, addresses


async def outcomes_of(name: ProviderName) -> dict[str, Outcome]:
    """Every failure of one provider."""
    names = [*COMMON, *REFUSALS[name], *STREAMS[name]]
    async with (
        failing_vendor(lambda failure: find_failure(name, unquote(failure))) as address,
        failing_vendor_http2(lambda failure: find_http2(unquote(failure))) as http2,
    ):
        cases = {failure: f"http://{address}/{quote(failure, safe='')}" for failure in names}
        cases |= {
            "nobody listens": "http://127.0.0.1:9",
            "no such host": "http://nowhere.invalid",
            "no tls": f"https://{address}/x",
            "no address": "ftp://127.0.0.1",
        }
        silent = [_outcomes(name, {failure: cases.pop(failure)}, patience_s=HASTY_S) for failure in SILENT]
        found = await _outcomes(name, cases)
        for one in await asyncio.gather(*silent):
            found |= one
        found |= await _tls_outcomes(name)
        cases = {f"http2 {failure}": f"http://{http2}/{quote(failure, safe='')}" for failure in HTTP2}
        return found | await _outcomes(name, cases, is_http2=True)


async def _tls_outcomes(name: ProviderName) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        async with tls_vendors(name, Path(folder)) as (trusted, cases):
            patch.setenv("SSL_CERT_FILE", str(trusted))
            return await _outcomes(name, cases)


async def _outcomes(
    name: ProviderName, cases: dict[str, str], *, patience_s: float = PATIENT_S, is_http2: bool = False
) -> dict[str, Outcome]:
    # One client for all: making one takes longer than a failure does.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{IMPLEMENTATIONS[name][0]}.READ_TIMEOUT_S", patience_s)
        provider = create_provider(provider=name, api_key="key-for-tests", base_url="http://127.0.0.1:9")
    if is_http2:
        speak_http2(provider)
    found = {}
    for failure, base in cases.items():
        point_at(provider, base)
        found[failure] = await outcome(provider)
    await provider.close()
    return found


def point_at(provider: Any, base: str) -> None:
    """Have a provider ask somebody else."""
    if provider.name == "google":
        provider._client._api_client._http_options.base_url = base
    else:
        provider._client.base_url = base if provider.name == "anthropic" else f"{base}/v1"


def speak_http2(provider: Any) -> None:
    """Have a provider's SDK speak HTTP/2 only."""
    is_google = provider.name == "google"
    kind = type(provider._http) if is_google else httpx2.AsyncClient
    client = kind(http1=False, http2=True, timeout=PATIENT_S)
    if is_google:
        provider._http = provider._client._api_client._async_httpx_client = client
    else:
        provider._client._client = client


async def record() -> None:
    """Write what happens now."""
    found = {name: await outcomes_of(name) for name in IMPLEMENTATIONS}
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    asyncio.run(record())
