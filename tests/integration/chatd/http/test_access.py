"""Chats shared to read, signed downloads, proposed titles, the newest chat of each workspace."""

import hashlib
from datetime import timedelta
from uuid import UUID, uuid4

from chatd.store import spending
from chatd.store.downloads import sign_download
from tests.integration.chatd.http.site import API, Site, Story, bearer, read_socket, text

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


async def upload(site: Site, name: str = "plan.png") -> str:
    """A file of mine."""
    headers = {"Content-Type": "image/png", "Content-Disposition": f'attachment; filename="{name}"'}
    async with site.http.post(
        f"{API}/chats/files", data=PNG, headers=bearer(site.tokens["me"]) | headers
    ) as answer:
        file_id: str = (await answer.json())["id"]
        return file_id


async def test_a_shared_chat_is_read_and_not_changed(site: Site) -> None:
    """Spec 3: readable by whom it was shared with, 403 for what changes it, 404 for everybody else."""
    file_id = await upload(site)
    body = {"content": [{"type": "text", "text": "say hello"}, {"type": "file", "file_id": file_id}]}
    chat_id = (await site.ask("POST", "/chats", status=201, json=body))["id"]
    await site.until(chat_id, "waiting")
    path = f"/chats/{chat_id}"
    await site.ask("GET", path, who="other", status=404)
    await site.ask("PATCH", f"{path}/acl", status=400, json={"users": {"nobody": "read"}})
    await site.ask("PATCH", f"{path}/acl", status=400, json={"users": {"me": "read"}})
    assert (
        await site.status(
            "PATCH", f"{API}{path}/acl", bearer(site.tokens["me"]), json={"users": {"other": "read"}}
        )
        == 204
    )

    assert (await site.ask("GET", f"{path}/acl"))["users"][0]["name"] == "other"
    assert (await site.ask("GET", path))["shared"] is True
    for read in ("", "/messages", "/prompts", "/cost", "/why"):
        await site.ask("GET", path + read, who="other")
    await site.ask("GET", f"{path}/acl", who="other", status=403)
    async with site.http.get(f"{API}/chats/files/{file_id}", headers=bearer(site.tokens["other"])) as answer:
        assert await answer.read() == PNG
    for method, change in (("POST", "/messages"), ("POST", "/interrupt"), ("POST", "/clear"), ("PATCH", "")):
        await site.ask(method, path + change, who="other", status=403, json=text("x"))
    await site.ask("PUT", f"{path}/context", who="other", status=403)
    assert await site.ask("GET", "/chats", who="other") == []
    (listed,) = await site.ask("GET", "/chats", who="other", params={"q": "source:shared_with_me"})
    assert listed["id"] == chat_id


async def test_a_reader_leaves_the_owner_s_mark_and_goes_when_sent_away(site: Site) -> None:
    """Spec 3, 9.20: shared readers never clear unread; one who may no longer read hears nothing more."""
    chat_id = await site.quiet_chat()
    patch = f"{API}/chats/{chat_id}/acl"
    await site.status("PATCH", patch, bearer(site.tokens["me"]), json={"users": {"other": "read"}})
    mine, site.tokens["me"] = site.tokens["me"], site.tokens["other"]
    story = await read_socket(site, chat_id, Story())
    site.tokens["me"] = mine

    assert len(story.messages) == 2
    assert (await site.ask("GET", f"/chats/{chat_id}"))["has_unread"] is True
    await site.status("PATCH", patch, bearer(mine), json={"users": {"other": None}})
    await site.ask("GET", f"/chats/{chat_id}", who="other", status=404)
    await site.ask("GET", f"/chats/{chat_id}/stream", who="other", status=404)


async def test_a_signed_address_gives_the_bytes_for_a_while(site: Site) -> None:
    """Spec 3: sha256, size, name and type are told; the address is outside of key auth."""
    file_id = await upload(site, "plän.png")
    told = await site.ask("POST", f"/chats/files/{file_id}/download-url")
    async with site.http.get(f"/{told['url']}") as answer:
        data, headers = await answer.read(), answer.headers
    store, now = site.store, site.store.now()
    late = await store.write(
        sign_download,
        UUID(file_id),
        expires_at=now - timedelta(seconds=1),
        sealer=site.plane.services.sealer,
        now=now,
    )

    assert (data, told["size_bytes"], told["media_type"], told["name"]) == (PNG, 40, "image/png", "plän.png")
    assert told["sha256"] == hashlib.sha256(PNG).hexdigest()
    assert headers["Content-Disposition"].startswith("attachment")
    assert headers["Cache-Control"] == "private, no-store"
    assert await site.status("GET", f"/download/{late}", {}) == 404
    assert await site.status("GET", f"/download/x{late}", {}) == 404
    await site.ask("POST", f"/chats/files/{file_id}/download-url", who="other", status=404)


async def test_a_title_is_proposed_and_changes_nothing(site: Site) -> None:
    """Spec 3: the rehearsal model has none, so the chat's own; 409 when the limit is used up."""
    chat_id = await site.quiet_chat()
    before = await site.ask("GET", f"/chats/{chat_id}")
    assert await site.ask("POST", f"/chats/{chat_id}/title/propose") == {"title": before["title"]}
    assert (await site.ask("GET", f"/chats/{chat_id}"))["updated_at"] == before["updated_at"]
    await site.store.write(spending.set_limit, site.ids["me"], 0)
    refused = await site.ask("POST", f"/chats/{chat_id}/title/propose", status=409)

    assert refused["code"] == "usage_limit"


async def test_the_newest_chat_of_each_workspace(site: Site) -> None:
    """Spec 3: 25 at most; archived ones and other people's are left out."""
    ids = [await site.new_chat(who="owner") for _ in range(2)]
    query = {"workspace_ids": f"{site.agent_id},{uuid4()}"}
    found = await site.ask("GET", "/chats/by-workspace", who="owner", params=query)

    assert {agent_id: chat["id"] for agent_id, chat in found.items()} == {str(site.agent_id): ids[-1]}
    assert await site.ask("GET", "/chats/by-workspace", params=query) == {}
    for bad in ("x", ",".join(str(uuid4()) for _ in range(26))):
        await site.ask("GET", "/chats/by-workspace", params={"workspace_ids": bad}, status=400)
