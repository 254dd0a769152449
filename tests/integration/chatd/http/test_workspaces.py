"""Which workspace a chat works on, and what was given to it."""

from uuid import uuid4

from chatd.store import accounts
from tests.integration.chatd.http.site import API, Site, bearer, text

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


async def patch(site: Site, chat_id: str, workspace_id: object) -> int:
    """Give the owner's chat another workspace; the status."""
    body = {"workspace_id": workspace_id and str(workspace_id)}
    return await site.status("PATCH", f"{API}/chats/{chat_id}", bearer(site.tokens["owner"]), json=body)


async def test_a_chat_gets_the_workspace_that_is_named_and_may_get_another(site: Site) -> None:
    """Spec 3: workspace_id at creation and in a patch; null takes it away; only one's own."""
    second = await site.store.write(accounts.ensure_agent, site.ids["owner"], "second", now=site.store.now())
    foreign = await site.store.write(accounts.ensure_agent, site.ids["other"], "x", now=site.store.now())
    workspaces = await site.ask("GET", "/workspaces", who="owner")
    body = text("say hello", workspace_id=str(second))
    chat = await site.ask("POST", "/chats", who="owner", status=201, json=body)
    for wrong in (foreign, uuid4()):
        wrong_body = text("x", workspace_id=str(wrong))
        await site.ask("POST", "/chats", who="owner", status=400, json=wrong_body)
        assert await patch(site, chat["id"], wrong) == 400
    bound = [chat["agent_id"]]
    for workspace_id in (site.agent_id, None):
        assert await patch(site, chat["id"], workspace_id) == 204
        bound.append((await site.ask("GET", f"/chats/{chat['id']}", who="owner")).get("agent_id"))

    assert [(one["name"], one["connected"]) for one in workspaces] == [("box", False), ("second", False)]
    assert bound == [str(second), str(site.agent_id), None]
    assert await site.ask("GET", "/workspaces", who="me") == []


async def test_an_archived_chat_keeps_its_workspace(site: Site) -> None:
    """Ours: it works on nothing."""
    path = f"{API}/chats/{await site.quiet_chat()}"
    mine = bearer(site.tokens["me"])

    assert await site.status("PATCH", path, mine, json={"archived": True}) == 204
    assert await site.status("PATCH", path, mine, json={"workspace_id": None}) == 400


async def test_one_chat_tells_of_what_was_given_to_it(site: Site) -> None:
    """Spec 4.1: files, on the single chat only; queued_for_capacity is false for one at rest."""
    headers = bearer(site.tokens["me"]) | {
        "Content-Type": "image/png", "Content-Disposition": 'attachment; filename="plan.png"'
    }  # fmt: skip
    async with site.http.post(f"{API}/chats/files", data=PNG, headers=headers) as answer:
        file_id = (await answer.json())["id"]
    body = {"content": [{"type": "text", "text": "say hello"}, {"type": "file", "file_id": file_id}]}
    chat_id = (await site.ask("POST", "/chats", status=201, json=body))["id"]
    await site.until(chat_id, "waiting")
    chat = await site.ask("GET", f"/chats/{chat_id}")
    (file,) = chat["files"]
    (listed,) = await site.ask("GET", "/chats")

    assert (file["id"], file["name"], file["media_type"], file["size_bytes"]) == (
        file_id, "plan.png", "image/png", len(PNG),
    )  # fmt: skip
    assert "files" not in listed
    assert chat["queued_for_capacity"] is listed["queued_for_capacity"] is False
