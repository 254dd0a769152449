"""What MCP clients get of the desktop and the workspace: under the leases, limits and log of everybody."""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agentd.app import Daemon
from agentd.lease import Party
from agentd.settings import AgentdSettings

ANN = Party(seat="ann", name="Ann")
UNKNOWN = UUID(int=7)
SECRETS = ("s3cret-header", "s3cret-variable")
MCP_CONFIG = {
    "mcpServers": {
        "far": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRETS[0]}, "disabled": True},
        "near": {"command": "true", "env": {"KEY": SECRETS[1]}, "disabled": True},
    }
}


@pytest.fixture
def serve() -> str | None:
    """AGENTD_MCP_SERVE; unset as it comes."""
    return None


@pytest.fixture
async def daemon(
    runtime_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: str | None
) -> AsyncIterator[Daemon]:
    """A daemon in a home with instructions, a skill and MCP servers whose entries hold secrets."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if serve is not None:
        monkeypatch.setenv("AGENTD_MCP_SERVE", serve)
    work = tmp_path / "work"
    (work / "skills" / "greet").mkdir(parents=True)
    (work / "AGENTS.md").write_text("Be kind.")
    (work / "skills" / "greet" / "SKILL.md").write_text(
        "---\nname: greet\ndescription: Greets.\n---\nSay hello."
    )
    (work / "skills" / "broken").mkdir()
    (work / "skills" / "broken" / "SKILL.md").write_text("---\nname: [\n---\nhidden words")
    (work / ".mcp.json").write_text(json.dumps(MCP_CONFIG))
    settings = AgentdSettings(
        runtime_dir=runtime_dir, working_dir=work, desktop_backend="xvnc", recording_max=1
    )
    daemon = Daemon(settings)
    await daemon.start()
    yield daemon
    await daemon.stop()


def _said(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def _ids(result: types.CallToolResult) -> list[str]:
    assert not result.is_error, _said(result)
    return [info["id"] for info in _recordings(result)]


def _recordings(result: types.CallToolResult) -> Iterable[dict[str, Any]]:
    recordings: list[dict[str, Any]] = (result.structured_content or {})["recordings"]
    return recordings


async def test_a_client_films_the_desktop(daemon: Daemon) -> None:
    """Started, listed, stopped; as many as may, and what the client can't stop is said."""
    async with Client(daemon.mcp_server) as client:
        started = _ids(await client.call_tool("recording", {"action": "start"}))
        too_many = await client.call_tool("recording", {"action": "start"})
        running = _recordings(await client.call_tool("recording", {}))
        nameless = await client.call_tool("recording", {"action": "stop"})
        unknown = await client.call_tool("recording", {"action": "stop", "recording": str(UNKNOWN)})
        stopped = _recordings(
            await client.call_tool("recording", {"action": "stop", "recording": started[0]})
        )
        listed = _ids(await client.call_tool("recording", {"action": "list"}))
        entries = await daemon.action_log.entries("main")

    assert [(info["id"], info["state"]) for info in running] == [(started[0], "recording")]
    assert [(info["id"], info["reason"]) for info in stopped] == [(started[0], "asked")]
    assert listed == started
    assert too_many.is_error
    assert "stop one first" in _said(too_many)
    assert nameless.is_error
    assert "no recording" in _said(unknown)
    assert [(entry.actor, entry.actions[0].action["action"]) for entry in entries] == [("mcp", "record")] * 2


async def test_a_client_waits_while_a_person_has_control(daemon: Daemon) -> None:
    """One lease for all input, whoever acts; looking is allowed, and a film that runs may be stopped."""
    async with Client(daemon.mcp_server) as client:
        filmed = _ids(await client.call_tool("recording", {"action": "start"}))[0]
        await daemon.control.take("main", ANN)
        click = {"actions": [{"action": "left_click", "coordinate": [10, 10]}]}
        typed = await client.call_tool("computer", click)
        closed = await client.call_tool("windows", {"action": "close", "window": 1})
        opened = await client.call_tool("open_program", {"argv": ["xterm"]})
        again = await client.call_tool("recording", {"action": "start"})
        looked = [await client.call_tool(name, {}) for name in ("screenshot", "windows", "recording")]
        ended = await client.call_tool("recording", {"action": "stop", "recording": filmed})
        await daemon.control.give_back("main", ANN.seat)
        first = await client.call_tool("computer", click)
        second = await client.call_tool("computer", click)

    assert all(result.is_error and "Ann" in _said(result) for result in (typed, closed, opened, again))
    assert [block.type for block in typed.content][-1] == "image"
    assert not any(result.is_error for result in (*looked, ended))
    assert "left_click" not in _said(first)
    assert first.is_error
    assert not second.is_error, _said(second)


async def test_files_and_processes_are_not_there_unless_asked_for(daemon: Daemon) -> None:
    """The desktop alone, as it comes."""
    async with Client(daemon.mcp_server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="no tool 'execute'"):
            await client.call_tool("execute", {"command": "true"})

    assert names == {"computer", "screenshot", "windows", "clipboard", "open_program", "recording"}


@pytest.mark.parametrize("serve", ["desktop,files"])
async def test_files_and_processes_where_the_settings_say_so(daemon: Daemon, tmp_path: Path) -> None:
    """AGENTD_MCP_SERVE=desktop,files: written, run, read; what only reads says so."""
    async with Client(daemon.mcp_server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        path = tmp_path / "made" / "note.txt"
        written = await client.call_tool("write_file", {"path": str(path), "content": "from a client\n"})
        run = await client.call_tool("execute", {"command": f"cat {path}; exit 3"})
        read = await client.call_tool("read_file", {"path": str(path)})
        readers = {
            name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint
        }

    assert {"write_file", "edit_files", "execute", "process_signal"} < set(tools)
    assert readers == {"screenshot", "read_file", "list_directory", "process_output", "process_list"}
    assert not written.is_error, _said(written)
    assert path.read_text() == "from a client\n"
    assert "from a client" in str(run)
    assert "from a client" in _said(read)


async def test_the_context_is_a_resource_without_secrets(daemon: Daemon) -> None:
    """What chats get: found, usable or not, the text of what is; nothing of what .mcp.json holds."""
    async with Client(daemon.mcp_server) as client:
        await daemon.context.resync()
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        (contents,) = (await client.read_resource("context://workspace")).contents
        assert isinstance(contents, types.TextResourceContents)
        told = json.loads(contents.text)
        by_name = {Path(resource["source"]).name: resource for resource in told["resources"]}
        with pytest.raises(MCPError, match="context://workspace"):
            await client.read_resource("context://elsewhere")

    assert listed == {"desktop://main/screenshot", "context://workspace"}
    assert (told["ready"], told["version"], contents.mime_type) == (True, 1, "application/json")
    assert by_name["AGENTS.md"]["body"]["text"] == "Be kind."
    assert by_name["greet"]["body"]["name"] == "greet"
    assert by_name["broken"]["status"] == "invalid"
    assert by_name[".mcp.json"]["body"] == {"kind": "mcp_config"}
    assert not any(secret in contents.text for secret in (*SECRETS, "hidden words"))
