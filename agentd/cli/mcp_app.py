"""``agentd mcp …``: what there is; its help stands here so that nothing heavy is loaded for it."""

import cyclopts

__all__ = ["mcp"]

COMMANDS = "agentd.cli.commands"
MODULES = {
    "serve": "mcp_serve",
    "url": "mcp_serve",
    "test": "mcp_test",
    "install": "mcp_install",
    "clients": "mcp_install",
}

HELP = {
    "ls": """List the MCP servers of the running daemon: state, tools, last error.

With --tools each tool as models see it. With --json {settled, servers, tools}.

For example:
  agentd mcp ls
  agentd mcp ls --tools --json""",
    "test": """Start the configured MCP servers here, list their tools, end them again.

Needs no running daemon. Takes the files named, or those of the settings. With --json a list of servers.
Exit code 1: one did not start.

For example:
  agentd mcp test
  agentd mcp test other/.mcp.json --json""",
    "logs": """Print what an MCP server said on stderr, and what became of it.

For example:
  agentd mcp logs github
  agentd mcp logs github --lines 50 --json""",
    "reload": """Read the MCP configuration again now; servers whose entry is the same are left alone.

For example:
  agentd mcp reload""",
    "serve": """Serve the desktop to an MCP client over stdin and stdout.

Joins the running daemon, or starts one for the time. AGENTD_MCP_SERVE=desktop,files adds files and processes.

For example, in a client's configuration:
  {"mcpServers": {"desktop": {"command": "agentd", "args": ["mcp", "serve"]}}}""",
    "install": """Give an MCP client of this machine the desktop: write the entry into its configuration.

What else the file holds stays. --show prints the entry instead; --name is the server's name there; --force
replaces another server of that name. With --json {client, file, changed}.

For example:
  agentd mcp install cursor
  agentd mcp install claude-code --show""",
    "clients": """List the MCP clients that `install` knows, and where each keeps its servers.

For example:
  agentd mcp clients""",
    "url": """Print the address and the token of /mcp, streamable HTTP on loopback.

The daemon serves it when AGENTD_MCP_PORT is set. With --json {url, token}.

For example:
  agentd mcp url --json""",
    "call": """Call one tool of an MCP server and print its result.

Exit code 1: the tool failed.

For example:
  agentd mcp call time__get_current_time '{"timezone":"UTC"}'""",
}

mcp = cyclopts.App(name="mcp", help="MCP servers of the workspace, and the desktop as one.")
for name, text in HELP.items():
    mcp.command(f"{COMMANDS}.{MODULES.get(name, 'mcp')}:mcp_{name}", name=name, help=text)
