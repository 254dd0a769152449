"""``agentd mcp test``: start the configured servers here, without a daemon."""

import os
import sys
from pathlib import Path
from typing import Any

from agentd.cli.commands.mcp import print_servers
from agentd.cli.exits import Exit, print_json
from agentd.cli.run import Json, load_settings, run
from agentd.mcp_host import McpHost
from agentd.tools.registry import Registry

__all__ = ["mcp_test"]


def mcp_test(*files: Path, as_json: Json = False) -> None:
    """Start the servers, list their tools, end them."""

    async def work() -> list[dict[str, Any]]:
        settings = load_settings()
        mark = settings.runtime_dir / f"mcp-test-{os.getpid()}"
        changes = {"runtime_dir": mark} | ({"mcp_config_files": files} if files else {})
        host = McpHost(settings.model_copy(update=changes), Registry([]), os.environ)
        try:
            await host.reload()
            return [status.model_dump(mode="json") for status in host.bridge.statuses()]
        finally:
            await host.close()

    servers = run(work, as_json=as_json)
    if as_json:
        print_json(servers)
    elif servers:
        print_servers(servers)
    else:
        sys.stdout.write("no MCP servers are configured\n")
    if any(server["state"] not in {"ready", "disabled"} for server in servers):
        raise SystemExit(int(Exit.FAILED))
