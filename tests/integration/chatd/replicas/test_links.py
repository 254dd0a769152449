"""Workspaces that are linked to another replica: calls, cancellation, streams, and moving."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import Empty, ToolListResult
from chatd.replicas.streams import owner_of
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer
from tests.integration.chatd.replicas.conftest import NewReplica
from tests.integration.chatd.replicas.test_registry import together
from tests.support.gated_vendor import GatedVendor, gated_vendor

TOOL = ToolDefinition(name="touch", description="x", input_schema={"type": "object"}, origin="builtin")


class Box:
    """The handlers of a workspace with one tool, which answers when it may."""

    def __init__(self) -> None:
        self.begun = asyncio.Queue[dict[str, Any]]()
        self.cancelled = asyncio.Queue[str]()
        self.may_answer = asyncio.Event()

    async def tools_list(self, _: dict[str, Any]) -> ToolListResult:
        """Its tools."""
        return ToolListResult(tools=(TOOL,))

    async def tools_call(self, params: dict[str, Any]) -> ToolResult:
        """Runs it."""
        self.begun.put_nowait(params)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.put_nowait(params["call_id"])
            raise
        return ToolResult(content=(TextContent(text="touched"),))

    @property
    def handlers(self) -> dict[str, Any]:
        """As ``Site.workspace`` wants them."""
        return {"tools_list": self.tools_list, "tools_call": self.tools_call}


async def pair(new_replica: NewReplica, vendor: GatedVendor, **settings: Any) -> tuple[Site, Site]:
    """Two replicas; users and tokens of the first are good at both."""
    make = {"rehearsal": "auto", "compat_base_url": vendor.url, "context_push": False, **settings}
    first, second = await new_replica(**make), await new_replica(**make)
    return first, second


async def answered(site: Site, chat_id: str) -> list[str]:
    """The texts of the tools' results, once the turn is over."""
    await site.until(chat_id, "waiting", "error")
    page = await site.ask("GET", f"/chats/{chat_id}/messages", who="owner")
    results = [part for m in page["messages"] for part in m["content"] if part["type"] == "tool-result"]
    return [json.dumps(part["result"]) for part in results]


async def test_a_call_finds_a_workspace_elsewhere(new_replica: NewReplica) -> None:
    """Issue: an agent is connected to one replica, tool calls from any other find it."""
    box = Box()
    box.may_answer.set()
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        async with asyncio.timeout(LIMIT_S), first.workspace(**box.handlers):
            chat_id = await second.new_chat(who="owner")
            body = await vendor.asked.get()
            vendor.call("touch", "call-1", {})
            await vendor.asked.get()
            vendor.end()
            results = await answered(second, chat_id)
            listed = await second.ask("GET", "/workspaces", who="owner")

    assert "touch" in {tool["function"]["name"] for tool in body["tools"]}
    assert len(results) == 1
    assert "touched" in results[0]
    assert box.begun.qsize() == 1
    assert [one["connected"] for one in listed if one["name"] == "box"] == [True]


async def test_a_stop_here_stops_the_call_there(new_replica: NewReplica) -> None:
    """Issue: cancel is passed on."""
    box = Box()
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        async with asyncio.timeout(LIMIT_S), first.workspace(**box.handlers):
            chat_id = await second.new_chat(who="owner")
            await vendor.asked.get()
            vendor.call("touch", "call-1", {})
            begun = await box.begun.get()
            # By way of the replica that neither drives the chat.
            await first.ask("POST", f"/chats/{chat_id}/interrupt", who="owner")

            assert await box.cancelled.get() == begun["call_id"]
            await second.until(chat_id, "waiting")


async def test_a_cut_between_replicas_stops_nothing(new_replica: NewReplica) -> None:
    """Issue: in-flight calls are resolved by id: asked for again, not cancelled."""
    box = Box()
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        async with asyncio.timeout(LIMIT_S), first.workspace(**box.handlers):
            chat_id = await second.new_chat(who="owner")
            await vendor.asked.get()
            vendor.call("touch", "call-1", {})
            begun = await box.begun.get()
            session = together(second).agents.session
            assert session.connector is not None
            for connection in list(session.connector._acquired):  # type: ignore[attr-defined]
                connection.transport.abort()
            again = await box.begun.get()
            box.may_answer.set()
            await vendor.asked.get()
            vendor.end()
            results = await answered(second, chat_id)

    assert again["call_id"] == begun["call_id"]
    assert box.cancelled.empty()
    assert len(results) == 1
    assert "touched" in results[0]


async def test_a_replica_that_stops_cancels_no_call(new_replica: NewReplica) -> None:
    """Ours: a rolling upgrade; whoever drives the chat next asks again by the same id."""
    box = Box()
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        async with asyncio.timeout(LIMIT_S), first.workspace(**box.handlers):
            await second.new_chat(who="owner")
            await vendor.asked.get()
            vendor.call("touch", "call-1", {})
            begun = await box.begun.get()
            await second.plane.stop()
            again = await box.begun.get()

            assert again["call_id"] == begun["call_id"]
            assert box.cancelled.empty()


async def test_a_workspace_that_moves_is_found_again(new_replica: NewReplica) -> None:
    """Issue: an agent moves to another replica; the call in flight is asked for again by its id."""
    old, new = Box(), Box()
    new.may_answer.set()
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        third = await new_replica(rehearsal="auto", compat_base_url=vendor.url, context_push=False)
        third.tokens["agent"] = first.tokens["agent"]
        async with asyncio.timeout(LIMIT_S):
            async with first.workspace(**old.handlers):
                chat_id = await second.new_chat(who="owner")
                await vendor.asked.get()
                vendor.call("touch", "call-1", {})
                begun = await old.begun.get()
            async with third.workspace(**new.handlers):
                again = await new.begun.get()
                await vendor.asked.get()
                vendor.end()
                results = await answered(second, chat_id)

    assert again["call_id"] == begun["call_id"]
    assert again["boot_id"] == begun["boot_id"]
    assert len(results) == 1
    assert "touched" in results[0]


@pytest.mark.parametrize("dialled", [0, 1, 2])
async def test_a_desktop_s_stream_gets_to_its_viewer(new_replica: NewReplica, dialled: int) -> None:
    """Issue: VNC streams from any other replica find it, whichever replica the workspace dials back."""
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        third = await new_replica(rehearsal="auto", compat_base_url=vendor.url, context_push=False)
        sites = (first, second, third)
        opened = asyncio.Queue[str]()

        async def open_stream(params: dict[str, Any]) -> Empty:
            opened.put_nowait(params["stream_id"])
            return Empty()

        async def serve() -> tuple[int | None, str | None]:
            stream_id = await opened.get()
            assert owner_of(stream_id) == together(second).membership.replica_id
            path = f"/api/agent/streams/{stream_id}"
            async with sites[dialled].http.ws_connect(path, headers=bearer(first.tokens["agent"])) as socket:
                await socket.send_bytes(b"RFB 003.008\n")
                async for message in socket:
                    await socket.send_bytes(message.data.upper())
            return socket.close_code, None

        async with asyncio.timeout(LIMIT_S), first.workspace(streams_open=open_stream):
            serving = asyncio.create_task(serve())
            await second.plane.services.directory.wait_connected(first.agent_id)
            headers = bearer(first.tokens["owner"])
            async with second.http.ws_connect(f"{API}/agents/box/desktop", headers=headers) as viewer:
                assert await viewer.receive_bytes() == b"RFB 003.008\n"
                for size in (1, 100_000, 3_000_000):
                    await viewer.send_bytes(b"a" * size)
                    assert await viewer.receive_bytes() == b"A" * size
            await serving


async def test_a_stream_that_nobody_asked_for_is_passed_to_nobody(new_replica: NewReplica) -> None:
    """Ours: an id that names a replica is checked there, against the agent that dials."""
    async with gated_vendor() as vendor:
        first, second = await pair(new_replica, vendor)
        headers = bearer(first.tokens["agent"])
        ids = [f"{together(second).membership.replica_id.hex}.guess", "x.guess", "guess", f"{0:032x}.guess"]
        for stream_id in ids:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await first.http.ws_connect(f"/api/agent/streams/{stream_id}", headers=headers)
            assert refused.value.status == 404
        async with first.http.ws_connect(
            second.plane.url + "/api/replica/calls", headers=together(first).membership.headers
        ) as way:
            call = {"jsonrpc": "2.0", "id": 1, "method": "agent/call", "params": {"method": "x"}}
            await way.send_str(json.dumps(call))
            answer = await way.receive(LIMIT_S)

    assert answer.type is WSMsgType.TEXT
    assert json.loads(answer.data)["error"]["data"]["code"] == "invalid_params"
