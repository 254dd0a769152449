"""``agentd desktop …``: the running daemon's desktop from the shell."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter
from rich.table import Table

from agentd.cli.client import local_client
from agentd.cli.exits import CliError, Exit, fail, print_json
from agentd.cli.run import Dashed, DesktopName, Json, load_settings, run
from agentd.cli.tables import print_table

__all__ = [
    "desktop_do",
    "desktop_down",
    "desktop_open",
    "desktop_run",
    "desktop_screenshot",
    "desktop_status",
    "desktop_up",
    "print_statuses",
    "request_desktop",
    "route_of",
    "save_file",
]


def request_desktop(method: str, path: str, body: object | None = None, *, as_json: bool = False) -> Any:  # noqa: ANN401 -- JSON
    """Ask the running daemon; an error ends the command."""

    async def work() -> Any:  # noqa: ANN401 -- JSON
        async with local_client(load_settings().runtime_dir) as client:
            return await client.request(method, f"/api/v0/desktop{path}", body)

    return run(work, as_json=as_json)


def route_of(name: str, verb: str) -> str:
    """A desktop's route; whatever the name holds stays one segment of it."""
    return f"/{quote(name, safe='')}/{verb}"


def print_statuses(statuses: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print sessions as a table, or as JSON."""
    if as_json:
        print_json(statuses)
        return
    table = Table("name", "state", "display", "backend", "geometry", "viewers", "control", "error", box=None)
    for row in statuses:
        keys = ("name", "state", "display", "backend", "geometry", "viewers", "control", "error")
        table.add_row(*("" if row[key] is None else str(row[key]) for key in keys))
    print_table(table)


def desktop_up(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """Start the desktop session, unless it runs."""
    print_statuses([request_desktop("POST", route_of(name, "up"), as_json=as_json)], as_json=as_json)


def desktop_down(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """Stop the desktop session and everything in it."""
    print_statuses([request_desktop("POST", route_of(name, "down"), as_json=as_json)], as_json=as_json)


def desktop_status(*, as_json: Json = False) -> None:
    """Show the desktop sessions."""
    print_statuses(request_desktop("GET", "", as_json=as_json), as_json=as_json)


def desktop_viewers(*, as_json: Json = False) -> None:
    """Show who watches the desktops."""

    async def work() -> list[dict[str, Any]]:
        async with local_client(load_settings().runtime_dir) as client:
            rows: list[dict[str, Any]] = await client.request("GET", "/api/v0/viewers")
            return rows

    rows = run(work, as_json=as_json)
    if as_json:
        print_json(rows)
        return
    table = Table("desktop", "name", "role", "source", "sent", "frames", "lag", "dropped", "seat", box=None)
    for row in rows:
        dropped = ", ".join(f"{count} {what}" for what, count in row["dropped"].items() if count)
        sent, lag = f"{row['sent_bytes'] / 1e6:.1f} MB", f"{row['lag_ms']:.0f} ms"
        frames = "?" if row["frames"] is None else str(row["frames"])
        table.add_row(
            row["desktop"], row["name"], row["role"], row["source"], sent, frames, lag, dropped, row["seat"]
        )
    print_table(table)


def save_file(file: Path, data: bytes, *, as_json: bool = False, is_told: bool = True) -> None:
    """Write *data* where a person wants it, "-" being stdout, and say so unless it is told already."""
    if str(file) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        file.write_bytes(data)
    except OSError as exc:
        fail(CliError(Exit.FAILED, f"can't write {file}: {exc.strerror}", code="unwritable"), as_json=as_json)
    if as_json:
        print_json({"file": str(file), "size": len(data)})
    elif is_told:
        sys.stdout.write(f"saved {file} ({len(data):,} bytes)\n")


def desktop_screenshot(file: Dashed[Path], *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Save a screenshot; "-" writes it to stdout."""
    data: bytes = request_desktop("GET", route_of(name, "screenshot"), as_json=as_json)
    save_file(file, data, as_json=as_json)


def desktop_do(action: Dashed[str], *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Perform one canonical action, given as JSON."""
    try:
        body = json.loads(sys.stdin.read() if action == "-" else action)
    except ValueError as exc:
        fail(CliError(Exit.USAGE, f"the action is not JSON: {exc}", code="bad_json"), as_json=as_json)
    if not isinstance(body, dict):
        fail(CliError(Exit.USAGE, "the action must be a JSON object", code="bad_json"), as_json=as_json)
    result = request_desktop("POST", route_of(name, "action"), body, as_json=as_json)
    if as_json:
        print_json(result)
    else:
        sys.stdout.write("\n".join(report["output"] for report in result["reports"]) + "\n")
        for warning in _warnings_of(result):
            sys.stderr.write(f"warning: {warning}\n")


def _warnings_of(result: dict[str, Any]) -> list[str]:
    """What could not be confirmed: of each action, then of the whole."""
    warnings = [report["warning"] for report in result["reports"]]
    return [*filter(None, warnings), *result["warnings"]]


def desktop_open(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    name: DesktopName = "main",
    as_json: Json = False,
) -> None:
    """Launch a program at the desktop."""
    if not command:
        fail(CliError(Exit.USAGE, "which program? agentd desktop open -- CMD ARGS…", code="usage"))
    result = request_desktop("POST", route_of(name, "open"), {"argv": list(command)}, as_json=as_json)
    if as_json:
        print_json(result)
    else:
        sys.stdout.write(f"{result['pid']}\n")
        if result["warning"]:
            sys.stderr.write(f"warning: {result['warning']}\n")


def desktop_run(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)], name: DesktopName = "main"
) -> None:
    """Become a program of the desktop: this process, its input and its output."""
    if not command:
        fail(CliError(Exit.USAGE, "which program? agentd desktop run -- CMD ARGS…", code="usage"))
    variables = request_desktop("POST", route_of(name, "environment"))
    try:
        os.execvpe(command[0], command, {**os.environ, **variables})  # noqa: S606 -- what the caller asked for
    except OSError as exc:
        fail(CliError(Exit.FAILED, f"can't run {command[0]}: {exc.strerror}", code="not_runnable"))
