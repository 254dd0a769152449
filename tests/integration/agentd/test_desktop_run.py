"""Programs that become programs of the desktop, MCP servers among them."""

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import find_browser
from tests.e2e.conftest import poll
from tests.integration.agentd.command import MAIN, Command, Running
from tests.peers import NODE, NPM

LIMIT_S = 60
PLAYWRIGHT = [NODE, str(NPM / "@playwright/mcp/cli.js"), "--isolated", "--no-sandbox"]


@pytest.fixture
def command(runtime_dir: Path) -> Iterator[Command]:
    """A home whose daemon has a browser as MCP server, at the desktop."""
    command = Command(runtime_dir)
    # What a package installs as `agentd`.
    agentd = runtime_dir / "bin" / "agentd"
    agentd.parent.mkdir()
    agentd.write_text(f"#!{sys.executable}\n{MAIN[-1]}\n")
    agentd.chmod(agentd.stat().st_mode | stat.S_IXUSR)
    server = {
        "command": str(agentd),
        "args": ["desktop", "run", "--", *PLAYWRIGHT, "--executable-path", find_browser() or ""],
        "env": {"PYTHONPATH": command.environment()["PYTHONPATH"]},
    }
    (runtime_dir / ".mcp.json").write_text(json.dumps({"mcpServers": {"web": server}}))
    daemon = Running(command, "daemon", AGENTD_WORKING_DIR=str(runtime_dir), AGENTD_DESKTOP_BACKEND="xvnc")
    try:
        poll(lambda: command("desktop", "status").code == 0, timeout_s=LIMIT_S, what="the daemon")
        yield command
    finally:
        daemon.close()


@pytest.mark.timeout(180)
def test_a_browser_of_an_mcp_server_opens_at_the_desktop(command: Command) -> None:
    """
    The issue: Playwright's server with Chromium on our desktop, where a person sees it.

    Truth: the window's title as the window manager tells it, not what the server answers.
    """
    ready = '"state": "ready"'
    poll(lambda: ready in command("mcp", "ls", "--json").out, timeout_s=LIMIT_S, what="the server")
    page = "data:text/html,<title>Seen%20by%20people</title><h1>Hello</h1>"
    opened = command("mcp", "call", "web__browser_navigate", json.dumps({"url": page}))
    windows = command("desktop", "windows", "--json")

    assert opened.code == 0, opened.err
    assert "Seen by people" in windows.out


def test_a_program_takes_the_place_of_the_command(command: Command) -> None:
    """Ours: its output and exit code are the program's; what can't be run is told."""
    shown = command("desktop", "run", "--", "sh", "-c", 'test -r "$XAUTHORITY" && echo "$DISPLAY"; exit 7')
    missing = command("desktop", "run", "--", "no-such-program")
    nothing = command("desktop", "run")

    assert (shown.code, shown.out[:1]) == (7, ":")
    assert "no-such-program: No such file" in missing.err
    assert nothing.code == 2
