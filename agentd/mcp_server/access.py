"""How clients come to the MCP server: the pipe of the local API, and the token of ``/mcp``."""

import secrets
from pathlib import Path

__all__ = ["MAX_MESSAGE_BYTES", "PIPE", "read_token"]

PIPE = "/api/v0/mcp/pipe"
# Bytes of one message; a 4K screenshot is about 9.4 MB in base64.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


def read_token(path: Path) -> str:
    """The token of ``/mcp``; made on the first call, kept in a file of mode 0600."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        token = f"mcp_{secrets.token_urlsafe(32)}"
        path.touch(mode=0o600, exist_ok=True)
        path.write_text(token + "\n")
        return token
