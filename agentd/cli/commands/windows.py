"""``agentd desktop windows``, ``focus``, ``move``, ``resize``, ``close``: windows from the shell."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from agentd.cli.commands.desktop import request_desktop, route_of
from agentd.cli.exits import print_json
from agentd.cli.run import DesktopName, Json
from agentd.cli.tables import print_table

__all__ = ["desktop_close", "desktop_focus", "desktop_move", "desktop_resize", "desktop_windows"]

WindowId = Annotated[int, Parameter(help="Number of the window, as `agentd desktop windows` lists it.")]
Coordinate = Annotated[int, Parameter(allow_leading_hyphen=True)]


def desktop_windows(*, name: DesktopName = "main", as_json: Json = False) -> None:
    """List windows."""
    _print_windows(request_desktop("GET", route_of(name, "windows"), as_json=as_json), as_json=as_json)


def desktop_focus(window: WindowId, *, name: DesktopName = "main", as_json: Json = False) -> None:
    """Raise a window and give it the keyboard."""
    _ask(name, window, "focus", {}, as_json=as_json)


def desktop_move(
    window: WindowId, x: Coordinate, y: Coordinate, *, name: DesktopName = "main", as_json: Json = False
) -> None:
    """Move a window."""
    _ask(name, window, "move", {"x": x, "y": y}, as_json=as_json)


def desktop_resize(
    window: WindowId, width: int, height: int, *, name: DesktopName = "main", as_json: Json = False
) -> None:
    """Give a window a size."""
    _ask(name, window, "resize", {"width": width, "height": height}, as_json=as_json)


def desktop_close(
    window: WindowId, *, force: bool = False, name: DesktopName = "main", as_json: Json = False
) -> None:
    """Close a window."""
    path = f"{route_of(name, 'windows')}/{window}/close"
    _print_windows(request_desktop("POST", path, {"force": force}, as_json=as_json), as_json=as_json)


def _ask(name: str, window: int, verb: str, wish: dict[str, int], *, as_json: bool) -> None:
    path = f"{route_of(name, 'windows')}/{window}/{verb}"
    report = request_desktop("POST", path, wish, as_json=as_json)
    if as_json:
        print_json(report)
        return
    _print_windows([report["window"]], as_json=False)
    if report["warning"]:
        sys.stderr.write(f"warning: {report['warning']}\n")


def _print_windows(windows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(windows)
        return
    table = Table("id", "class", "pid", "place", "size", "state", "title", box=None)
    for window in windows:
        left, top, right, bottom = window["bounds"]
        state = "active" if window["active"] else "minimized" if window["minimized"] else ""
        pid = "" if window["pid"] is None else str(window["pid"])
        table.add_row(
            str(window["id"]), window["window_class"], pid, f"{left},{top}", f"{right - left}x{bottom - top}",
            state, window["title"],
        )  # fmt: skip
    print_table(table)
