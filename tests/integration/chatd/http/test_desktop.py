"""The desktop's route, files, and the workspace's end of the link."""

import asyncio
import uuid
from typing import Any
from uuid import UUID

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from agentd.wire.control import ControlState
from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import HELLO, Empty, HelloParams, HelloResult
from agentd.wire.peer import RpcError
from agentd.wire.upgrade import ALIVE
from chatd.agents.fetching import FetchedStreams
from chatd.outbound import LOOPBACK_NETWORKS, parse_outbound
from chatd.routes import viewing
from chatd.store import accounts, queries
from chatd.store.machine import ChatTx
from chatd.store.rows import NewFile, NewMessage
from chatd.store.store import NewChat
from chatd.wire import Chat, ChatMode, TextPart, ToolResultPart
from computer.wire import DesktopStatus
from tests.integration.chatd.http.site import API, LIMIT_S, UPGRADE, Site, bearer, frames, refuse


async def refusal(site: Site, path: str, who: str, headers: dict[str, str]) -> tuple[int, str]:
    """Status and code of a refused request."""
    async with site.http.get(API + path, headers=bearer(site.tokens[who]) | headers) as answer:
        return answer.status, (await answer.json())["code"]


async def test_a_chat_without_a_workspace_has_no_desktop(site: Site) -> None:
    """Spec 3: 400 before the upgrade."""
    chat_id = await site.new_chat()

    for path in (f"/chats/{chat_id}/desktop", f"/chats/{chat_id}/desktop/status"):
        assert await refusal(site, path, "me", UPGRADE) == (400, "bad_request")


async def test_a_workspace_that_is_away_has_no_desktop(site: Site) -> None:
    """Spec 3: 400, agent not connected."""
    chat_id = await site.new_chat(who="owner")

    for path in (f"/chats/{chat_id}/desktop", f"/chats/{chat_id}/desktop/status"):
        assert await refusal(site, path, "owner", UPGRADE) == (400, "agent_unavailable")


async def test_a_stream_that_the_workspace_refuses_is_500(site: Site) -> None:
    """Spec 3: 500 dial, still a status and no socket."""
    chat_id = await site.new_chat(who="owner")
    async with site.workspace(streams_open=refuse):
        assert await refusal(site, f"/chats/{chat_id}/desktop", "owner", UPGRADE) == (
            500,
            "agent_unavailable",
        )


async def test_the_desktop_is_a_socket_only(site: Site) -> None:
    """Ours: a plain GET is told what this route is."""
    chat_id = await site.new_chat(who="owner")
    async with site.workspace(streams_open=refuse):
        assert await refusal(site, f"/chats/{chat_id}/desktop", "owner", {}) == (400, "bad_request")


async def test_the_desktop_s_status_is_passed_on(site: Site) -> None:
    """Ours: as the workspace gives it; a refusal is 400."""

    async def status(_: dict[str, Any]) -> DesktopStatus:
        return answer

    answer = DesktopStatus(name="main", state="stopped", backend="xvnc", geometry="1280x800")
    chat_id = await site.new_chat(who="owner")
    path = f"/chats/{chat_id}/desktop/status"
    async with site.workspace(desktop_status=status):
        told = await site.ask("GET", path, who="owner")
    async with site.workspace(desktop_status=refuse):
        refused = await site.ask("GET", path, who="owner", status=400)

    assert DesktopStatus.model_validate(told) == answer
    assert refused["code"] == "agent_unavailable"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?seat=page1", {"may": "control", "name": "owner"}),
        ("?seat=page1&view_only=true", {"may": "view", "name": "owner"}),
        ("?seat=page1&take_control=1", {"may": "take", "name": "owner"}),
    ],
)
async def test_the_workspace_is_told_what_a_viewer_may(
    site: Site, query: str, expected: dict[str, str]
) -> None:
    """The issue: permission is decided before the upgrade; nobody speaks for another person's screen."""
    asked: list[dict[str, Any]] = []

    async def opened(params: dict[str, Any]) -> Empty:
        asked.append(params["viewer"])
        return await refuse(params)

    chat_id = await site.new_chat(who="owner")
    async with site.workspace(streams_open=opened):
        await refusal(site, f"/chats/{chat_id}/desktop{query}", "owner", UPGRADE)

    seat = f"{site.ids['owner']}/page1"
    assert asked == [{"seat": seat, "sees_clipboard": True, **expected}]


@pytest.mark.parametrize("query", ["?seat=a/b", "?seat=", "?view_only=perhaps", "?role=controller"])
async def test_what_a_viewer_may_not_ask_for_is_refused(site: Site, query: str) -> None:
    """Ours: 400 before the upgrade."""
    chat_id = await site.new_chat(who="owner")
    async with site.workspace():
        path = f"/chats/{chat_id}/desktop{query}"
        assert await refusal(site, path, "owner", UPGRADE) == (400, "bad_request")


async def test_control_that_another_person_has_is_409(site: Site) -> None:
    """The issue: refusal, not queueing; also for a viewer that wants control at once."""

    async def held(_: dict[str, Any]) -> Empty:
        raise RpcError(REFUSED, "Ann has control of this desktop", code="control_held")

    chat_id = await site.new_chat(who="owner")
    wish = {"wish": "take", "seat": "page1"}
    async with site.workspace(desktop_control=held, streams_open=held):
        answer = await site.ask(
            "POST", f"/chats/{chat_id}/desktop/control", who="owner", json=wish, status=409
        )
        stream = await refusal(site, f"/chats/{chat_id}/desktop?take_control=1", "owner", UPGRADE)

    assert answer == {"message": "Ann has control of this desktop", "code": "control_held"}
    assert stream == (409, "control_held")


async def test_control_is_asked_for_the_caller_s_own_page(site: Site) -> None:
    """The issue: take and give back, chat by chat."""
    asked: list[dict[str, Any]] = []

    async def changed(params: dict[str, Any]) -> ControlState:
        asked.append(params)
        return ControlState(epoch=2, seat=params["seat"], name=params["name"], ends_in_s=300)

    chat_id = await site.new_chat(who="owner")
    path = f"/chats/{chat_id}/desktop/control"
    wish = {"wish": "take", "seat": "page1"}
    async with site.workspace(desktop_control=changed):
        state = await site.ask("POST", path, who="owner", json=wish)
        await site.ask("POST", path, who="other", json=wish, status=404)
        await site.ask("POST", path, who="owner", json={"wish": "steal", "seat": "x"}, status=400)

    seat = f"{site.ids['owner']}/page1"
    assert asked == [
        {"wish": "take", "seat": seat, "name": "owner", "chat_id": chat_id, "agent_chat_id": chat_id}
    ]
    assert state == {"epoch": 2, "seat": seat, "name": "owner", "ends_in_s": 300.0}


async def test_a_workspace_is_watched_by_its_name(site: Site) -> None:
    """Ours: without a chat; another user's workspace is not found."""
    path = "/agents/box/desktop"
    async with site.workspace(streams_open=refuse):
        assert await refusal(site, path, "owner", UPGRADE) == (500, "agent_unavailable")
        assert await refusal(site, path, "other", UPGRADE) == (404, "not_found")


async def test_who_may_not_watch_any_more_is_sent_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issue: permission is checked again during long streams; the workspace's end is closed too."""
    monkeypatch.setattr(viewing, "RECHECK_S", 0.05)
    ends: asyncio.Queue[Any] = asyncio.Queue()

    async def dial(stream_id: str) -> None:
        path = f"/api/agent/streams/{stream_id}"
        async with site.http.ws_connect(path, headers=bearer(site.tokens["agent"])) as stream:
            await stream.send_bytes(b"RFB 003.008\n")
            ends.put_nowait(await stream.receive())

    async def opened(params: dict[str, Any]) -> Empty:
        dialling.append(asyncio.get_running_loop().create_task(dial(params["stream_id"])))
        return Empty()

    dialling: list[asyncio.Task[None]] = []
    chat_id = await site.new_chat(who="owner")
    token = await site.issue("api", "owner")
    path = f"{API}/chats/{chat_id}/desktop"
    async with asyncio.timeout(LIMIT_S), site.workspace(streams_open=opened):
        async with site.http.ws_connect(path, headers=bearer(token)) as viewer:
            assert await viewer.receive_bytes() == b"RFB 003.008\n"
            await site.store.write(accounts.revoke_tokens, "api", site.ids["owner"], now=site.store.now())
            end = await viewer.receive()
        agent_end = await ends.get()
        await asyncio.gather(*dialling)

    told = (1008, "you may not watch this any more")
    assert (end.type, end.data, end.extra) == (WSMsgType.CLOSE, *told)
    assert (agent_end.data, agent_end.extra) == told


async def dial_back(site: Site, stream_id: str) -> None:
    """A desktop that answers in capitals and ends after "bye"."""
    path = f"/api/agent/streams/{stream_id}"
    async with site.http.ws_connect(path, headers=bearer(site.tokens["agent"])) as stream:
        await stream.send_bytes(b"RFB 003.008\n")
        async for message in stream:
            await stream.send_bytes(message.data.upper())
            if message.data == b"bye":
                return


async def test_bytes_go_both_ways_until_either_side_ends(site: Site) -> None:
    """Spec 3: a binary WebSocket with the desktop's own bytes; the end of one is the end of both."""
    dialled: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()

    async def opened(params: dict[str, Any]) -> Empty:
        task = asyncio.get_running_loop().create_task(dial_back(site, params["stream_id"]))
        dialled.put_nowait(task)
        return Empty()

    chat_id = await site.new_chat(who="owner")
    headers = bearer(site.tokens["owner"])
    path = f"{API}/chats/{chat_id}/desktop"
    async with asyncio.timeout(LIMIT_S), site.workspace(streams_open=opened):
        async with site.http.ws_connect(path, headers=headers, protocols=("binary",)) as viewer:
            assert viewer.protocol == "binary"
            assert await viewer.receive_bytes() == b"RFB 003.008\n"
            await viewer.send_bytes(b"abc")
            assert await viewer.receive_bytes() == b"ABC"
            await viewer.send_bytes(b"bye")
            assert await viewer.receive_bytes() == b"BYE"
            assert (await viewer.receive()).type is WSMsgType.CLOSE
        async with site.http.ws_connect(path, headers=headers) as viewer:
            await viewer.receive_bytes()
        for _ in range(2):
            await (await dialled.get())


async def test_signs_of_life_are_the_viewer_s_own(site: Site) -> None:
    """Ours: the workspace asks whether the viewer is there; that we are says nothing of it."""
    pongs: asyncio.Queue[bytes] = asyncio.Queue()
    asking: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()

    async def dial(stream_id: str) -> None:
        path = f"/api/agent/streams/{stream_id}"
        headers = bearer(site.tokens["agent"])
        async with site.http.ws_connect(path, headers=headers, autoping=False) as stream:
            await stream.ping(b"of this hop")
            await stream.ping(ALIVE)
            while (message := await stream.receive()).type is WSMsgType.PONG:
                pongs.put_nowait(bytes(message.data))

    async def opened(params: dict[str, Any]) -> Empty:
        asking.put_nowait(asyncio.get_running_loop().create_task(dial(params["stream_id"])))
        return Empty()

    chat_id = await site.new_chat(who="owner")
    path, headers = f"{API}/chats/{chat_id}/desktop", bearer(site.tokens["owner"])
    async with asyncio.timeout(LIMIT_S), site.workspace(streams_open=opened):
        async with site.http.ws_connect(path, headers=headers, autoping=False) as viewer:
            asked = await viewer.receive()
            of_hop = await pongs.get()
            is_unanswered = pongs.empty()
            await viewer.pong(b"nobody asked")
            await viewer.pong(ALIVE)
            of_viewer = await pongs.get()
            await viewer.ping(b"ours")
            answer = await viewer.receive()
        await (await asking.get())

    assert (asked.type, bytes(asked.data)) == (WSMsgType.PING, ALIVE)
    assert (of_hop, is_unanswered, of_viewer) == (b"of this hop", True, ALIVE)
    assert (answer.type, bytes(answer.data)) == (WSMsgType.PONG, b"ours")


async def test_a_subprotocol_that_is_not_spoken_is_refused(site: Site) -> None:
    """BUGS 51: `binary` or none works; anything else is told so instead of failing in the browser."""
    chat_id = await site.new_chat(who="owner")
    async with site.workspace(streams_open=refuse):
        headers = UPGRADE | {"Sec-WebSocket-Protocol": "base64"}
        assert await refusal(site, f"/chats/{chat_id}/desktop", "owner", headers) == (400, "bad_request")


async def test_stream_is_fetched_from_a_workspace_that_can_be_reached(site: Site) -> None:
    """The issue: dial-in mode; the same bytes both ways, the same end, and who can't be reached is told."""
    served: asyncio.Queue[str] = asyncio.Queue()

    async def serve(request: web.Request) -> web.WebSocketResponse:
        stream = web.WebSocketResponse()
        await stream.prepare(request)
        await stream.send_bytes(b"RFB 003.008\n")
        served.put_nowait(request.match_info["id"])
        async for message in stream:
            await stream.send_bytes(message.data.upper())
        return stream

    async def opened(params: dict[str, Any]) -> Empty:
        assert params["is_fetched"]
        asked.append(params["stream_id"])
        return Empty()

    asked: list[str] = []
    app = web.Application()
    app.router.add_get("/box/api/agent/streams/{id}", serve)
    directory = site.plane.services.directory
    directory._fetched = FetchedStreams(parse_outbound(LOOPBACK_NETWORKS))
    chat_id = await site.new_chat(who="owner")
    path = f"{API}/chats/{chat_id}/desktop"
    headers = bearer(site.tokens["owner"])
    async with asyncio.timeout(LIMIT_S), TestServer(app) as box, site.workspace(streams_open=opened):
        connection = next(iter(directory._connections.values()))
        connection.streams_url = str(box.make_url("/box"))
        async with site.http.ws_connect(path, headers=headers) as viewer:
            assert await viewer.receive_bytes() == b"RFB 003.008\n"
            await viewer.send_bytes(b"abc")
            assert await viewer.receive_bytes() == b"ABC"
        connection.streams_url = "http://127.0.0.1:9"
        assert await refusal(site, f"/chats/{chat_id}/desktop", "owner", UPGRADE) == (
            500,
            "agent_unavailable",
        )
        await directory.close()

    assert asked[0] == served.get_nowait()
    assert not directory._fetched._tasks


async def test_a_stream_that_nobody_asked_for_is_refused(site: Site) -> None:
    """Ours: 404 before the upgrade; ids are secrets of one agent."""
    headers = bearer(site.tokens["agent"])

    assert await site.status("GET", "/api/agent/streams/guess", headers | UPGRADE) == 404


@pytest.mark.parametrize(
    ("change", "code"),
    [({"protocol_version": 99}, "unsupported_protocol"), ({"name": ""}, "invalid_params")],
)
async def test_a_link_that_greets_wrongly_is_told_why(site: Site, change: dict[str, Any], code: str) -> None:
    """Ours: another protocol version is refused, and the agent does not count as connected."""
    good = {"protocol_version": 1, "name": "box", "version": "0", "boot_id": "b"}
    async with site.workspace() as peer:
        hello = HelloParams.model_construct(**(good | change))
        with pytest.raises(RpcError) as caught:
            await peer.call(HELLO, hello, HelloResult, timeout_s=LIMIT_S)

    assert caught.value.code == code


async def test_a_link_without_a_greeting_is_no_connection(site: Site) -> None:
    """Ours: only hello makes an agent connected."""
    chat_id = await site.new_chat(who="owner")
    async with site.http.ws_connect("/api/agent/link", headers=bearer(site.tokens["agent"])) as socket:
        await socket.send_str("{not json")
        async with asyncio.timeout(LIMIT_S):
            async for answer in frames(socket):
                assert "-32700" in str(answer)
                break
        status, _ = await refusal(site, f"/chats/{chat_id}/desktop", "owner", UPGRADE)

    assert status == 400


async def test_stored_files_are_served_to_their_owner(site: Site) -> None:
    """Spec 3: the bytes with their type, cacheable for ever, private."""
    chat_id = await site.quiet_chat()
    file = NewFile(id=uuid.uuid4(), media_type="image/png", data=b"\x89PNG")
    value = {"file_id": str(file.id), "mime_type": "image/png", "data": "c2VjcmV0"}
    part = ToolResultPart(tool_call_id="c", tool_name="computer", result=value, is_media=True)

    def store(tx: ChatTx) -> None:
        tx._insert([NewMessage(role="tool", content=(part,), files=(file,))])

    await site.store.transition(uuid.UUID(chat_id), store)
    path = f"{API}/chats/files/{file.id}"
    async with site.http.get(path, headers=bearer(site.tokens["me"])) as answer:
        assert await answer.read() == b"\x89PNG"
    page = await site.ask("GET", f"/chats/{chat_id}/messages")

    assert answer.content_type == "image/png"
    assert answer.headers["Cache-Control"] == "private, immutable, max-age=31536000"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "data" not in page["messages"][-1]["content"][0]["result"]
    for who, file_id in (("other", file.id), ("me", uuid.uuid4()), ("me", "x")):
        answer = await site.ask("GET", f"/chats/files/{file_id}", who=who, status=404)
        assert answer["code"] == "not_found"


async def test_me_names_the_caller_and_the_models(site: Site) -> None:
    """Ours: the page learns whether the model is the rehearsal one."""
    me = await site.ask("GET", "/me")

    assert me["user"] == {"id": str(site.ids["me"]), "name": "me", "is_admin": False}
    assert me["rehearsal"] is True
    assert [model["id"] for model in me["models"] if model["is_default"]] == [me["default_model_config_id"]]
    assert not any("key" in model for model in me["models"])


async def test_the_desktop_that_is_meant_is_that_of_the_agent_at_work(site: Site) -> None:
    """The issue: several agents, one desktop each; a chat shows that of the newest that works."""
    asked: list[dict[str, Any]] = []

    async def status(params: dict[str, Any]) -> DesktopStatus:
        asked.append(params)
        return DesktopStatus(name="main", state="stopped", backend="xvnc", geometry="1280x800")

    async with site.workspace(desktop_status=status):
        root_id = await site.quiet_chat(who="owner")
        root = await site.store.read(queries.get_chat, UUID(root_id), user_id=site.ids["owner"])
        await site.ask("GET", f"/chats/{root_id}/desktop/status", who="owner")
        made = []
        for mode in ("computer_use", None):
            child = await site.store.create_chat(_child_of(root, mode))
            made.append(str(child.id))
            await site.until(made[-1], "waiting", "error")
            for chat_id in (root_id, made[-1]):
                await site.ask("GET", f"/chats/{chat_id}/desktop/status", who="owner")

    meant = [root_id, made[0], made[0], made[0], made[1]]
    assert [(one["chat_id"], one["agent_chat_id"]) for one in asked] == [(root_id, one) for one in meant]


def _child_of(root: Chat, mode: ChatMode | None) -> NewChat:
    return NewChat(
        owner_id=root.owner_id,
        agent_id=root.agent_id,
        parent=root,
        mode=mode,
        title="t",
        model_config_id=root.last_model_config_id,
        content=(TextPart(text="say bye"),),
    )
