"""``agentd mcp …``: servers of the running daemon, or started here for a test."""

import json
import sys
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter
from rich.table import Table

from agentd.cli.client import local_client
from agentd.cli.exits import CliError, Exit, fail, print_json
from agentd.cli.run import Json, load_settings, run
from agentd.cli.tables import print_table

__all__ = ["mcp_call", "mcp_logs", "mcp_ls", "mcp_reload", "print_servers"]

COLUMNS = ("name", "transport", "state", "tools", "protocol_version", "last_error")


def _ask(method: str, path: str, body: object | None = None, *, as_json: bool = False) -> Any:  # noqa: ANN401 -- JSON
    async def work() -> Any:  # noqa: ANN401 -- JSON
        async with local_client(load_settings().runtime_dir) as client:
            return await client.request(method, f"/api/v0/mcp{path}", body)

    return run(work, as_json=as_json)


def mcp_ls(
    *, tools: Annotated[bool, Parameter(negative="", help="Each tool.")] = False, as_json: Json = False
) -> None:
    """List the MCP servers."""
    answer = _ask("GET", "/servers", as_json=as_json)
    offered = _ask("GET", "/tools", as_json=as_json)["tools"] if tools else []
    if as_json:
        print_json(answer | ({"tools": offered} if tools else {}))
        return
    print_servers(answer["servers"])
    for tool in offered:
        first = tool["description"].strip().partition("\n")[0]
        sys.stdout.write(f"{tool['name']}  {first[:80]}\n")
    if not answer["settled"]:
        sys.stderr.write("the servers are still being started\n")


def print_servers(servers: list[dict[str, Any]]) -> None:
    """A table of servers, what is odd about them, and the tools that they don't get to offer."""
    table = Table(*COLUMNS, box=None)
    for server in servers:
        table.add_row(*("" if server[key] is None else str(server[key]) for key in COLUMNS))
    print_table(table)
    for server in servers:
        for warning in server.get("warnings", ()):
            sys.stdout.write(f"{server['name']}: warning: {warning}\n")
        for tool in server["rejected"]:
            sys.stdout.write(f"{server['name']}: {tool['tool']} is not offered: {tool['reason']}\n")


def mcp_reload(*, as_json: Json = False) -> None:
    """Read the configuration again."""
    answer = _ask("POST", "/reload", as_json=as_json)
    if as_json:
        print_json(answer)
    else:
        print_servers(answer["servers"])


def mcp_logs(
    name: str,
    *,
    lines: Annotated[int, Parameter(help="How many, the newest.")] = 200,
    as_json: Json = False,
) -> None:
    """Print a server's log."""
    answer = _ask("GET", f"/servers/{quote(name, safe='')}/log?limit={lines}", as_json=as_json)
    if as_json:
        print_json(answer["lines"])
        return
    for line in answer["lines"]:
        sys.stdout.write(f"{line['at'][:19]} {line['origin']:6} {line['text']}\n")


def mcp_call(tool: str, arguments: str = "{}", *, as_json: Json = False) -> None:
    """Call a tool."""
    try:
        parsed = json.loads(arguments)
    except ValueError as exc:
        fail(CliError(Exit.USAGE, f"the arguments are not JSON: {exc}", code="bad_json"), as_json=as_json)
    body = {"tool_name": tool, "arguments": parsed}
    answer = _ask("POST", "/call-tool", body, as_json=as_json)
    if as_json:
        print_json(answer)
    else:
        for item in answer["content"]:
            text = item.get("text") or f"[{item['type']} {item.get('media_type')}]"
            sys.stdout.write(f"{text}\n")
    if answer["is_error"]:
        raise SystemExit(int(Exit.FAILED))
