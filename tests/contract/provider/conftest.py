"""A vendor on loopback that replays one scripted reply."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from chatd.provider.factory import ProviderName, create_provider
from chatd.provider.protocol import Provider
from tests.contract.provider import transcripts


@dataclass
class VendorServer:
    """
    Replays *events* (or *error*) to every request and remembers the requests.

    *ending* is ``done`` (as scripted), ``eof`` (clean end), ``abort`` (connection
    torn down), ``hang`` (silence until the client goes) or ``broken`` (an event that is no JSON, then
    more that nobody reads).
    """

    provider: ProviderName
    events: list[dict[str, Any]] = field(default_factory=list)
    ending: str = "done"
    error: tuple[int, dict[str, str], dict[str, Any]] | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    client_gone: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def play(self, scenario: str) -> None:
        """Answer with a transcript of this provider."""
        self.events = transcripts.ALL[self.provider][scenario]

    def fail(self, status: int, message: str, kind: str, **headers: str) -> None:
        """Answer with an HTTP error, worded as this provider does."""
        body = transcripts.ERROR_BODIES[self.provider](message, kind)
        self.error = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one request."""
        self.requests.append(await request.json())
        self.is_asked.set()
        self.paths.append(request.path_qs)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.error is not None:
            status, headers, body = self.error
            return web.json_response(body, status=status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            await response.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        await self._end(request, response)
        return response

    async def _end(self, request: web.Request, response: web.StreamResponse) -> None:
        if self.ending == "hang":
            try:
                await asyncio.Event().wait()
            finally:
                self.client_gone.set()
        if self.ending == "broken":
            for _ in range(3):
                await response.write(b"event: message\ndata: {no json\n\n")
                await asyncio.sleep(0.01)
        if self.ending == "abort" and request.transport is not None:
            request.transport.abort()
        if self.ending == "done" and self.provider == "openai-compat":
            await response.write(b"data: [DONE]\n\n")


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep proxies and vendor variables of the surrounding shell out."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["anthropic", "google", "openai", "openai-compat"])
def provider_name(request: pytest.FixtureRequest) -> ProviderName:
    """Every provider in turn."""
    name: ProviderName = request.param
    return name


@pytest.fixture
async def vendor(provider_name: ProviderName) -> AsyncIterator[VendorServer]:
    """A listening server for the provider under test."""
    server = VendorServer(provider_name)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/{path:.*}", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    yield server
    await runner.cleanup()


@pytest.fixture
async def provider(vendor: VendorServer) -> AsyncIterator[Provider]:
    """The provider under test, connected to the server."""
    suffix = "" if vendor.provider in ("anthropic", "google") else "/v1"
    built = create_provider(provider=vendor.provider, api_key="key-for-tests", base_url=vendor.url + suffix)
    yield built
    await built.close()
