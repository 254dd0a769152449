"""``agentd install`` and ``agentd uninstall``."""

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from agentd.cli.enrolling import Enrolment, enrol
from agentd.cli.exits import CliError, fail, print_json
from agentd.cli.installing import (
    Options,
    Service,
    Step,
    perform,
    plan_install,
    plan_uninstall,
    units_dir,
)
from agentd.cli.run import Json

__all__ = ["install", "uninstall"]

Services = Annotated[tuple[Service, ...], Parameter(help="Which; none: both.", negative="")]
ForUser = Annotated[bool, Parameter(name="--user", negative="", help="Of this user, not the system.")]
Programs = Annotated[Path | None, Parameter(name="--bin", help="Where the programs are [here].")]
Root = Annotated[Path, Parameter(help="Of the file system; another one for an image that is being made.")]
DryRun = Annotated[bool, Parameter(negative="", help="Only say what would be done.")]
Start = Annotated[bool, Parameter(help="Start the services, or restart those that run.")]
Purge = Annotated[bool, Parameter(negative="", help="Remove settings and data as well: chats are gone.")]


def install(
    *services: Service,
    user: ForUser = False,
    programs: Programs = None,
    root: Root = Path("/"),
    dry_run: DryRun = False,
    start: Start = True,
    as_json: Json = False,
) -> None:
    """Make services of the programs."""
    try:
        options = _options(services, user=user, programs=programs, root=root, start=start)
        _perform(plan_install(options), dry_run=dry_run, as_json=as_json)
        if not dry_run and options.is_booted and start and not user and len(options.services) == 2:
            _enrol(options, as_json=as_json)
    except CliError as exc:
        fail(exc, as_json=as_json)
    if not options.is_booted and not as_json:
        sys.stderr.write("systemd does not run here: the services start when this system boots\n")


def uninstall(
    *services: Service,
    user: ForUser = False,
    root: Root = Path("/"),
    purge: Purge = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Stop the services and remove what install made."""
    try:
        options = _options(services, user=user, root=root, purge=purge)
        _perform(plan_uninstall(options), dry_run=dry_run, as_json=as_json)
    except CliError as exc:
        fail(exc, as_json=as_json)


def _options(
    services: tuple[Service, ...],
    *,
    user: bool,
    root: Path,
    programs: Path | None = None,
    start: bool = True,
    purge: bool = False,
) -> Options:
    return Options(
        services=services or ("chatd", "agentd"),
        units=units_dir(),
        programs=(programs or Path(sys.executable).parent).absolute(),
        root=root,
        home=Path.home() if user else None,
        is_booted=root == Path("/") and Path("/run/systemd/system").is_dir(),
        start=start,
        purge=purge,
    )


def _enrol(options: Options, *, as_json: bool) -> None:
    """Introduce the two services of this machine to each other, once."""
    user = os.environ.get("SUDO_USER") or "admin"
    plan = Enrolment(user=user, workspace=socket.gethostname(), programs=options.programs)
    if not plan.is_wanted:
        return
    enrol(plan, tell=lambda word, step: None if as_json else _tell(word, step))
    if not as_json:
        login = " ".join((*plan.chatd, "chatd", "users", "login-url", user))
        sys.stdout.write(f"\nlog in, once: {login}\n")


def _tell(word: str, step: Step) -> None:
    sys.stdout.write(f"{word:9} {step}\n")
    sys.stdout.flush()


def _perform(steps: list[Step], *, dry_run: bool, as_json: bool) -> None:
    def tell(word: str, step: Step) -> None:
        if not as_json:
            _tell(f"would be {word}" if dry_run else word, step)

    done = perform(steps, tell=tell, dry_run=dry_run)
    if as_json:
        print_json({"changed": done.changed, "unchanged": done.unchanged, "failed": done.failed})
