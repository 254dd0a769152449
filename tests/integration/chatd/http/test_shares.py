"""Share links over HTTP: who makes them, what is behind them, how they end."""

import asyncio
from typing import Any

import pytest

from agentd.wire.link import Empty
from chatd.routes import misc, viewing
from chatd.routes import shares as share_routes
from computer.wire import DesktopStatus
from tests.integration.chatd.http.site import API, LIMIT_S, UPGRADE, Site, bearer


async def share(site: Site, chat_id: str) -> dict[str, Any]:
    """A new link of the owner's."""
    path = f"/chats/{chat_id}/desktop/shares"
    made: dict[str, Any] = await site.ask("POST", path, who="owner", status=201, json={"expires_in_s": 600})
    return made


async def test_only_the_owner_shares_and_revokes(site: Site) -> None:
    """The issue: nobody else's chat; the link's secret is told once."""
    chat_id = await site.new_chat(who="owner")
    path = f"/chats/{chat_id}/desktop/shares"
    made = await share(site, chat_id)
    listed = await site.ask("GET", path, who="owner")

    assert [row["id"] for row in listed] == [made["id"]]
    assert made["url"].startswith("share/")
    assert "url" not in listed[0]
    await site.ask("POST", path, who="other", json={}, status=404)
    await site.ask("GET", path, who="other", status=404)
    await site.ask("DELETE", f"{path}/{made['id']}", who="other", status=404)
    await site.ask("DELETE", f"{path}/nonsense", who="owner", status=404)
    await site.ask("DELETE", f"{path}/{made['id']}", who="owner")
    assert await site.ask("GET", path, who="owner") == []


@pytest.mark.parametrize("seconds", [0, -1, 31 * 24 * 3600, "soon"])
async def test_a_link_s_life_is_bounded(site: Site, seconds: object) -> None:
    """The issue: expiring, always."""
    chat_id = await site.new_chat(who="owner")

    await site.ask(
        "POST", f"/chats/{chat_id}/desktop/shares", who="owner", json={"expires_in_s": seconds}, status=400
    )


async def test_a_chat_without_a_workspace_has_nothing_to_share(site: Site) -> None:
    """Ours: 400, as its desktop."""
    chat_id = await site.new_chat()

    await site.ask("POST", f"/chats/{chat_id}/desktop/shares", json={}, status=400)


async def test_a_link_s_viewer_may_only_look(site: Site) -> None:
    """The issue: view-only, told to the workspace, which enforces it; no login, and no clipboard."""
    asked: list[dict[str, Any]] = []

    async def opened(params: dict[str, Any]) -> Empty:
        asked.append(params)
        raise ConnectionError

    async def status(_: dict[str, Any]) -> DesktopStatus:
        return DesktopStatus(
            name="main", state="running", backend="xvnc", geometry="1x1", pids={"xvnc": 1}, control="Ann"
        )

    chat_id = await site.new_chat(who="owner")
    url = "/" + (await share(site, chat_id))["url"]
    async with site.workspace(streams_open=opened, desktop_status=status):
        await site.status("GET", f"{url}/desktop?seat=x&take_control=1", UPGRADE)
        async with site.http.get(f"{url}/status") as answer:
            told = await answer.json()
    (row,) = await site.ask("GET", f"/chats/{chat_id}/desktop/shares", who="owner")

    assert (asked[0]["viewer"]["may"], asked[0]["viewer"]["sees_clipboard"]) == ("view", False)
    assert asked[0]["chat_id"] == chat_id
    assert set(told) == {"name", "state", "geometry", "viewers", "backend"}
    assert row["views"] == 1


async def test_an_ended_link_is_404_and_its_viewers_are_sent_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: revoked → closed within seconds."""
    monkeypatch.setattr(viewing, "RECHECK_S", 0.05)

    async def dial(stream_id: str) -> None:
        path = f"/api/agent/streams/{stream_id}"
        async with site.http.ws_connect(path, headers=bearer(site.tokens["agent"])) as stream:
            await stream.receive()

    async def opened(params: dict[str, Any]) -> Empty:
        dialling.append(asyncio.get_running_loop().create_task(dial(params["stream_id"])))
        return Empty()

    dialling: list[asyncio.Task[None]] = []
    chat_id = await site.new_chat(who="owner")
    made = await share(site, chat_id)
    async with asyncio.timeout(LIMIT_S), site.workspace(streams_open=opened):
        async with site.http.ws_connect(f"/{made['url']}/desktop") as viewer:
            await site.ask("DELETE", f"/chats/{chat_id}/desktop/shares/{made['id']}", who="owner")
            end = await viewer.receive()
        await asyncio.gather(*dialling)
        statuses = [
            await site.status("GET", f"/{made['url']}{end}", UPGRADE if end == "/desktop" else {})
            for end in ("/status", "/desktop")
        ]

    assert (end.data, end.extra) == (1008, "you may not watch this any more")
    assert statuses == [404, 404]


async def test_the_link_s_page_holds_no_secret_and_is_not_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Ours: the same page for every token, never cached, never indexed."""
    (tmp_path / "share.html").write_text("<p>desktop")
    monkeypatch.setattr(share_routes, "PAGE_DIR", tmp_path)
    assert tmp_path != misc.PAGE_DIR
    async with site.http.get("/share/whatever") as answer:
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert await site.status("GET", f"{API}/share/whatever", {}) == 401
