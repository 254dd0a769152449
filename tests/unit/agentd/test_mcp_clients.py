"""Entries for other MCP clients."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentd.cli.commands.mcp_install import mcp_install
from agentd.cli.mcp_clients import CLIENTS, EntryExists, FileUnreadable, add_entry, render_document, snippet
from mcp_bridge.config import parse_config

JSON_CLIENTS = [name for name, client in CLIENTS.items() if not client.is_toml]
COMMAND = "/opt/my tools/agentd"


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_an_entry_is_added_beside_what_is_there(name: str) -> None:
    """Everything else stays, a second time changes nothing, another server's name is not taken."""
    client = CLIENTS[name]
    before = {"theme": "dark", client.key: {"other": {"command": "x"}}, "ü": [1, None]}
    text = add_entry(client, json.dumps(before), "desktop", COMMAND)
    assert text is not None
    after = json.loads(text)
    entry = after[client.key].pop("desktop")

    assert after == before
    assert (entry["command"], entry["args"]) == (COMMAND, ["mcp", "serve"])
    assert add_entry(client, text, "desktop", COMMAND) is None
    with pytest.raises(EntryExists, match="--force"):
        add_entry(client, text, "desktop", "another")
    assert add_entry(client, text, "desktop", "another", force=True) is not None


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_what_is_shown_is_what_is_written(name: str) -> None:
    """And where the client reads the common shape, our own host reads it as well."""
    client = CLIENTS[name]
    shown = snippet(client, "desktop", COMMAND)
    assert add_entry(client, "", "desktop", COMMAND) == shown
    parsed = parse_config(shown.replace(client.key, "mcpServers"), source="", environment={})

    assert parsed.problems == ()
    assert (parsed.servers[0].command, parsed.servers[0].args) == (COMMAND, ("mcp", "serve"))


@pytest.mark.parametrize("text", ["{ // a comment\n}", "[]", "nonsense", '{"KEY": []}'])
@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_a_file_that_cannot_be_kept_whole_is_left_alone(name: str, text: str) -> None:
    """JSON with comments among them."""
    with pytest.raises(FileUnreadable):
        add_entry(CLIENTS[name], text.replace("KEY", CLIENTS[name].key), "desktop", COMMAND)


def test_toml_is_shown() -> None:
    """It is TOML, and it is not written."""
    client = CLIENTS["codex"]
    expected: dict[str, Any] = {"mcp_servers": {"my desktop": {"command": COMMAND, "args": ["mcp", "serve"]}}}

    assert tomllib.loads(snippet(client, "my desktop", COMMAND)) == expected
    with pytest.raises(FileUnreadable):
        add_entry(client, "", "desktop", COMMAND)


def test_the_document_is_what_the_code_says() -> None:
    """``agentd mcp clients --document`` writes it."""
    assert (Path(__file__).parents[3] / "docs" / "mcp-clients.md").read_text() == render_document()


def test_a_link_is_followed_and_the_mode_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dotfiles are often links into a repository."""
    monkeypatch.setenv("HOME", str(tmp_path))
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    kept.chmod(0o640)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").symlink_to(kept)
    mcp_install("cursor")

    assert (tmp_path / ".cursor" / "mcp.json").is_symlink()
    assert list(json.loads(kept.read_text())["mcpServers"]) == ["desktop"]
    assert kept.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cursor", "dotfiles.json"]
