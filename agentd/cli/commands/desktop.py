"""``agentd desktop …``: the running daemon's desktop from the shell."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from agentd.cli.client import local_client
from agentd.cli.exits import CliError, Exit, fail, print_json
from agentd.cli.run import DesktopName, Json, load_settings, run

__all__ = [
    "desktop_do",
    "desktop_down",
    "desktop_open",
    "desktop_screenshot",
    "desktop_status",
    "desktop_up",
]


def _desktop_request(method: str, path: str, body: object | None = None, *, as_json: bool = False) -> Any:  # noqa: ANN401 -- JSON
    async def work() -> Any:  # noqa: ANN401 -- JSON
        async with local_client(load_settings().runtime_dir) as client:
            return await client.request(method, f"/api/v0/desktop{path}", body)

    return run(work, as_json=as_json)


def _path(name: str, verb: str) -> str:
    """A desktop's route; whatever the name holds stays one segment of it."""
    return f"/{quote(name, safe='')}/{verb}"


def _print_statuses(statuses: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(statuses)
        return
    table = Table("name", "state", "display", "backend", "geometry", "viewers", "control", "error", box=None)
    for row in statuses:
        keys = ("name", "state", "display", "backend", "geometry", "viewers", "control", "error")
        table.add_row(*("" if row[key] is None else str(row[key]) for key in keys))
    Console(highlight=False).print(table)


def desktop_up(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """Start the desktop session, unless it runs."""
    _print_statuses([_desktop_request("POST", _path(name, "up"), as_json=as_json)], as_json=as_json)


def desktop_down(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """Stop the desktop session and everything in it."""
    _print_statuses([_desktop_request("POST", _path(name, "down"), as_json=as_json)], as_json=as_json)


def desktop_status(*, as_json: Json = False) -> None:
    """Show the desktop sessions."""
    _print_statuses(_desktop_request("GET", "", as_json=as_json), as_json=as_json)


def desktop_screenshot(file: Path, *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Save a screenshot as PNG; "-" writes it to stdout."""
    data: bytes = _desktop_request("GET", _path(name, "screenshot"), as_json=as_json)
    if str(file) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        file.write_bytes(data)
    except OSError as exc:
        fail(CliError(Exit.FAILED, f"can't write {file}: {exc.strerror}", code="unwritable"), as_json=as_json)
    if as_json:
        print_json({"file": str(file), "size": len(data)})
    else:
        sys.stdout.write(f"saved {file} ({len(data):,} bytes)\n")


def desktop_do(action: str, *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Perform one canonical action, given as JSON."""
    try:
        body = json.loads(action)
    except ValueError as exc:
        fail(CliError(Exit.USAGE, f"the action is not JSON: {exc}", code="bad_json"), as_json=as_json)
    if not isinstance(body, dict):
        fail(CliError(Exit.USAGE, "the action must be a JSON object", code="bad_json"), as_json=as_json)
    result = _desktop_request("POST", _path(name, "action"), body, as_json=as_json)
    if as_json:
        print_json(result)
    else:
        sys.stdout.write("\n".join(report["output"] for report in result["reports"]) + "\n")


def desktop_open(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    name: DesktopName = "main",
    as_json: Json = False,
) -> None:
    """Launch a program at the desktop."""
    if not command:
        fail(CliError(Exit.USAGE, "which program? agentd desktop open -- CMD ARGS…", code="usage"))
    result = _desktop_request("POST", _path(name, "open"), {"argv": list(command)}, as_json=as_json)
    if as_json:
        print_json(result)
    else:
        sys.stdout.write(f"{result['pid']}\n")
        if result["warning"]:
            sys.stderr.write(f"warning: {result['warning']}\n")
