"""``agentd desktop record …``: films of the running daemon's desktops."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from agentd.cli.client import LocalClient, local_client
from agentd.cli.commands.desktop import save_file
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.run import Dashed, DesktopName, Json, load_settings, run
from agentd.cli.tables import print_table

__all__ = ["record_list", "record_save", "record_start", "record_stop"]

BASE = "/api/v0/recordings"
COLUMNS = ("id", "desktop", "state", "reason", "started_at", "duration_s", "size_bytes", "error")
Id = Annotated[str | None, Parameter(help="Of the recording; the newest that runs when absent.")]
Save = Annotated[Path | None, Parameter(name="--save", help="Where the film goes.")]


def record_start(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """Start a recording."""
    info = _request("POST", BASE, {"desktop": name}, as_json=as_json)
    if as_json:
        print_json(info)
    else:
        sys.stdout.write(f"{info['id']}\n")


def record_stop(number: Id = None, *, save: Save = None, as_json: Json = False) -> None:
    """Stop a recording."""

    async def work() -> tuple[Any, bytes | None]:
        async with local_client(load_settings().runtime_dir) as client:
            chosen = number or await _newest_running(client)
            info = await client.request("POST", f"{BASE}/{chosen}/stop", {})
            return info, await client.request("GET", f"{BASE}/{chosen}/film") if save else None

    info, film = run(work, as_json=as_json)
    if as_json:
        print_json(info)
    else:
        sys.stdout.write(f"stopped {info['id']} ({info['reason']}, {info['duration_s'] or 0:.1f} s)\n")
    if save is not None and film is not None:
        save_file(save, film, is_told=not as_json)


def record_list(*, as_json: Json = False) -> None:
    """Show the recordings."""
    found = _request("GET", BASE, as_json=as_json)
    if as_json:
        print_json(found)
        return
    table = Table(*COLUMNS, box=None)
    for info in found:
        table.add_row(*("" if info[column] is None else str(info[column]) for column in COLUMNS))
    # An id must not be cut by a narrow terminal.
    print_table(table)


def record_save(number: str, file: Dashed[Path], *, as_json: Json = False) -> None:
    """Save a film."""
    film: bytes = _request("GET", f"{BASE}/{number}/film", as_json=as_json)
    save_file(file, film, as_json=as_json)


def _request(method: str, path: str, body: object | None = None, *, as_json: bool = False) -> Any:  # noqa: ANN401
    async def work() -> Any:  # noqa: ANN401 -- JSON
        async with local_client(load_settings().runtime_dir) as client:
            return await client.request(method, path, body)

    return run(work, as_json=as_json)


async def _newest_running(client: LocalClient) -> str:
    """
    Id of the newest recording that runs.

    Raises:
        CliError: none does.
    """
    for info in await client.request("GET", BASE):
        if info["state"] == "recording":
            return str(info["id"])
    msg = "nothing is being recorded; `agentd desktop record start` begins"
    raise CliError(Exit.FAILED, msg, code="not_found")
