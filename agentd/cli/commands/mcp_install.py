"""``agentd mcp install`` and ``clients``: this desktop in the configuration of an MCP client."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from agentd.cli.exits import CliError, Exit, fail, print_json
from agentd.cli.mcp_clients import (
    CLIENTS,
    EntryExists,
    FileUnreadable,
    McpClient,
    add_entry,
    render_document,
    snippet,
)
from agentd.cli.run import Json

__all__ = ["mcp_clients", "mcp_install"]

Flag = Annotated[bool, Parameter(negative="")]


def mcp_install(
    client: str, *, name: str = "desktop", force: Flag = False, show: Flag = False, as_json: Json = False
) -> None:
    """Write the entry."""
    known = CLIENTS.get(client)
    if known is None:
        text = f"no client {client!r} is known; there are: {', '.join(CLIENTS)}"
        fail(CliError(Exit.USAGE, text, code="unknown_client"), as_json=as_json)
    # Whole: a client that is started from a menu has another PATH.
    command = str(Path(shutil.which("agentd") or sys.argv[0]).absolute())
    wanted = snippet(known, name, command)
    path = Path.home() / known.path
    if show:
        sys.stdout.write(wanted)
        return
    try:
        changed = _install(known, path, name, command, force=force)
    except FileUnreadable as exc:
        text = f"{path} is left alone: {exc}. Add to it:\n{wanted}"
        fail(CliError(Exit.FAILED, text, code="file_unreadable"), as_json=as_json)
    except EntryExists as exc:
        fail(CliError(Exit.FAILED, str(exc), code="entry_exists"), as_json=as_json)
    except OSError as exc:
        fail(CliError(Exit.FAILED, f"can't write {path}: {exc.strerror}", code="unwritable"), as_json=as_json)
    if as_json:
        print_json({"client": client, "file": str(path), "changed": changed})
    elif changed:
        sys.stdout.write(f"wrote {path}; restart {known.title}, it then has the server {name}\n")
    else:
        sys.stdout.write(f"{path} has it already\n")


def mcp_clients(*, document: Flag = False, as_json: Json = False) -> None:
    """List them."""
    if document:
        sys.stdout.write(render_document())
    elif as_json:
        print_json(
            [{"client": name, "title": row.title, "file": f"~/{row.path}"} for name, row in CLIENTS.items()]
        )
    else:
        for name, row in CLIENTS.items():
            sys.stdout.write(f"{name:15} {row.title:15} ~/{row.path}\n")


def _install(client: McpClient, path: Path, name: str, command: str, *, force: bool) -> bool:
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    except UnicodeDecodeError as exc:
        raise FileUnreadable("it is not UTF-8") from exc
    after = add_entry(client, before, name, command, force=force)
    if after is None:
        return False
    # A link's target is replaced, not the link; the file is whole at every moment, and keeps its mode.
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(after)
        Path(partial).chmod(mode)
        Path(partial).replace(target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return True
