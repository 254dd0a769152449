"""A chat calls the tools of real MCP servers."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Up, clean_environment, keep_log, poll, wait_gone
from tests.peers import MCP1, everything

TIME_TOOL = "time__convert_time"
ARGUMENTS = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
SCENARIO = {
    "turns": [
        {
            "when": {"tool": TIME_TOOL, "contains": "tokyo"},
            "times": 1,
            "reply": {"calls": [{"name": TIME_TOOL, "arguments": ARGUMENTS}]},
        },
        {
            "when": {"tool": "everything__get-tiny-image", "contains": "picture"},
            "times": 1,
            "reply": {"calls": [{"name": "everything__get-tiny-image", "arguments": {}}]},
        },
        {"when": {}, "reply": {"text": ["I have looked."]}},
    ]
}


@pytest.fixture
def up() -> Iterator[Up]:
    """`agentd up` in a project with an ``.mcp.json``."""
    home = Path(tempfile.mkdtemp(prefix="agentd-e2e-"))
    node, *arguments = everything("stdio")
    servers: dict[str, Any] = {
        "time": {"command": str(MCP1 / "mcp-server-time")},
        "everything": {"command": node, "args": arguments},
        "broken": {"command": "no-such-program"},
    }
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / "scenario.json").write_text(json.dumps(SCENARIO))
    environment = clean_environment(home) | {
        "AGENTD_WORKING_DIR": str(home),
        "CHATD_REHEARSAL_SCENARIO": str(home / "scenario.json"),
    }
    instance = Up(home=home, environment=environment, data=home / "data")
    instance.start()
    try:
        yield instance
    finally:
        if instance.process is not None and instance.process.poll() is None:
            instance.stop()
        keep_log(home)
        shutil.rmtree(home, ignore_errors=True)


def _settled(up: Up) -> list[dict[str, Any]]:
    answer = json.loads(up.agentd("mcp", "ls", "--json").stdout)
    return answer["servers"] if answer["settled"] else []


@pytest.mark.timeout(180)
def test_a_chat_calls_a_real_mcp_server_and_nothing_of_it_stays(up: Up) -> None:
    """
    The model is offered the tools, the result comes back, a broken server is told and harms nobody.

    Steps: wait for the servers; ask for a conversion; ask for a picture; stop; look for processes.
    """
    servers = poll(lambda: _settled(up), timeout_s=60, what="the MCP servers")
    states = {server["name"]: server["state"] for server in servers}
    converted = up.agentd("ask", "what is noon in Tokyo?", "--json")
    pictured = up.agentd("ask", "show me a picture", "--json", "--screenshot", str(up.home / "tiny.png"))
    family = up.children()
    logs = up.agentd("mcp", "logs", "broken", "--json")
    up.stop()

    assert states == {"time": "ready", "everything": "ready", "broken": "failed"}
    assert json.loads(converted.stdout)["tool_calls"] == 1, converted.stderr
    assert json.loads(converted.stdout)["answer"] == "I have looked."
    assert json.loads(pictured.stdout)["status"] == "done", pictured.stderr
    assert (up.home / "tiny.png").read_bytes().startswith(b"\x89PNG")
    assert "not installed" in logs.stdout
    assert wait_gone(family) == []
