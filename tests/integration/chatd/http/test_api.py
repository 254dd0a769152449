"""The API of chats: every route's way to work, and what it refuses."""

import asyncio
import io
import json
import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from chatd.constants import MAX_FILE_BYTES, MAX_FILES
from chatd.store import schema, spending
from chatd.store.machine import ChatTx
from chatd.wire import FaultKind
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer, text

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 32


async def messages(site: Site, chat_id: str) -> list[dict[str, Any]]:
    """The chat's history."""
    page = await site.ask("GET", f"/chats/{chat_id}/messages")
    rows: list[dict[str, Any]] = page["messages"]
    return rows


async def put(site: Site, chat_id: str, **columns: Any) -> None:
    """Give the chat's row these values."""
    table = schema.chats
    change = table.update().where(table.c.id == uuid.UUID(chat_id)).values(columns)

    def run(connection: sa.Connection) -> None:
        connection.execute(change)

    await site.store.write(run)


async def make_busy(site: Site, chat_id: str) -> None:
    """Let the chat be at work, owned by a runner that lives (and does nothing)."""

    def run(connection: sa.Connection) -> None:
        tx = ChatTx.lock(connection, uuid.UUID(chat_id), now=site.store.now())
        tx.acquire(worker_id=uuid.uuid4(), runner_id=uuid.uuid4())
        tx.flush()
        mine = schema.chats.c.id == uuid.UUID(chat_id)
        connection.execute(schema.chats.update().where(mine).values(status="running"))

    await site.store.write(run)


async def empty(site: Site, method: str, path: str, status: int = 204, **kwargs: Any) -> None:
    """A request whose answer has no body."""
    code = await site.status(method, API + path, bearer(site.tokens["me"]), **kwargs)
    assert code == status


async def upload(site: Site, data: bytes, *, status: int = 201, who: str = "me", **headers: str) -> Any:
    """Upload a file."""
    named = {"Content-Type": "image/png"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.http.post(
        f"{API}/chats/files", data=io.BytesIO(data), headers=bearer(site.tokens[who]) | named
    ) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def test_an_edit_answers_anew_and_tells_what_is_gone(site: Site) -> None:
    """Spec 3: the new row, all that people see of it, and the ids that were deleted."""
    chat_id = await site.quiet_chat()
    asked, answered = await messages(site, chat_id)
    edited = await site.ask(
        "PATCH", f"/chats/{chat_id}/messages/{asked['id']}", json=text("say something else")
    )
    await site.until(chat_id, "waiting")
    after = await messages(site, chat_id)

    assert edited["deleted_message_ids"] == [asked["id"], answered["id"]]
    assert edited["message"] == edited["messages"][-1] == after[0]
    assert [message["role"] for message in after] == ["user", "assistant"]
    assert after[0]["content"] == [{"type": "text", "text": "say something else"}]


async def test_what_can_t_be_edited(site: Site) -> None:
    """Spec 3: 400 for an answer and for what is no id, 404 for what is gone or never was."""
    chat_id = await site.quiet_chat()
    asked, answered = await messages(site, chat_id)
    for message_id, status in ((answered["id"], 400), (10**9, 404), ("x", 400), ("9" * 50, 400)):
        path = f"/chats/{chat_id}/messages/{message_id}"
        await site.ask("PATCH", path, status=status, json=text("no"))
    await site.ask("PATCH", f"/chats/{chat_id}/messages/{asked['id']}", json=text("yes"))
    await site.ask("PATCH", f"/chats/{chat_id}/messages/{asked['id']}", status=404, json=text("no"))


async def test_waiting_messages_are_seen_taken_back_and_let_go_first(site: Site) -> None:
    """Spec 3: 204 for a deletion, 202 for a promotion, 404 for what waits no more."""
    chat_id = await site.quiet_chat()
    await make_busy(site, chat_id)
    sent = [
        (await site.ask("POST", f"/chats/{chat_id}/messages", json=text(value)))["queued_message"]
        for value in ("one", "two", "three")
    ]
    await empty(site, "DELETE", f"/chats/{chat_id}/queue/{sent[0]['id']}")
    promoted = await site.ask("POST", f"/chats/{chat_id}/queue/{sent[2]['id']}/promote", status=202)
    page = await site.ask("GET", f"/chats/{chat_id}/messages")
    await site.ask("DELETE", f"/chats/{chat_id}/queue/{sent[0]['id']}", status=404)

    assert promoted == {"messages": []}
    assert [row["id"] for row in page["queued_messages"]] == [sent[2]["id"], sent[1]["id"]]
    assert (await site.ask("GET", f"/chats/{chat_id}"))["status"] == "interrupting"
    quiet = await site.quiet_chat()
    await site.ask("DELETE", f"/chats/{quiet}/queue/1", status=409)


async def test_a_chat_is_renamed_labelled_and_found(site: Site) -> None:
    """Spec 3: PATCH answers 204; lists filter by words, flags and labels."""
    first, second = await site.quiet_chat(), await site.quiet_chat()
    await empty(site, "PATCH", f"/chats/{first}", json={"title": " Über alles ", "labels": {"a/b": "x y"}})

    async def found(**params: Any) -> list[str]:
        chats = await site.ask("GET", "/chats", params=params)
        return [chat["id"] for chat in chats]

    chat = await site.ask("GET", f"/chats/{first}")
    assert (chat["title"], chat["labels"]) == ("Über alles", {"a/b": "x y"})
    assert await found() == [first, second]
    assert await found(q="alles") == await found(q='title:"Über alles"') == [first]
    assert await found(q="100%") == []
    assert await found(label="a/b:x y") == [first]
    assert await found(label="a/b:x") == await found(label="a:x y") == []
    assert await found(limit=1) == [first]
    assert await found(after_id=first) == await found(offset=1) == [second]
    for params in ({"q": "colour:red"}, {"q": '"'}, {"label": "x"}, {"label": ".:x"}, {"limit": 0}, {"x": 1}):
        await site.ask("GET", "/chats", params=params, status=400)
    await site.ask("GET", "/chats", params={"after_id": str(uuid.uuid4())}, status=404)


async def test_pins_are_numbered_without_gaps(site: Site) -> None:
    """Spec 3: appended, moved within the pins there are, closed when one goes; pinned chats come first."""
    chats = [await site.quiet_chat() for _ in range(4)]

    async def pin(index: int, position: int) -> None:
        await empty(site, "PATCH", f"/chats/{chats[index]}", json={"pin_order": position})

    async def pins() -> list[tuple[int, int]]:
        listed = await site.ask("GET", "/chats")
        return [(chats.index(chat["id"]), chat["pin_order"]) for chat in listed if chat["pin_order"]]

    for index in (0, 1, 2):
        await pin(index, 1)
    assert await pins() == [(0, 1), (1, 2), (2, 3)]
    await pin(2, 1)
    assert await pins() == [(2, 1), (0, 2), (1, 3)]
    await pin(2, 99)
    assert await pins() == [(0, 1), (1, 2), (2, 3)]
    await pin(1, 0)
    assert await pins() == [(0, 1), (2, 2)]
    assert [chat["id"] for chat in await site.ask("GET", "/chats")][:2] == [chats[0], chats[2]]
    for bad in (-1, "x", 2**40):
        await site.ask("PATCH", f"/chats/{chats[3]}", json={"pin_order": bad}, status=400)


async def test_archiving_puts_a_chat_away(site: Site) -> None:
    """Spec 3: out of the list, unpinned, closed for messages; 400 when it is so already, 409 while busy."""
    chat_id = await site.quiet_chat()
    path = f"/chats/{chat_id}"
    await empty(site, "PATCH", path, json={"pin_order": 1})
    await site.ask("PATCH", path, json={"archived": False}, status=400)
    await empty(site, "PATCH", path, json={"archived": True})
    chat = await site.ask("GET", path)

    assert (chat["archived"], chat["pin_order"]) == (True, 0)
    assert await site.ask("GET", "/chats") == []
    assert len(await site.ask("GET", "/chats", params={"q": "archived:true"})) == 1
    await site.ask("PATCH", path, json={"archived": True}, status=400)
    await site.ask("PATCH", path, json={"pin_order": 1}, status=400)
    await site.ask("POST", f"{path}/messages", json=text("x"), status=400)
    await site.ask("PATCH", f"{path}/messages/1", json=text("x"), status=400)
    await empty(site, "PATCH", path, json={"archived": False})
    await make_busy(site, chat_id)
    await site.ask("PATCH", path, json={"archived": True}, status=409)


async def test_another_user_s_chat_is_not_there_whatever_is_asked(site: Site) -> None:
    """Spec 3: 404 everywhere."""
    chat_id = await site.quiet_chat()
    chat = f"/chats/{chat_id}"
    asks: list[tuple[str, str, Any]] = [
        ("GET", chat, None),
        ("PATCH", chat, {"title": "x"}),
        ("GET", f"{chat}/messages", None),
        ("POST", f"{chat}/messages", text("x")),
        ("PATCH", f"{chat}/messages/1", text("x")),
        ("GET", f"{chat}/prompts", None),
        ("GET", f"{chat}/cost", None),
        ("GET", f"{chat}/stream", None),
        ("DELETE", f"{chat}/queue/1", None),
        ("POST", f"{chat}/queue/1/promote", None),
        ("POST", f"{chat}/interrupt", None),
        ("POST", f"{chat}/tool-results", {"results": [{"tool_call_id": "a", "output": 1}]}),
        ("POST", f"{chat}/clear", None),
        ("POST", f"{chat}/reconcile-invalid", None),
    ]
    for method, path, body in asks:
        await site.ask(method, path, who="other", status=404, json=body)


async def test_messages_are_paged_both_ways(site: Site) -> None:
    """Spec 3: before_id gives the newest first; the queue comes only without a cursor."""
    chat_id = await site.quiet_chat()
    first, second = await messages(site, chat_id)

    async def page(**params: Any) -> tuple[list[int], bool]:
        answer = await site.ask("GET", f"/chats/{chat_id}/messages", params=params)
        return [row["id"] for row in answer["messages"]], answer["has_more"]

    assert await page(before_id=2**50) == ([second["id"], first["id"]], False)
    assert await page(before_id=2**50, limit=1) == ([second["id"]], True)
    assert await page(after_id=first["id"], before_id=second["id"]) == ([], False)
    prompts = await site.ask("GET", f"/chats/{chat_id}/prompts")
    assert prompts == {"prompts": ["say hello"]}


async def test_answers_are_unread_until_the_owner_looks(site: Site) -> None:
    """Spec 3: the cursor moves when the owner's stream opens and closes."""
    chat_id = await site.quiet_chat()
    before = await site.ask("GET", f"/chats/{chat_id}")
    unread = await site.ask("GET", "/chats", params={"q": "unread:true"})
    async with site.http.ws_connect(f"{API}/chats/{chat_id}/stream", headers=bearer(site.tokens["me"])) as ws:
        await ws.receive(timeout=LIMIT_S)
    after = await site.ask("GET", f"/chats/{chat_id}")

    assert (before["has_unread"], after["has_unread"]) == (True, False)
    assert [chat["id"] for chat in unread] == [chat_id]
    assert await site.ask("GET", "/chats", params={"q": "unread:true"}) == []


async def test_a_repeated_request_happens_once(site: Site) -> None:
    """Ours: an Idempotency-Key gives the first answer again; for another request it is refused."""
    headers = {"Idempotency-Key": "k1"}

    async def ask(path: str, value: str, status: int) -> dict[str, Any]:
        own = bearer(site.tokens["me"]) | headers
        async with site.http.post(API + path, json=text(value), headers=own) as answer:
            assert answer.status == status, await answer.text()
            body: dict[str, Any] = await answer.json()
            return body

    chats = [await ask("/chats", "say hello", 201) for _ in range(2)]
    chat_id = chats[0]["id"]
    await site.until(chat_id, "waiting")
    path = f"/chats/{chat_id}/messages"
    sent = await asyncio.gather(*(ask(path, "say more", 200) for _ in range(3)))
    await site.until(chat_id, "waiting")

    assert {chat["id"] for chat in chats} == {chat_id}
    assert sent[0] == sent[1] == sent[2]
    assert [row["role"] for row in await messages(site, chat_id)].count("user") == 2
    refused = await ask(path, "say other", 409)
    assert refused["code"] == "idempotency_key_reused"


async def test_uploads_are_checked_kept_and_shown_to_the_model(site: Site) -> None:
    """Spec 3: declared and sniffed type, size, name; the part carries the stored name and type."""
    name = "attachment; filename*=UTF-8''b%C3%BCro%2F..%2Fplan.png"
    file_id = (await upload(site, PNG, Content_Disposition=name))["id"]
    body = {"content": [{"type": "text", "text": "say hello"}, {"type": "file", "file_id": file_id}]}
    chat = await site.ask("POST", "/chats", json=body, status=201)
    await site.until(chat["id"], "waiting")
    (asked, *_) = await messages(site, chat["id"])
    async with site.http.get(f"{API}/chats/files/{file_id}", headers=bearer(site.tokens["me"])) as answer:
        data, kind = await answer.read(), answer.content_type

    expected = {"type": "file", "media_type": "image/png", "file_id": file_id, "name": "plan.png"}
    assert asked["content"][1] == expected
    assert (data, kind) == (PNG, "image/png")
    await site.ask("GET", f"/chats/files/{file_id}", who="other", status=404)
    await site.ask("POST", "/chats", json=body, status=400)
    foreign = (await upload(site, PNG, who="other"))["id"]
    body["content"][1]["file_id"] = foreign
    await site.ask("POST", f"/chats/{chat['id']}/messages", json=body, status=400)


@pytest.mark.parametrize(
    ("kind", "data", "status"),
    [
        ("text/html", b"<b>", 400),
        ("image/svg+xml", b"<svg/>", 400),
        ("image/png", b"no png", 400),
        ("image/png", b"", 400),
        ("text/plain", b"\xff\xfe", 400),
        ("text/plain", b"a\x00b", 400),
        ("application/pdf", PNG, 400),
        ("image/png", PNG + b"0" * MAX_FILE_BYTES, 413),
        ("text/markdown", b"# x", 201),
        ("application/json", b"{}", 201),
        ("image/webp", b"RIFF0000WEBPVP8 ", 201),
    ],
)
async def test_what_an_upload_may_be(site: Site, kind: str, data: bytes, status: int) -> None:
    """Spec 3, 8: pictures, text, PDF, by what is in them; 10 MiB."""
    await upload(site, data, status=status, Content_Type=kind)


async def test_the_oldest_uploads_go_when_a_chat_has_too_many(site: Site) -> None:
    """Spec 3: evicted with their bytes, in the same transaction; an edit that needs one is refused."""
    chat_id = await site.quiet_chat()
    ids = [(await upload(site, PNG))["id"] for _ in range(MAX_FILES + 1)]
    for batch in (ids[:1], ids[1:]):
        body = {"content": [{"type": "file", "file_id": file_id} for file_id in batch]}
        await site.ask("POST", f"/chats/{chat_id}/messages", json=body)
        await site.until(chat_id, "waiting", "error")
    (_, _, first, *_) = await messages(site, chat_id)

    await site.ask("GET", f"/chats/files/{ids[0]}", status=404)
    assert await site.status("GET", f"{API}/chats/files/{ids[1]}", bearer(site.tokens["me"])) == 200
    again = {"content": [{"type": "file", "file_id": ids[0]}]}
    await site.ask("PATCH", f"/chats/{chat_id}/messages/{first['id']}", json=again, status=400)


async def test_a_used_up_limit_is_told_in_numbers(site: Site) -> None:
    """Spec 3: 409 with what was spent, the limit and when it ends; on create, send and edit."""
    chat_id = await site.quiet_chat()
    asked, _ = await messages(site, chat_id)
    await site.store.write(spending.set_limit, site.ids["me"], 0)
    for method, path in (
        ("POST", "/chats"),
        ("POST", f"/chats/{chat_id}/messages"),
        ("PATCH", f"/chats/{chat_id}/messages/{asked['id']}"),
    ):
        refused = await site.ask(method, path, json=text("x"), status=409)
        assert (refused["code"], refused["spent_micros"], refused["limit_micros"]) == ("usage_limit", 0, 0)
        assert refused["message"]
        assert refused["resets_at"]
    await site.ask("GET", f"/chats/{chat_id}/cost")
    await site.store.write(spending.set_limit, site.ids["me"], None)
    await site.ask("POST", f"/chats/{chat_id}/messages", json=text("x"))


async def test_the_client_s_tools_are_answered_over_http(site: Site) -> None:
    """Spec 3: 204; 400 for results that do not fit, 409 when nothing waits."""
    chat_id = await site.quiet_chat()
    path = f"/chats/{chat_id}/tool-results"
    await site.ask("POST", path, json={"results": [{"tool_call_id": "a", "output": 1}]}, status=409)
    await site.ask("POST", path, json={"results": []}, status=400)


async def test_a_cleared_chat_goes_on_and_an_invalid_one_is_repaired(site: Site) -> None:
    """Spec 3: 200 with the chat; 409 when there is nothing to repair, 400 for an archived one."""
    chat_id = await site.quiet_chat()
    await site.ask("POST", f"/chats/{chat_id}/reconcile-invalid", status=409)
    cleared = await site.ask("POST", f"/chats/{chat_id}/clear")
    await put(site, chat_id, status="paused")
    await site.ask("POST", f"/chats/{chat_id}/messages", json=text("x"), status=409)
    repaired = await site.ask("POST", f"/chats/{chat_id}/reconcile-invalid")

    assert (cleared["status"], repaired["status"]) == ("waiting", "error")
    assert "paused" in repaired["last_error"]["detail"]


async def test_file_references_stay_structured_for_people(site: Site) -> None:
    """Spec 4.1: stored as parts; only the model reads them as text."""
    reference = {
        "type": "file-reference",
        "file_name": "a.py",
        "start_line": 1,
        "end_line": 3,
        "content": "x",
    }
    body = {"content": [{"type": "text", "text": "say hello"}, reference]}
    chat = await site.ask("POST", "/chats", json=body, status=201)
    await site.until(chat["id"], "waiting")

    assert (await messages(site, chat["id"]))[0]["content"][1] == reference


async def test_the_api_describes_itself(site: Site) -> None:
    """Issue: OpenAPI 3.1 of every described route, and a page for people."""
    async with site.http.get("/api/openapi.json") as answer:
        document = await answer.json()
    async with site.http.get("/api/docs") as answer:
        page, policy = await answer.text(), answer.headers["Content-Security-Policy"]
    refs = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}

    assert document["openapi"] == "3.1.0"
    assert refs <= document["components"]["schemas"].keys()
    # Clients switch on the kinds of failures: a closed set.
    assert set(document["components"]["schemas"]["FaultKind"]["enum"]) == set(FaultKind)
    assert f"{API}/chats/{{chat_id}}/queue/{{queued_id}}/promote" in document["paths"]
    assert "<script" not in page
    assert "default-src 'none'" in policy
