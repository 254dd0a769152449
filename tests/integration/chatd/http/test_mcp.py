"""The deployment's MCP servers, with the reference server over HTTP; a workspace's as its chat sees them."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from agentd.wire.mcp import McpServers
from chatd import mcp_host
from chatd.store import mcp_servers, queries
from chatd.store.rows import chat_from_row
from chatd.tools.mcp import mcp_tools
from chatd.tools.toolset import CallContext
from chatd.wire import ToolCallPart
from mcp_bridge.wire import ServerStatus
from tests.integration.chatd.http.site import LIMIT_S, Site, serving, text
from tests.peers import everything

ECHO = {"calls": [{"name": "far__echo", "arguments": {"message": "over there"}}]}
SCENARIO = {
    "turns": [
        # Once a chat, for each of those who ask.
        *(
            {"when": {"tool": "far__echo", "contains": word}, "times": 1, "reply": ECHO}
            for word in ("first", "second", "third")
        ),
        {"when": {}, "times": None, "reply": {"text": ["done"]}},
    ]
}
# Never to be read anywhere but in the request to the server.
TOKEN = "hunter2hunter2"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane whose model echoes by MCP, once, where it can."""
    (tmp_path / "scenario.json").write_text(json.dumps(SCENARIO))
    async with serving(
        tmp_path / "data", rehearsal_scenario=tmp_path / "scenario.json", admins=("me",)
    ) as site:
        yield site


@asynccontextmanager
async def _everything(port: int) -> AsyncIterator[None]:
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *everything("streamableHttp"), env=environment, stdout=nothing, stderr=nothing, start_new_session=True
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            while not await _answers(port):  # noqa: ASYNC110  another process's socket has no event
                await asyncio.sleep(0.05)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def _add(site: Site, **fields: Any) -> dict[str, Any]:
    body = {"slug": "far", "url": "http://127.0.0.1:9/mcp"} | fields
    made: dict[str, Any] = await site.ask("POST", "/mcp-servers", status=201, json=body)
    return made


async def _wait_state(site: Site, server_id: str, *states: str) -> dict[str, Any]:
    async with asyncio.timeout(LIMIT_S):
        while True:
            server: dict[str, Any] = await site.ask("GET", f"/mcp-servers/{server_id}")
            if server["health"]["state"] in states:
                return server
            await asyncio.sleep(0.05)


async def _tool_results(site: Site, chat_id: str) -> list[Any]:
    await site.until(chat_id, "waiting", "error")
    page = await site.store.read(queries.list_messages, UUID(chat_id), after_id=0, limit=100)
    parts = [part for message in page.messages for part in message.content]
    return [part.result for part in parts if part.type == "tool-result"]


@pytest.mark.timeout(120)
async def test_a_server_of_the_deployment_serves_the_chats_that_have_it(site: Site, tmp_path: Path) -> None:
    """
    The issue: selection by chat, allow-lists; the headers are sealed and never told.

    Steps: 1. default_on: a new chat calls it; 2. a chat that chose none has none; 3. chosen with a
    message it is called; 4. a tool that is denied is not offered.
    """
    port = _free_port()
    async with _everything(port):
        made = await _add(
            site,
            url=f"http://127.0.0.1:{port}/mcp",
            availability="default_on",
            headers={"X-Key": TOKEN},
            tool_allow_list=["echo"],
        )
        server = await _wait_state(site, made["id"], "ready")
        results = await _tool_results(site, await site.new_chat("first"))
        none = await site.ask("POST", "/chats", status=201, json=text("second", mcp_server_ids=[]))
        without = await _tool_results(site, none["id"])
        of_chat = await site.ask("GET", f"/chats/{none['id']}/mcp")
        await site.ask(
            "POST", f"/chats/{none['id']}/messages", json=text("second again", mcp_server_ids=[made["id"]])
        )
        chosen = await _tool_results(site, none["id"])
        await site.ask("PATCH", f"/mcp-servers/{made['id']}", json={"tool_deny_list": ["echo"]})
        denied = await _tool_results(site, await site.new_chat("third"))

    assert {"echo", "get-sum"} <= set(server["health"]["tools"])
    assert server["header_names"] == ["X-Key"]
    assert results == [{"output": "Echo: over there"}]
    assert (without, chosen, denied) == ([], [{"output": "Echo: over there"}], [])
    assert [(row["name"], row["is_on"]) for row in of_chat["servers"]] == [("far", False)]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("*") if path.is_file())
    assert b"X-Key" in stored
    assert TOKEN.encode() not in stored
    assert TOKEN not in json.dumps([server, of_chat, made])


async def test_a_call_that_was_begun_before_is_not_made_again(site: Site) -> None:
    """Ours: a chatd that was killed in the middle of a call must not make it a second time."""
    port = _free_port()
    async with _everything(port):
        made = await _add(site, url=f"http://127.0.0.1:{port}/mcp", availability="default_on")
        await _wait_state(site, made["id"], "ready")
        chat = chat_from_row(await site.store.read(queries.read_row, UUID(await site.quiet_chat())))
        host = site.plane.services.mcp
        tools = {tool.definition.name: tool for tool in await mcp_tools(host, chat, store=site.store)}
        claims = {tool.name: tool.read_only for _, tool in await host.offered(None)}
        results = {}
        for name, args in (("toggle-simulated-logging", {}), ("echo", {"message": "once"})):
            call = ToolCallPart(tool_call_id=name, tool_name=f"far__{name}", args=args)
            context = CallContext(chat_id=chat.id, message_id=1, call=call)
            tool = tools[f"far__{name}"]
            results[name] = [(await tool.run(context)).part for _ in range(2)]

    assert [bool(claims[f"far__{name}"]) for name in results] == [False, True]
    first, again = results["toggle-simulated-logging"]
    assert not first.is_error
    assert "outcome is unknown" in again.result["error"]
    # What only reads may be asked again.
    assert [part.result for part in results["echo"]] == [{"output": "Echo: once"}] * 2


async def test_a_look_that_fails_is_followed_by_another(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a database that is away for a moment does not end the servers for good."""
    fails = iter([sa.exc.OperationalError("", {}, Exception("away"))])
    read = mcp_host._read_all

    def flaky(connection: sa.Connection) -> Any:
        for error in fails:
            raise error
        return read(connection)

    monkeypatch.setattr(mcp_host, "_read_all", flaky)
    monkeypatch.setattr(mcp_host, "LOOK_S", 0.05)
    made = await _add(site)

    assert (await _wait_state(site, made["id"], "waiting", "failed"))["health"]["last_error"]


async def test_a_server_that_is_away_is_told_and_harms_nobody(site: Site) -> None:
    """The issue: state and last error; the turn goes on without it, and deleting it ends it."""
    made = await _add(site, availability="force_on", url=f"http://127.0.0.1:{_free_port()}/mcp")
    server = await _wait_state(site, made["id"], "waiting", "failed")
    results = await _tool_results(site, await site.new_chat())
    me = {"Authorization": f"Bearer {site.tokens['me']}"}
    deleted = await site.status("DELETE", f"/api/experimental/mcp-servers/{made['id']}", me)

    assert server["health"]["last_error"]
    assert deleted == 204
    assert results == []
    assert await site.ask("GET", "/mcp-servers") == {"servers": []}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"slug": "Far"}, "slug"),
        ({"slug": "a__b"}, "slug"),
        ({"url": "ftp://127.0.0.1/"}, "http"),
        ({"url": "http:///mcp"}, "host"),
        ({"headers": {"a b": "c"}}, "header"),
        ({"headers": {"a": "c\r\nd: e"}}, "header"),
        ({"transport": "stdio"}, "transport"),
        ({"availability": "always"}, "availability"),
        ({"call_timeout_s": 0}, "call_timeout_s"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_server_that_makes_no_sense_is_refused(site: Site, body: dict[str, Any], word: str) -> None:
    """Ours: the text names what to change, and nothing is kept."""
    wish = {"slug": "far", "url": "http://127.0.0.1:9/mcp"} | body
    answer = await site.ask("POST", "/mcp-servers", status=400, json=wish)

    assert word in json.dumps(answer)
    assert await site.ask("GET", "/mcp-servers") == {"servers": []}


async def test_unknown_servers_are_refused_by_name(site: Site) -> None:
    """The specification: 400 for unknown MCP ids; a slug has one owner; 404 for what is not there."""
    made, unknown = await _add(site, enabled=False), str(uuid4())
    chat_id = await site.quiet_chat()
    wish = {"mcp_server_ids": [made["id"], unknown]}

    for method, path, body in (
        ("POST", "/chats", text("hi", **wish)),
        ("POST", f"/chats/{chat_id}/messages", text("hi", **wish)),
        ("PATCH", f"/chats/{chat_id}", wish),
    ):
        assert unknown in json.dumps(await site.ask(method, path, status=400, json=body))
    await site.ask("POST", "/mcp-servers", status=400, json={"slug": "far", "url": "http://127.0.0.1:9/"})
    for method in ("GET", "PATCH", "DELETE"):
        await site.ask(method, f"/mcp-servers/{unknown}", status=404, json={})


async def test_only_administrators_change_servers(site: Site) -> None:
    """Ours: a server is every chat's; whoever names it names an address that this replica connects to."""
    made = await _add(site, enabled=False)
    for method, path in (("POST", "/mcp-servers"), ("PATCH", f"/mcp-servers/{made['id']}")):
        body = {"slug": "other", "url": "http://127.0.0.1:9/"}
        await site.ask(method, path, who="other", status=403, json=body)
    await site.ask("DELETE", f"/mcp-servers/{made['id']}", who="other", status=403)

    assert [row["slug"] for row in (await site.ask("GET", "/mcp-servers", who="other"))["servers"]] == ["far"]


async def test_a_chat_sees_its_workspace_s_servers(site: Site) -> None:
    """The issue: the page shows servers, state, tools, last error; while the workspace is away, that."""
    broken = ServerStatus(
        name="git", state="failed", source="/w/.mcp.json", last_error="git is not installed"
    )
    ready = ServerStatus(name="time", state="ready", tools=1, warnings=("TOKEN is not set",))

    async def tell(_: dict[str, Any]) -> McpServers:
        return McpServers(servers=(ready, broken), tools={"time": ("now",)})

    async with site.workspace(mcp_servers=tell):
        chat_id = await site.new_chat(who="owner")
        seen = await site.ask("GET", f"/chats/{chat_id}/mcp", who="owner")
    away = await site.ask("GET", f"/chats/{chat_id}/mcp", who="owner")
    alone = await site.ask("GET", f"/chats/{await site.new_chat()}/mcp")

    assert [(row["name"], row["health"]["state"]) for row in seen["servers"]] == [
        ("time", "ready"),
        ("git", "failed"),
    ]
    assert seen["servers"][0]["health"]["tools"] == ["now"]
    assert seen["servers"][0]["health"]["warnings"] == ["TOKEN is not set"]
    assert seen["servers"][1]["health"]["last_error"] == "git is not installed"
    assert [answer["workspace"] for answer in (seen, away, alone)] == ["connected", "away", "none"]


async def test_another_replicas_change_is_seen_at_once(site: Site) -> None:
    """Brief: a deny list that one replica writes holds in the next step of a chat that another runs."""
    services = site.plane.services
    port = _free_port()
    async with _everything(port):
        made = await _add(site, url=f"http://127.0.0.1:{port}/mcp", availability="default_on")
        await _wait_state(site, made["id"], "ready")
        # Its rows are in memory: it would not ask the database again for ten seconds.
        before = {tool.tool for _, tool in await services.mcp.offered(None)}
        assert services.mcp._is_fresh

        def deny(connection: sa.Connection) -> None:
            values = {"tool_deny_list": ["echo"]}
            mcp_servers.update_server(connection, UUID(made["id"]), values, now=site.store.now())

        await site.store.write(deny)
        services.hub.hear("mcp_servers")
        after = {tool.tool for _, tool in await services.mcp.offered(None)}

    assert "echo" in before
    assert after == before - {"echo"}


async def test_tools_that_find_no_room_are_told_to_people(site: Site) -> None:
    """Brief: the dialog of a chat's MCP servers names them."""
    tools = [{"name": f"t{n}"} for n in range(130)]
    many = await site.ask("POST", "/chats", status=201, json=text("x", unsafe_dynamic_tools=tools))
    few = await site.new_chat("x")
    told = (await site.ask("GET", f"/chats/{many['id']}/mcp"))["left_out"]

    assert told == [f"t{n}" for n in range(130 - len(told), 130)]
    assert len(told) > 2
    assert (await site.ask("GET", f"/chats/{few}/mcp"))["left_out"] == []
