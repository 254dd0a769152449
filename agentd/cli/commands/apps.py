"""``agentd desktop apps``, ``end``, ``screen``: programs and the screen from the shell."""

import shlex
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from agentd.cli.commands.desktop import print_statuses, request_desktop, route_of
from agentd.cli.exits import print_json
from agentd.cli.run import DesktopName, Json
from agentd.cli.tables import print_table

__all__ = ["desktop_apps", "desktop_end", "desktop_screen"]

Pid = Annotated[int, Parameter(help="Process id, as `agentd desktop apps` lists it.")]


def desktop_apps(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """List programs."""
    _print_apps(request_desktop("GET", route_of(name, "apps"), as_json=as_json), as_json=as_json)


def desktop_end(pid: Pid, *, name: DesktopName = "main", as_json: Json = False) -> None:
    """End a program."""
    path = f"{route_of(name, 'apps')}/{pid}/end"
    _print_apps(request_desktop("POST", path, as_json=as_json), as_json=as_json)


def desktop_screen(width: int, height: int, *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Resize the screen."""
    body = {"width": width, "height": height}
    status = request_desktop("POST", route_of(name, "screen"), body, as_json=as_json)
    print_statuses([status], as_json=as_json)


def _print_apps(apps: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(apps)
        return
    table = Table("pid", "command", box=None)
    for app in apps:
        table.add_row(str(app["pid"]), shlex.join(app["argv"]))
    print_table(table)
