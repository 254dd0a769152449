"""What a control plane that was given no settings runs by, as requests, streams and workers meet it."""

import asyncio

from aiohttp import WSCloseCode

from chatd.app import make_web_app
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer


async def test_what_runs_without_settings_is_what_the_specification_says(site: Site) -> None:
    """Spec 8; 9, complaint 12: wrong intervals were shipped from an inner package's defaults."""
    services = site.plane.services
    settings, patience = services.settings, services.patience
    app = make_web_app(services)

    assert app._client_max_size == 8 * 2**20
    assert (patience.startup_s, patience.silence_s) == (60, 600)
    assert (settings.acquire_interval_s, settings.acquire_batch) == (1, 10)
    assert (settings.heartbeat_interval_s, settings.lease_s) == (60, 300)
    assert (settings.max_steps, settings.max_attempts) == (1200, 25)
    assert (settings.max_running_chats, settings.max_running_agents) == (100, 200)
    assert (settings.threshold(200_000), settings.threshold(500_000)) == (70, 30)
    assert settings.wait_agent_timeout_s == 300


async def test_a_client_may_send_4_kib_in_a_frame(site: Site) -> None:
    """Ours (spec 8: 4 MiB): it has nothing to say on a stream."""
    chat_id = await site.quiet_chat()
    path = f"{API}/chats/{chat_id}/stream"
    socket = await site.http.ws_connect(path, headers=bearer(site.tokens["me"]))
    async with asyncio.timeout(LIMIT_S), socket:
        await socket.receive_str()
        await socket.send_str("x" * 4000)
        await site.ask("POST", f"/chats/{chat_id}/clear")
        await socket.receive_str()
        await socket.send_str("x" * 4097)
        async for _ in socket:
            pass

    assert socket.close_code == WSCloseCode.MESSAGE_TOO_BIG
