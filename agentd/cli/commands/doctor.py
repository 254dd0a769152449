"""``agentd doctor``."""

from rich.console import Console
from rich.table import Table

from agentd.cli.doctor import Check, run_checks
from agentd.cli.exits import CliError, Exit, fail, print_json
from agentd.cli.run import Json
from agentd.cli.stack import make_settings
from agentd.settings import default_data_dir

__all__ = ["doctor"]


def doctor(*, as_json: Json = False) -> None:
    """Check this machine: X server, fonts, database, page, model keys, port, permissions."""
    try:
        chatd, agentd = make_settings(data=None, port=None, default_data=default_data_dir())
    except CliError as exc:
        fail(exc, as_json=as_json)
    checks = list(run_checks(agentd, chatd))
    if as_json:
        print_json([check.as_json() for check in checks])
    else:
        Console(highlight=False).print(_doctor_table(checks))
    if any(check.status == "missing" for check in checks):
        raise SystemExit(int(Exit.FAILED))


def _doctor_table(checks: list[Check]) -> Table:
    table = Table(box=None, show_header=False)
    marks = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "missing": "[red]missing[/]"}
    for check in checks:
        advice = f"\n→ {check.advice}" if check.advice else ""
        table.add_row(marks[check.status], check.name, check.detail + advice)
    return table
