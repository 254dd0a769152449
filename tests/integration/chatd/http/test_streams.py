"""Live streams: WebSocket, SSE and the list tell the same story."""

import asyncio
import json
import socket
from typing import Any
from uuid import UUID

import pytest
from aiohttp import WSMsgType

from chatd.client import ChatClient
from chatd.store import queries
from chatd.store.rows import NewMessage
from chatd.store.store import NewChat, Notice
from chatd.wire import TextPart, stream_event_adapter
from tests.integration.chatd.http.site import (
    API,
    LIMIT_S,
    UPGRADE,
    Site,
    Story,
    bearer,
    read_socket,
    read_sse,
    text,
)


async def test_both_streams_and_the_list_tell_the_same_story(site: Site) -> None:
    """Spec 5.3: durable events in id order, whatever the transport."""
    chat_id = await site.new_chat("say one two three")
    stories = await asyncio.gather(
        read_socket(site, chat_id, Story()),
        read_sse(site, chat_id, Story()),
        read_sse(site, chat_id, Story()),
    )
    late = await read_socket(site, chat_id, Story())
    page = await site.ask("GET", f"/chats/{chat_id}/messages")

    listed = [message["id"] for message in page["messages"]]
    assert [message["role"] for message in page["messages"]] == ["user", "assistant"]
    for story in (*stories, late):
        assert list(story.messages) == listed
        assert story.messages == late.messages
        assert story.status == "waiting"
        assert story.preview == ""
        assert all("one two three".startswith(preview) for preview in story.previews)
    dumped = [message.model_dump(mode="json", exclude_none=True) for message in late.messages.values()]
    assert dumped == page["messages"]


async def test_a_watcher_sees_the_next_turn(site: Site) -> None:
    """Spec 5.3: a stream goes on from turn to turn."""
    chat_id = await site.quiet_chat()
    path = f"{API}/chats/{chat_id}/stream"
    story = Story()
    async with site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as socket:
        await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say again"))
        async with asyncio.timeout(LIMIT_S):
            while len(story.messages) < 4 or not story.is_over():
                for event in json.loads((await socket.receive()).data):
                    story.take(stream_event_adapter.validate_python(event))

    assert [message.role for message in story.messages.values()] == ["user", "assistant"] * 2


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_a_client_resumes_behind_what_it_has(site: Site, transport: str) -> None:
    """Spec 5.6: after_id or Last-Event-ID; nothing is sent twice, nothing is left out."""
    chat_id = await site.quiet_chat()
    await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say more"))
    whole = await read_socket(site, chat_id, Story())
    while len(whole.messages) < 4:
        whole = await read_socket(site, chat_id, Story())
    ids = list(whole.messages)
    if transport == "socket":
        rest = await read_socket(site, chat_id, Story(), f"?after_id={ids[1]}")
    else:
        rest = await read_sse(site, chat_id, Story(), Last_Event_ID=str(ids[1]))

    assert list(rest.messages) == ids[2:]
    assert {**dict(list(whole.messages.items())[:2]), **rest.messages} == whole.messages


@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 500, "\u0661"])
async def test_a_senseless_last_event_id_is_no_failure(site: Site, value: str) -> None:
    """Ours: browsers send back what they once got; anything else starts from the beginning or the end."""
    chat_id = await site.quiet_chat()
    headers = bearer(site.tokens["me"]) | {"Last-Event-ID": value}
    async with site.http.get(f"{API}/chats/{chat_id}/stream", headers=headers) as answer:
        async with asyncio.timeout(LIMIT_S):
            first = await answer.content.readuntil(b"\n\n")

    assert answer.status == 200
    assert b"data: {" in first


async def test_what_a_client_says_on_a_stream_is_ignored(site: Site) -> None:
    """Ours: it has nothing to say; too much of it ends the stream."""
    chat_id = await site.quiet_chat()
    path = f"{API}/chats/{chat_id}/stream"
    async with site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as socket:
        await socket.send_str("hello")
        assert (await socket.receive(LIMIT_S)).type is WSMsgType.TEXT
        await socket.send_str("x" * 10_000)
        async with asyncio.timeout(LIMIT_S):
            while (message := await socket.receive()).type is WSMsgType.TEXT:
                continue

    assert message.type in {WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING}


async def test_streams_that_ended_leave_nothing_behind(site: Site) -> None:
    """Ours: no subscription outlives its connection."""
    chat_id = await site.quiet_chat()
    await read_socket(site, chat_id, Story())
    await read_sse(site, chat_id, Story())
    # An abandoned SSE writer notices at its next event that its client is gone.
    await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say hi"))
    await site.until(chat_id, "waiting")
    hub = site.plane.services.hub
    async with asyncio.timeout(LIMIT_S):
        while UUID(chat_id) in hub._by_chat:  # noqa: ASYNC110 -- what is held is the point
            await asyncio.sleep(0)


async def test_watch_tells_the_owner_and_nobody_else(site: Site) -> None:
    """Spec 3: one JSON array a frame; every chat that is created or changes."""
    path = f"{API}/chats/watch"
    seen: list[dict[str, Any]] = []
    async with (
        site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as mine,
        site.http.ws_connect(path, headers=bearer(site.tokens["other"])) as other,
    ):
        async with asyncio.timeout(LIMIT_S):
            chat_id = await site.new_chat()
            while not seen or seen[-1]["status"] != "waiting":
                events = json.loads((await mine.receive()).data)
                assert {event["type"] for event in events} == {"chat"}
                seen += [event["chat"] for event in events]
            theirs = await site.new_chat(who="other")
            first = json.loads((await other.receive()).data)

    assert {chat["id"] for chat in seen} == {chat_id}
    assert [event["chat"]["id"] for event in first] == [theirs]


async def test_watch_tells_what_changed(site: Site) -> None:
    """Spec 3: created, status_change, title_change, deleted; a read mark is none of these."""
    path = f"{API}/chats/watch"
    chat_id = await site.quiet_chat()
    async with (
        site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as watching,
        ChatClient(site.plane.url, site.tokens["me"]) as client,
    ):

        async def told(kind: str) -> list[str]:
            async with asyncio.timeout(LIMIT_S):
                while True:
                    for event in json.loads((await watching.receive()).data):
                        if kind in event["kinds"]:
                            return sorted(event["kinds"])

        await client.change_chat(UUID(chat_id), title="new")
        renamed = await told("title_change")
        await client.change_chat(UUID(chat_id), archived=True)
        put_away = await told("deleted")
        await client.change_chat(UUID(chat_id), archived=False)
        taken_out = await told("created")
        await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say more"))
        busy = await told("status_change")
        tools = [{"name": "ask"}]
        asking = await site.ask("POST", "/chats", status=201, json=text("say", unsafe_dynamic_tools=tools))
        made = await told("created")

    assert (renamed, put_away, taken_out, busy) == (
        ["title_change"], ["deleted"], ["created"], ["status_change"],
    )  # fmt: skip
    assert "created" in made
    assert asking["status"] == "running"


async def test_an_interrupt_stops_the_children_too(site: Site) -> None:
    """Ours: the desktop must come to rest when a person says stop."""
    async with site.workspace():
        parent = await site.new_chat("say hello", who="owner")
        await site.until(parent, "waiting")
    chat = await site.store.read(queries.get_chat, UUID(parent), user_id=site.ids["owner"])
    values: dict[str, Any] = {"agent_id": site.agent_id, "parent": chat, "title": "child"}
    new = NewChat(
        owner_id=chat.owner_id,
        model_config_id=chat.last_model_config_id,
        content=(TextPart(text="hi"),),
        **values,
    )
    child = await site.store.create_chat(new)
    await site.ask("POST", f"/chats/{parent}/messages", who="owner", json=text("x"))
    answer = await site.ask("POST", f"/chats/{parent}/interrupt", who="owner")
    await site.until(str(child.id), "waiting")
    await site.until(parent, "waiting")

    assert answer["id"] == parent
    assert [inner["id"] for inner in answer["children"]] == [str(child.id)]


async def test_a_full_turn_shows_its_queue_and_its_messages(site: Site) -> None:
    """Spec 3: messages holds every inserted row; queued messages come on the first page only."""
    chat_id = await site.quiet_chat()
    sent = await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say hi"))
    await site.until(chat_id, "waiting")
    first = await site.ask("GET", f"/chats/{chat_id}/messages?limit=1")
    rest = await site.ask("GET", f"/chats/{chat_id}/messages?after_id={first['messages'][0]['id']}")

    assert (sent["queued"], sent["queued_message"], sent["messages"]) == (False, None, [sent["message"]])
    assert (first["has_more"], len(first["messages"])) == (True, 1)
    assert (rest["has_more"], len(rest["messages"])) == (False, 3)
    assert sent["message"] in rest["messages"]


@pytest.mark.parametrize("transport", ["socket", "sse"])
async def test_a_stream_that_can_t_go_on_is_closed(
    site: Site, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """Spec 5.3: the loop ends on a failure, and the client learns of it and comes back."""
    chat_id = await site.quiet_chat()
    path, headers = f"{API}/chats/{chat_id}/stream", bearer(site.tokens["me"])

    async def fails(*_: object, **__: object) -> None:
        msg = "no disk"
        raise OSError(msg)

    row = await site.store.read(queries.read_row, UUID(chat_id))
    notice = Notice(chat_id=row["id"], owner_id=row["owner_id"], snapshot_version=99, is_runnable=False)
    async with asyncio.timeout(LIMIT_S):
        if transport == "socket":
            async with site.http.ws_connect(path, headers=headers) as socket:
                await socket.receive()
                monkeypatch.setattr(site.store, "read_shared", fails)
                site.plane.services.hub.publish(notice)
                ended = await socket.receive()
            assert ended.type is WSMsgType.CLOSE
        else:
            async with site.http.get(path, headers=headers) as answer:
                await answer.content.readuntil(b"\n\n")
                monkeypatch.setattr(site.store, "read_shared", fails)
                site.plane.services.hub.publish(notice)
                await answer.content.read()
            assert answer.content.at_eof()


@pytest.mark.parametrize("kind", ["websocket", "sse"])
async def test_a_client_that_does_not_read_is_cut_off(
    site: Site, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Spec 5.4: a subscriber that takes nothing for ten seconds; others go on, and it may come back."""
    monkeypatch.setattr("chatd.routes.streams.SUBSCRIBER_STALL_S", 0.2)
    chat_id = await site.quiet_chat()
    # More than the kernel buffers for a connection.
    long = NewMessage(role="user", content=(TextPart(text="x" * 200_000),) * 35)
    await site.store.transition(UUID(chat_id), lambda tx: tx._insert([long]))
    head = {"Host": f"127.0.0.1:{site.plane.port}"} | bearer(site.tokens["me"])
    head |= UPGRADE if kind == "websocket" else {}
    lines = [f"GET {API}/chats/{chat_id}/stream HTTP/1.1", *(f"{name}: {head[name]}" for name in head)]
    hub = site.plane.services.hub
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", site.plane.port))
        silent.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        async with asyncio.timeout(LIMIT_S):
            while UUID(chat_id) not in hub._by_chat:  # noqa: ASYNC110 -- it subscribes before it sends
                await asyncio.sleep(0.01)
            while UUID(chat_id) in hub._by_chat:  # noqa: ASYNC110 -- that it is let go of is the point
                await asyncio.sleep(0.01)
    monkeypatch.undo()
    seen = []
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        async for event in client.stream(UUID(chat_id)):
            if event.type == "message":
                seen.append(len(event.message.content))
            if len(seen) == 3:
                break

    assert seen == [1, 1, 35]
