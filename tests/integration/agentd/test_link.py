"""The daemon's end of the link, against a control plane on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from agentd.calls import CallTable
from agentd.control import Control
from agentd.desktops import Desktops
from agentd.link import Link
from agentd.settings import AgentdSettings
from agentd.streams import websocket_url
from agentd.tools.registry import Registry, Tool
from agentd.viewers import Viewers
from agentd.wire import jsonrpc
from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import (
    DESKTOP_STATUS,
    PING,
    PROTOCOL_VERSION,
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    Empty,
    ToolCallParams,
    ToolListResult,
)
from agentd.wire.peer import LinkLost, RpcError
from computer.wire import DesktopStatus
from tests.integration.agentd.control_plane import TOKEN, ControlPlane, LiveLink, control_plane, running


@dataclass
class Gated:
    """A tool that tells when it began and ends when it may."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[dict[str, Any]] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, call: ToolCallParams) -> ToolResult:
        """Wait at the gate."""
        self.runs.append(call.arguments)
        self.started.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return ToolResult(content=(TextContent(text=f"run {len(self.runs)}"),))

    def tool(self) -> Tool:
        """As the registry takes it."""
        return Tool(definition=ToolDefinition(name="gated", input_schema={"type": "object"}), run=self.run)


@dataclass
class Workspace:
    """A link with one gated tool; *run* is its task."""

    link: Link
    gated: Gated
    calls: CallTable
    registry: Registry


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    """A control plane."""
    async with control_plane() as plane:
        yield plane


def _workspace(plane: ControlPlane, runtime_dir: Path, token: str = TOKEN) -> Workspace:
    gated, calls = Gated(), CallTable("boot-1")
    registry = Registry([gated.tool()])
    desktops = Desktops(AgentdSettings(runtime_dir=runtime_dir))
    link = Link(
        control_url=plane.url,
        token=token,
        name="box",
        version="1.2.3",
        registry=registry,
        calls=calls,
        viewers=Viewers(desktops, Control(desktops, idle_s=60)),
    )
    return Workspace(link, gated, calls, registry)


@pytest.fixture
async def workspace(plane: ControlPlane, runtime_dir: Path) -> AsyncIterator[Workspace]:
    """A workspace that stays connected."""
    workspace = _workspace(plane, runtime_dir)
    async with running(workspace.link.run):
        yield workspace
    await workspace.calls.close()


async def _call(link: LiveLink, call_id: str = "call-1", **more: Any) -> ToolResult:
    params = ToolCallParams(call_id=call_id, name=more.pop("name", "gated"), **more)
    return await link.peer.call(TOOLS_CALL, params, ToolResult, timeout_s=30)


def _text(result: ToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def test_hello_says_who_it_is(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: protocol, name, version and boot, once per connection."""
    link = await plane.links.get()
    await workspace.link.connected.wait()

    assert link.hello.model_dump() == {
        "protocol_version": PROTOCOL_VERSION, "name": "box", "version": "1.2.3", "boot_id": "boot-1",
        "pushes_context": False, "streams_url": None,
    }  # fmt: skip
    assert len(link.received) == 1


async def test_questions_are_answered(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: tools, desktop, ping."""
    link = await plane.links.get()
    tools = await link.peer.call(TOOLS_LIST, Empty(), ToolListResult, timeout_s=30)
    status = await link.peer.call(DESKTOP_STATUS, Empty(), DesktopStatus, timeout_s=30)
    await link.peer.call(PING, Empty(), Empty, timeout_s=30)

    assert tools.tools == (workspace.gated.tool().definition,)
    assert (status.name, status.state) == ("main", "stopped")


async def test_tool_is_called_with_its_arguments(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: the plain case."""
    link = await plane.links.get()
    workspace.gated.opened.set()
    result = await _call(link, arguments={"a": [1]}, boot_id="boot-1")

    assert _text(result) == "run 1"
    assert workspace.gated.runs == [{"a": [1]}]


async def test_same_call_id_twice_runs_once(plane: ControlPlane, workspace: Workspace) -> None:
    """Invariant: at the same time and afterwards."""
    link = await plane.links.get()
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(_call(link)) for _ in range(2)]
        await workspace.gated.started.wait()
        await link.peer.call(PING, Empty(), Empty, timeout_s=30)
        workspace.gated.opened.set()
    later = await _call(link)

    assert [_text(task.result()) for task in both] == ["run 1", "run 1"]
    assert _text(later) == "run 1"
    assert len(workspace.gated.runs) == 1


async def test_run_survives_a_dropped_link(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: asked again by its call id, the one run answers."""
    first = await plane.links.get()
    call = asyncio.create_task(_call(first))
    await workspace.gated.started.wait()
    await first.drop()
    with pytest.raises(LinkLost):
        await call
    second = await plane.links.get()
    again = asyncio.create_task(_call(second, boot_id="boot-1"))
    await second.peer.call(PING, Empty(), Empty, timeout_s=30)
    workspace.gated.opened.set()

    assert _text(await again) == "run 1"
    assert len(workspace.gated.runs) == 1
    assert not workspace.gated.cancelled.is_set()
    assert second.hello == first.hello


async def test_cancelled_call_stops_the_run(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: a wish, unlike a dropped link."""
    link = await plane.links.get()
    call = asyncio.create_task(_call(link))
    await workspace.gated.started.wait()
    call.cancel()
    await asyncio.wait({call})
    await workspace.gated.cancelled.wait()

    with pytest.raises(RpcError) as caught:
        await _call(link)
    assert caught.value.code == "cancelled"
    assert len(workspace.gated.runs) == 1


async def test_call_of_another_boot_is_not_run(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: the model reads that the outcome is unknown."""
    link = await plane.links.get()
    result = await _call(link, boot_id="boot-0")

    assert result.is_error
    assert result.structured == {"code": "outcome_unknown"}
    assert "unknown" in _text(result)
    assert workspace.gated.runs == []


async def test_run_that_takes_too_long_is_stopped_and_told(plane: ControlPlane, workspace: Workspace) -> None:
    """Ours: a result that the model reads."""
    link = await plane.links.get()
    result = await _call(link, timeout_s=0.01)

    assert result.is_error
    assert "0.01 s" in _text(result)
    assert workspace.gated.cancelled.is_set()


@pytest.mark.parametrize(
    ("method", "params", "rpc_code", "code"),
    [
        (TOOLS_CALL, {"call_id": "1", "name": "no such tool"}, jsonrpc.REFUSED, "not_found"),
        (TOOLS_CALL, {"call_id": "", "name": "gated"}, jsonrpc.INVALID_PARAMS, "invalid_params"),
        (TOOLS_CALL, {"call_id": "1"}, jsonrpc.INVALID_PARAMS, "invalid_params"),
        (TOOLS_CALL, {"call_id": "1", "name": "gated", "timeout_s": -1}, -32602, "invalid_params"),
        ("streams/open", {"stream_id": "s", "desktop": "other"}, jsonrpc.REFUSED, "not_found"),
        ("streams/open", {}, jsonrpc.INVALID_PARAMS, "invalid_params"),
        ("files/read", {}, jsonrpc.METHOD_NOT_FOUND, "unknown_method"),
    ],
)
@pytest.mark.usefixtures("workspace")
async def test_bad_request_is_answered_with_its_word(
    plane: ControlPlane, method: str, params: dict[str, Any], rpc_code: int, code: str
) -> None:
    """Ours: typed errors keep their stable word on the way."""
    link = await plane.links.get()
    await link.websocket.send_str(json.dumps({"id": "bad", "method": method, "params": params}))
    await _hear(link, "bad")
    answer = json.loads(link.received[-1])

    assert (rpc_code, code) == (answer["error"]["code"], answer["error"]["data"]["code"])


async def _hear(link: LiveLink, request_id: str | None) -> None:
    """Wait for an answer that the peer does not wait for."""
    async with asyncio.timeout(30):
        while not any(json.loads(text)["id"] == request_id for text in link.received[1:]):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_malformed_frame_is_answered_and_the_link_lives_on(
    plane: ControlPlane, workspace: Workspace
) -> None:
    """JSON-RPC 2.0, section 5.1."""
    link = await plane.links.get()
    workspace.gated.opened.set()
    await link.websocket.send_str('{"jsonrpc":')
    await link.websocket.send_bytes(b"\xff\x00")
    await _hear(link, None)

    assert json.loads(link.received[1])["error"]["code"] == jsonrpc.PARSE_ERROR
    assert _text(await _call(link)) == "run 1"
    assert plane.dials == 1


async def test_refused_token_ends_the_link(plane: ControlPlane, runtime_dir: Path) -> None:
    """Ours: asking again would not help."""
    workspace = _workspace(plane, runtime_dir, token="another")
    async with asyncio.timeout(30):
        with pytest.raises(InvalidStatus):
            await workspace.link.run()

    assert plane.dials == 1
    assert not workspace.link.connected.is_set()


async def test_refused_hello_is_tried_again(plane: ControlPlane, runtime_dir: Path) -> None:
    """Ours: a control plane of another version may be replaced at any time."""
    plane.refuse_hello = RpcError(jsonrpc.REFUSED, "other protocol", code="unsupported_protocol")
    workspace = _workspace(plane, runtime_dir)
    async with running(workspace.link.run):
        while plane.dials < 2:  # noqa: ASYNC110  counted by a server
            await asyncio.sleep(0.01)
        assert not workspace.link.connected.is_set()
        plane.refuse_hello = None
        await plane.links.get()
        await workspace.link.connected.wait()


async def test_link_waits_for_a_control_plane_that_is_not_there(runtime_dir: Path) -> None:
    """Ours: daemons may start first."""
    async with control_plane() as plane:
        workspace = _workspace(plane, runtime_dir)
    async with running(workspace.link.run) as task:
        _, pending = await asyncio.wait({task}, timeout=0.2)

        assert pending == {task}
        assert not workspace.link.connected.is_set()


async def test_stop_does_not_wait_for_a_control_plane_that_hangs(
    plane: ControlPlane, runtime_dir: Path
) -> None:
    """Ours: the closing handshake has a short limit."""
    workspace = _workspace(plane, runtime_dir)
    async with running(workspace.link.run) as task:
        link = await plane.links.get()
        await workspace.link.connected.wait()
        plane.is_deaf = True
        await link.websocket.send_str('{"id":"x","method":"ping"}')
        await _hear(link, "x")
        task.cancel()
        async with asyncio.timeout(30):
            await asyncio.wait({task})

    assert task.cancelled()


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:7080", "ws://h:7080/api"),
        ("https://h/prefix/", "wss://h/prefix/api"),
        ("ws://[::1]:1", "ws://[::1]:1/api"),
    ],
)
def test_url_is_translated(base: str, url: str) -> None:
    """Ours: people give the URL that their browser knows."""
    assert websocket_url(base, "/api") == url


async def test_a_changed_list_of_tools_is_told_and_an_old_control_plane_may_refuse(
    plane: ControlPlane, workspace: Workspace
) -> None:
    """The other side hears that the list is another, and the link goes on when it does not know the word."""
    link = await plane.links.get()
    await workspace.link.connected.wait()
    workspace.registry.offer("mcp", [Gated().tool(), _named("more")])
    async with asyncio.timeout(30):
        while not any(TOOLS_CHANGED in frame for frame in link.received):  # noqa: ASYNC110 -- no event
            await asyncio.sleep(0.01)
    listed = await link.peer.call(TOOLS_LIST, Empty(), ToolListResult, timeout_s=30)

    assert [tool.name for tool in listed.tools] == ["gated", "more"]


def _named(name: str) -> Tool:
    return Tool(definition=ToolDefinition(name=name, input_schema={"type": "object"}), run=Gated().run)
