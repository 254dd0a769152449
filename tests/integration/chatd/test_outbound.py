"""SSRF, with real sockets: names that change their address, redirects, model servers, workspaces' streams."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web

from chatd.agents.fetching import FetchedStreams
from chatd.errors import AgentUnavailable, ProviderFault
from chatd.guarded import GuardedNetwork, guard_client, guard_for
from chatd.outbound import LOOPBACK_NETWORKS, Outbound, parse_outbound
from chatd.provider.factory import ProviderName, create_provider
from chatd.provider.protocol import ModelRequest, PromptMessage
from chatd.settings import ChatdSettings
from chatd.wire import TextPart
from mcp_bridge.bridge import Bridge
from mcp_bridge.config import ConfigFile, parse_entry
from mcp_bridge.hosting.connection import Place
from tests.integration.chatd.http.site import LIMIT_S, serving

PUBLIC = Outbound()
LOCAL = parse_outbound(LOOPBACK_NETWORKS)
REQUEST = ModelRequest(
    model="m", system="", messages=(PromptMessage(role="user", content=(TextPart(text="x"),)),)
)
pytestmark = pytest.mark.attack


class Victim:
    """A service of this machine that nobody outside should reach."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.redirect: str | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """Remember who asked for what."""
        self.asked.append((request.path, dict(request.headers)))
        if self.redirect is not None:
            raise web.HTTPTemporaryRedirect(self.redirect)
        return web.json_response({"secret": "hunter2"})


@pytest.fixture
async def victim() -> AsyncIterator[Victim]:
    """It listens on loopback."""
    found = Victim()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """A resolver of ours: each look-up of a name takes its next answer, the last one for ever."""
    table: dict[str, list[list[str]]] = {}
    real = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def look_up(loop: Any, host: str, port: int, **kwargs: Any) -> Any:
        if host not in table:
            return await real(loop, host, port, **kwargs)
        answers = table[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    return table


async def get(policy: Outbound, url: str) -> httpx2.Response:
    """One request of a client that keeps to the policy."""
    async with asyncio.timeout(LIMIT_S), guard_client(httpx2.AsyncClient(), policy) as client:
        return await client.get(url)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "017700000001", "127.1", "0"],
)
async def test_no_spelling_of_loopback_gets_through(victim: Victim, host: str) -> None:
    """Ours: judged is what the name means to the machine, not how it is written."""
    with pytest.raises((httpx2.ConnectError, httpx2.InvalidURL)):
        await get(PUBLIC, f"http://{host}:{victim.port}/")

    assert victim.asked == []


async def test_a_name_that_changes_its_address_gains_nothing(
    victim: Victim, names: dict[str, list[list[str]]]
) -> None:
    """Ours: DNS rebinding: the address that was judged is the one that is connected to."""
    # One that may be reached, where nobody listens, at the first look; the victim's at every later one.
    allowed = parse_outbound(["127.0.0.9"])
    names["rebind.example"] = [["127.0.0.9"], ["127.0.0.1"]]
    with pytest.raises(httpx2.ConnectError, match=r"(?i)connect"):
        await get(allowed, f"http://rebind.example:{victim.port}/")
    # It was looked up once: what was judged was connected to.
    assert len(names["rebind.example"]) == 1
    with pytest.raises(httpx2.ConnectError, match="no public address"):
        await get(allowed, f"http://rebind.example:{victim.port}/")
    # Both at once: only the one that may be reached is tried.
    names["both.example"] = [["127.0.0.1", "127.0.0.9"]]
    with pytest.raises(httpx2.ConnectError, match=r"(?i)connect"):
        await get(allowed, f"http://both.example:{victim.port}/")

    assert victim.asked == []


async def test_what_was_allowed_gets_through_under_its_own_name(
    victim: Victim, names: dict[str, list[list[str]]]
) -> None:
    """Ours: the second address is tried when the first does not answer; Host is the name."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.2", 0))
        names["mcp.internal"] = [["127.0.0.2", "127.0.0.1"]]
        answer = await get(parse_outbound(["mcp.internal"]), f"http://mcp.internal:{victim.port}/")

    assert answer.json() == {"secret": "hunter2"}
    assert victim.asked[0][1]["Host"] == f"mcp.internal:{victim.port}"


async def test_an_mcp_server_of_the_deployment_reaches_no_private_address(
    victim: Victim, names: dict[str, list[list[str]]]
) -> None:
    """Ours: through the bridge itself, by both transports and by a name that has become private."""
    names["mcp.example"] = [["127.0.0.1"]]
    place = Place(
        environment={},
        cwd=None,
        mark="t",
        client_name="t",
        client_version="0",
        network=GuardedNetwork(PUBLIC),
    )
    bridge = Bridge(place)
    url = f"http://mcp.example:{victim.port}/mcp"
    entries = {kind: {"type": kind, "url": url, "headers": {"X-Key": "hunter2"}} for kind in ("http", "sse")}
    servers = tuple(parse_entry(name, entry, source="t", environment={}) for name, entry in entries.items())
    await bridge.apply(ConfigFile(servers=servers, problems=()))
    try:
        async with asyncio.timeout(LIMIT_S):
            while not all(status.last_error for status in bridge.statuses()):  # noqa: ASYNC110 -- no event tells
                await asyncio.sleep(0.05)
        errors = [str(status.last_error) for status in bridge.statuses()]
    finally:
        await bridge.close()

    assert all("no public address" in error for error in errors), errors
    assert victim.asked == []


async def test_an_address_that_is_written_out_is_refused_at_once(tmp_path: Path) -> None:
    """Ours: with the setting that would allow it; names are looked up when they are connected to."""
    async with serving(tmp_path / "data", admins=("me",), outbound_allow=()) as site:
        for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"):
            body = {"slug": "far", "url": f"http://{host}/mcp"}
            told = await site.ask("POST", "/mcp-servers", status=400, json=body)
            assert "CHATD_OUTBOUND_ALLOW" in told["message"]
        body = {"slug": "far", "url": "https://mcp.example/mcp", "enabled": False}
        made = await site.ask("POST", "/mcp-servers", status=201, json=body)
        change = {"url": "http://127.0.0.1/mcp"}
        await site.ask("PATCH", f"/mcp-servers/{made['id']}", status=400, json=change)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])  # noqa: S104
def test_only_a_chatd_of_this_machine_reaches_its_loopback(tmp_path: Path, host: str) -> None:
    """Ours: the default; whoever listens to the network says what may be reached."""
    allowed = ChatdSettings(data_dir=tmp_path, host=host).outbound

    assert allowed.allows("x", "127.0.0.1") is (host != "0.0.0.0")  # noqa: S104
    assert not ChatdSettings(data_dir=tmp_path, host=host, outbound_allow=()).outbound.allows(
        "x", "127.0.0.1"
    )


PROVIDERS: tuple[ProviderName, ...] = ("anthropic", "openai", "openai-compat", "google")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_server_sends_nobody_s_key_elsewhere(
    victim: Victim, names: dict[str, list[list[str]]], provider: ProviderName
) -> None:
    """Ours: SSRF through a model's base URL: a redirect is not followed to another origin."""
    front = Victim()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", front.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    front.redirect = f"http://127.0.0.1:{victim.port}/metadata"
    names["models.example"] = [["127.0.0.1"]]
    url = f"http://models.example:{runner.addresses[0][1]}"
    client = create_provider(provider=provider, api_key="hunter2", base_url=url, guard=guard_for(PUBLIC, url))
    try:
        async with asyncio.timeout(LIMIT_S):
            with pytest.raises(ProviderFault):
                async for _ in client.stream(REQUEST):
                    pass
    finally:
        await client.close()
        await runner.cleanup()

    # It was asked, since whoever runs chatd named it.
    assert len(front.asked) == 1
    assert victim.asked == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_vendor_s_name_that_became_private_is_not_connected_to(
    victim: Victim, names: dict[str, list[list[str]]], provider: ProviderName
) -> None:
    """Ours: the base URL's name pointed at metadata: nothing is sent, whatever its name."""
    names["models.example"] = [["169.254.169.254"]]
    url = f"http://models.example:{victim.port}"
    client = create_provider(provider=provider, api_key="hunter2", base_url=url, guard=guard_for(PUBLIC, url))
    try:
        async with asyncio.timeout(LIMIT_S):
            with pytest.raises(ProviderFault):
                async for _ in client.stream(REQUEST):
                    pass
    finally:
        await client.close()


async def test_a_workspace_chooses_no_private_address_for_its_streams(
    victim: Victim, names: dict[str, list[list[str]]]
) -> None:
    """Ours: the address that a workspace gives is judged when it is dialled, redirects included."""
    names["box.example"] = [["127.0.0.1"]]
    streams = FetchedStreams(PUBLIC)
    try:
        for host in ("127.0.0.1", "localhost", "box.example"):
            with pytest.raises(AgentUnavailable):
                await streams.fetch(f"http://{host}:{victim.port}", "s")
        assert victim.asked == []
        victim.redirect = "http://127.0.0.3/"
        local = FetchedStreams(parse_outbound(["127.0.0.1"]))
        with pytest.raises(AgentUnavailable, match=r"127\.0\.0\.3"):
            await local.fetch(f"http://127.0.0.1:{victim.port}", "s")
        await local.close()
    finally:
        await streams.close()


async def test_no_socket_of_this_machine_is_connected_to() -> None:
    """Ours: neither by path."""
    with pytest.raises(Exception, match="no socket"):
        await GuardedNetwork(LOCAL).connect_unix_socket("/run/x")
