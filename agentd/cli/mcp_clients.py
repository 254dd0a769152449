"""
Well-known MCP clients: where each keeps its servers, and how an entry looks there.

Pure: documents in, documents out. Sources: the clients' own documentation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CLIENTS", "EntryExists", "FileUnreadable", "McpClient", "add_entry", "render_document", "snippet"]


class FileUnreadable(ValueError):
    """The client's file is no JSON object, so it is left alone."""


class EntryExists(ValueError):
    """The client has another server of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """
    One client.

    Attributes:
        title: as its makers write it.
        path: its file, below the home directory.
        key: the object of servers in it.
        extra: what an entry needs besides the command.
        is_toml: the file is TOML, which is shown and not written: comments would be lost.
    """

    title: str
    path: str
    key: str = "mcpServers"
    extra: Mapping[str, str] = field(default_factory=dict)
    is_toml: bool = False


INTRODUCTION = """
`agentd mcp install CLIENT` writes the entry into the client's file, with the full path of this `agentd`;
`--show` prints it instead. Whatever else the file holds stays. Restart the client afterwards.
The client then sees and drives the desktop, films it, and reads the workspace's context
([tools and resources](reference/tools.md#the-desktop-as-an-mcp-server)).
""".lstrip()
STDIO = {"type": "stdio"}
CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(title="Claude Code", path=".claude.json", extra=STDIO),
    "claude-desktop": McpClient(title="Claude Desktop", path=".config/Claude/claude_desktop_config.json"),
    "codex": McpClient(title="Codex", path=".codex/config.toml", key="mcp_servers", is_toml=True),
    "cursor": McpClient(title="Cursor", path=".cursor/mcp.json"),
    "gemini-cli": McpClient(title="Gemini CLI", path=".gemini/settings.json"),
    "vscode": McpClient(title="VS Code", path=".config/Code/User/mcp.json", key="servers", extra=STDIO),
    "windsurf": McpClient(title="Windsurf", path=".codeium/windsurf/mcp_config.json"),
    "zed": McpClient(
        title="Zed", path=".config/zed/settings.json", key="context_servers", extra={"source": "custom"}
    ),
}


def _entry(client: McpClient, command: str) -> dict[str, Any]:
    return {**client.extra, "command": command, "args": ["mcp", "serve"]}


def snippet(client: McpClient, name: str, command: str) -> str:
    """What belongs into the client's file."""
    if client.is_toml:
        # A JSON string is a TOML string.
        return (
            f'[{client.key}.{json.dumps(name)}]\ncommand = {json.dumps(command)}\nargs = ["mcp", "serve"]\n'
        )
    return json.dumps({client.key: {name: _entry(client, command)}}, indent=2) + "\n"


def add_entry(client: McpClient, text: str, name: str, command: str, *, force: bool = False) -> str | None:
    """
    The client's file with the entry; None when it is there already.

    Args:
        client: whose file it is.
        text: the file as it is; "" where there is none.
        name: the server's name there.
        command: where ``agentd`` is.
        force: replace another server of that name.

    Raises:
        FileUnreadable: it can't be changed without losing something.
        EntryExists: another server has the name.
    """
    if client.is_toml:
        raise FileUnreadable("it is TOML, whose comments and order would be lost")
    document = _read(text)
    servers = document.setdefault(client.key, {})
    if not isinstance(servers, dict):
        msg = f'"{client.key}" in it is no object'
        raise FileUnreadable(msg)
    entry = _entry(client, command)
    if servers.get(name) == entry:
        return None
    if name in servers and not force:
        msg = f"{client.title} has another server called {name}; choose --name, or --force to replace it"
        raise EntryExists(msg)
    servers[name] = entry
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _read(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text.removeprefix("\ufeff")) if text.strip() else {}
    except ValueError as exc:
        msg = f"it is no plain JSON ({exc}); with comments in it, it is changed by hand"
        raise FileUnreadable(msg) from exc
    if not isinstance(document, dict):
        raise FileUnreadable("it is no JSON object")
    return document


def render_document() -> str:
    """``docs/mcp-clients.md``."""
    parts = [
        "# The desktop in other MCP clients\n",
        INTRODUCTION,
        "Made from `agentd/cli/mcp_clients.py` by `agentd mcp clients --document`.\n",
    ]
    for name, client in CLIENTS.items():
        kind = "toml" if client.is_toml else "json"
        parts.append(
            f"## {client.title}: `{name}`\n\n`~/{client.path}`"
            + (" (shown, not written)" if client.is_toml else "")
            + f"\n\n```{kind}\n{snippet(client, 'desktop', 'agentd')}```\n"
        )
    return "\n".join(parts)
