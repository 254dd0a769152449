"""Servers from the registries, over every transport."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcp_bridge.bridge import Bridge
from mcp_bridge.errors import BridgeError
from mcp_bridge.wire import ServerStatus
from tests.browser import find_browser
from tests.integration.mcp_bridge.setting import config, free_port, listening, text_of, until
from tests.peers import MCP1, NODE, NPM, everything, filesystem


def _stdio(argv: list[str], **fields: Any) -> dict[str, Any]:
    return {"command": argv[0], "args": argv[1:], **fields}


def _status(bridge: Bridge, name: str) -> ServerStatus:
    return next(status for status in bridge.statuses() if status.name == name)


async def test_the_reference_servers_of_both_languages(bridge: Bridge, tmp_path: Path) -> None:
    """Everything and filesystem (npm), git and time (PyPI, the older SDK): listed and called."""
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path / "repo")], check=True)
    (tmp_path / "repo" / "a.txt").write_text("hello from a file")
    await bridge.apply(
        config(
            {
                "everything": _stdio(everything("stdio")),
                "files": _stdio(filesystem(str(tmp_path))),
                "git": {"command": str(MCP1 / "mcp-server-git")},
                "time": {"command": str(MCP1 / "mcp-server-time")},
            }
        )
    )
    assert {status.state for status in bridge.statuses()} == {"ready"}, bridge.statuses()
    read = await bridge.call("files__read_text_file", {"path": str(tmp_path / "repo" / "a.txt")})
    git = await bridge.call("git__git_status", {"repo_path": str(tmp_path / "repo")})
    time = await bridge.call("time__get_current_time", {"timezone": "UTC"})
    picture = await bridge.call("everything__get-tiny-image", {})
    structured = await bridge.call("everything__get-structured-content", {"location": "Chicago"})
    total = await bridge.call("everything__get-sum", {"a": 2, "b": 3})

    assert "hello from a file" in text_of(read)
    assert "a.txt" in text_of(git)
    assert "UTC" in text_of(time)
    assert [block.type for block in picture.content].count("image") == 1
    assert structured.structured is not None
    assert "temperature" in structured.structured
    assert "5" in text_of(total)


async def test_a_long_operation_tells_its_progress(bridge: Bridge) -> None:
    """Longer than its limit in all, never silent for as long."""
    await bridge.apply(config({"everything": _stdio(everything("stdio"))}))
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    outcome = await bridge.call(
        "everything__trigger-long-running-operation",
        {"duration": 2, "steps": 4},
        timeout_s=1.5,
        on_progress=hear,
    )

    assert "completed" in text_of(outcome)
    assert len(heard) == 4


@pytest.mark.parametrize(("transport", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_remote_servers(bridge: Bridge, transport: str, path: str) -> None:
    """Streamable HTTP and the older SSE; a server that goes away fails calls and comes back by itself."""
    port = free_port()
    argv = everything("streamableHttp" if transport == "http" else "sse")
    servers = config({"far": {"type": transport, "url": f"http://127.0.0.1:{port}{path}"}})
    async with listening(argv, port):
        await bridge.apply(servers)
        assert _status(bridge, "far").state == "ready", bridge.statuses()
        assert text_of(await bridge.call("far__echo", {"message": "hi"})) == "Echo: hi"
    with pytest.raises(BridgeError):
        await bridge.call("far__echo", {"message": "hi"})
    async with listening(argv, port):
        await until(lambda: _status(bridge, "far").state == "ready")
        again = text_of(await bridge.call("far__echo", {"message": "again"}))

    assert again == "Echo: again"


@pytest.mark.timeout(120)
async def test_a_browser_is_driven_through_playwright(bridge: Bridge, tmp_path: Path) -> None:
    """The server starts Chromium, a page is opened and read; closing ends the browser with the server."""
    page = tmp_path / "page.html"
    page.write_text("<title>Hello</title><h1>A heading to read</h1>")
    argv = [NODE, str(NPM / "@playwright/mcp/cli.js"), "--headless", "--isolated", "--no-sandbox"]
    options = ["--executable-path", find_browser() or "", "--allow-unrestricted-file-access"]
    await bridge.apply(config({"web": _stdio([*argv, *options], cwd=str(tmp_path))}))
    assert _status(bridge, "web").state == "ready", bridge.statuses()
    opened = await bridge.call("web__browser_navigate", {"url": page.as_uri()})
    seen = await bridge.call("web__browser_snapshot", {})

    assert not opened.is_error, text_of(opened)
    assert "A heading to read" in text_of(opened) + text_of(seen)
