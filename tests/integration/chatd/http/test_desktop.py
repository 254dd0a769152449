"""The desktop's route, files, and the workspace's end of the link."""

import asyncio
import uuid
from typing import Any

import pytest
from aiohttp import WSMsgType

from agentd.wire.link import HELLO, Empty, HelloParams, HelloResult
from agentd.wire.peer import RpcError
from chatd.store.machine import ChatTx
from chatd.store.rows import NewFile, NewMessage
from chatd.wire import ToolResultPart
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

    assert me["user"] == {"id": str(site.ids["me"]), "name": "me"}
    assert me["rehearsal"] is True
    assert [model["id"] for model in me["models"] if model["is_default"]] == [me["default_model_config_id"]]
    assert not any("key" in model for model in me["models"])
