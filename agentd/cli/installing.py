"""
From installed programs to running services: which files, links and commands, in which order.

The plan is made of values and changes nothing; performing it compares first, so that a second run changes
nothing either. Settings and data are never overwritten, and go only by ``purge``.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentd.cli.exits import CliError, Exit

__all__ = ["Done", "Options", "Service", "Step", "perform", "plan_install", "plan_uninstall", "units_dir"]

Service = Literal["agentd", "chatd"]
Kind = Literal["write", "keep", "link", "remove", "run", "try"]

# Where the unit files say that programs are.
PLACE = "/opt/agentd/current/bin"
PROFILE = """\
# The commands of this machine's agentd find it; for the user that it runs as.
if [ -O /run/agentd ]; then export AGENTD_RUNTIME_DIR=/run/agentd; fi
"""
# Seconds for one command; a first start migrates a database.
COMMAND_S = 960.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One thing to do.

    ``write`` a file, ``keep`` one that is there or write it, ``link`` *path* to *target*, ``remove`` a file
    or directory, ``run`` a command that must succeed, ``try`` one that may fail.
    """

    kind: Kind
    path: Path = Path()
    content: str = ""
    mode: int = 0o644
    target: str = ""
    argv: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "run" | "try":
                return " ".join(self.argv)
            case "link":
                return f"{self.path} -> {self.target}"
            case _:
                return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What is wanted, and where.

    Args:
        services: which.
        units: directory of the unit files that came with us.
        programs: directory of the programs to start.
        root: of the file system; another one for an image.
        home: of the user whose services they are; None: the system's.
        is_booted: systemd runs here, so services can be started.
        start: start them.
    """

    services: tuple[Service, ...] = ("chatd", "agentd")
    units: Path
    programs: Path
    root: Path = Path("/")
    home: Path | None = None
    is_booted: bool = True
    start: bool = True
    purge: bool = False

    @property
    def systemctl(self) -> tuple[str, ...]:
        """The command, for the right manager and root."""
        if self.home is not None:
            return ("systemctl", "--user")
        return ("systemctl",) if self.root == Path("/") else ("systemctl", f"--root={self.root}")

    def at(self, path: str) -> Path:
        """*path* below the root."""
        return self.root / path.lstrip("/")


@dataclass(slots=True)
class Done:
    """What came of each step, for people and programs."""

    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def units_dir() -> Path:
    """
    The unit files that belong to this code: in the wheel, or beside it in a checkout.

    Raises:
        CliError: there are none.
    """
    package = Path(__file__).parents[1]
    for place in (package / "systemd", package.parent / "systemd"):
        if (place / "system/agentd.service").is_file():
            return place
    raise CliError(
        Exit.CANNOT_START, "the unit files are missing; install agentd from its wheel", code="no_units"
    )


def plan_install(options: Options) -> list[Step]:
    """Every step to services that run, in order."""
    if options.home is not None:
        return [*_user_files(options, options.home), *_starting(options)]
    return [*_system_files(options), *_accounts(options), *_starting(options)]


def _system_files(options: Options) -> Iterator[Step]:
    for kind in ("sysusers.d", "tmpfiles.d"):
        text = (options.units / kind / "agentd.conf").read_text()
        yield Step(kind="write", path=options.at(f"etc/{kind}/agentd.conf"), content=text)
    for service in options.services:
        for unit in sorted((options.units / "system").glob(f"{service}.*")):
            path = options.at(f"etc/systemd/system/{unit.name}")
            yield Step(kind="write", path=path, content=_with_programs(unit, options.programs))
        example = options.units / "etc" / f"{service}.toml"
        path = options.at(f"etc/{service}/{service}.toml")
        yield Step(kind="keep", path=path, content=example.read_text())
        program = options.programs / service
        yield Step(kind="link", path=options.at(f"usr/local/bin/{service}"), target=str(program))
    if "agentd" in options.services:
        yield Step(kind="write", path=options.at("etc/profile.d/agentd.sh"), content=PROFILE)


def _accounts(options: Options) -> Iterator[Step]:
    """Users first: directories are given to them."""
    root = [] if options.root == Path("/") else [f"--root={options.root}"]
    yield Step(kind="run", argv=("systemd-sysusers", *root, str(options.at("etc/sysusers.d/agentd.conf"))))
    tmpfiles = str(options.at("etc/tmpfiles.d/agentd.conf"))
    yield Step(kind="run", argv=("systemd-tmpfiles", *root, "--create", tmpfiles))


def _user_files(options: Options, home: Path) -> Iterator[Step]:
    for service in options.services:
        unit = options.units / "user" / f"{service}.service"
        path = home / ".config/systemd/user" / unit.name
        yield Step(kind="write", path=path, content=_with_programs(unit, options.programs))
        example = (options.units / "etc" / f"{service}.toml").read_text()
        yield Step(kind="keep", path=home / f".config/{service}/{service}.toml", content=example, mode=0o600)


def _with_programs(unit: Path, programs: Path) -> str:
    return unit.read_text().replace(PLACE, str(programs))


def _starting(options: Options) -> Iterator[Step]:
    units = tuple(f"{service}.service" for service in options.services)
    if options.is_booted:
        yield Step(kind="run", argv=(*options.systemctl, "daemon-reload"))
    yield Step(kind="run", argv=(*options.systemctl, "enable", *units))
    if options.is_booted and options.start:
        # Each tells when it serves, so this waits for that; one that runs is replaced by the new version.
        for unit in units:
            yield Step(kind="run", argv=(*options.systemctl, "restart", unit))


def plan_uninstall(options: Options) -> list[Step]:
    """Every step back; settings, data and accounts stay unless *purge* is wanted."""
    units = tuple(f"{service}.service" for service in options.services)
    sockets = ("chatd.socket",) if "chatd" in options.services and options.home is None else ()
    steps = []
    if options.is_booted:
        steps.append(Step(kind="try", argv=(*options.systemctl, "stop", *units, *sockets)))
    steps.append(Step(kind="try", argv=(*options.systemctl, "disable", *units, *sockets)))
    steps += [Step(kind="remove", path=path) for path in _installed(options, units, sockets)]
    if options.is_booted:
        steps.append(Step(kind="try", argv=(*options.systemctl, "daemon-reload")))
    if options.purge:
        steps += _purging(options)
    return steps


def _installed(options: Options, units: Iterable[str], sockets: Iterable[str]) -> Iterator[Path]:
    if options.home is not None:
        yield from (options.home / ".config/systemd/user" / unit for unit in units)
        return
    yield from (options.at(f"etc/systemd/system/{unit}") for unit in (*units, *sockets))
    yield from (options.at(f"usr/local/bin/{service}") for service in options.services)
    if set(options.services) == {"agentd", "chatd"}:
        yield from (options.at(f"etc/{kind}/agentd.conf") for kind in ("sysusers.d", "tmpfiles.d"))
    if "agentd" in options.services:
        yield options.at("etc/profile.d/agentd.sh")


def _purging(options: Options) -> Iterator[Step]:
    for service in options.services:
        if options.home is not None:
            state = ".local/state/chatd" if service == "chatd" else ".local/state/agentd"
            places = [options.home / f".config/{service}", options.home / state]
        else:
            places = [options.at(f"etc/{service}"), options.at(f"var/lib/{service}")]
        yield from (Step(kind="remove", path=place) for place in places)


def perform(steps: Iterable[Step], *, tell: Callable[[str, Step], None], dry_run: bool = False) -> Done:
    """
    Do the steps in order; one that must succeed and does not ends it.

    Args:
        steps: of a plan.
        tell: hears of each step ``written``, ``kept``, ``linked``, ``removed``, ``run``, ``failed`` or
            ``unchanged``.
        dry_run: only say what would be done.

    Raises:
        CliError: a step failed; the text says which and why, and what was done before stays done.
    """
    done = Done()
    for step in steps:
        word = _word(step) if dry_run else _do(step)
        place = {"unchanged": done.unchanged, "kept": done.unchanged, "failed": done.failed}
        place.get(word, done.changed).append(str(step))
        tell(word, step)
    return done


def _word(step: Step) -> str:
    """What performing *step* would come to."""
    exists = step.path.exists() or step.path.is_symlink()
    match step.kind:
        case "run" | "try":
            return "run"
        case "keep" if exists:
            return "kept"
        case "link":
            is_same = step.path.is_symlink() and str(step.path.readlink()) == step.target
            return "unchanged" if is_same else "linked"
        case "remove":
            return "removed" if exists else "unchanged"
        case _:
            is_same = exists and step.path.is_file() and step.path.read_text() == step.content
            return "unchanged" if is_same else "written"


def _do(step: Step) -> str:
    try:
        word = _word(step)
        if word in {"unchanged", "kept"}:
            return word
        match step.kind:
            case "run" | "try":
                return _run(step)
            case "link":
                _replace(step.path, lambda part: part.symlink_to(step.target))
            case "remove":
                _remove(step.path)
            case _:
                _replace(step.path, lambda part: _write(part, step))
    except OSError as exc:
        advice = "; run this as root, or with --user" if isinstance(exc, PermissionError) else ""
        text = f"{step}: {exc.strerror}{advice}"
        raise CliError(Exit.CANNOT_START, text, code="install_failed") from exc
    return word


def _replace(path: Path, make: Callable[[Path], None]) -> None:
    """Have the new one there whole, or the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    make(part)
    part.replace(path)


def _write(part: Path, step: Step) -> None:
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, step.mode), "w") as file:
        file.write(step.content)
        os.fchmod(file.fileno(), step.mode)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _run(step: Step) -> str:
    try:
        done = subprocess.run(  # noqa: S603 -- a plan of ours
            step.argv,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
            stdin=subprocess.DEVNULL,
        )
        code, told = done.returncode, done.stderr.strip() or done.stdout.strip()
    except FileNotFoundError:
        code, told = 127, f"{step.argv[0]} is not there: is this a machine with systemd?"
    except subprocess.TimeoutExpired:
        code, told = 124, f"not done within {COMMAND_S:g} s"
    if code == 0:
        return "run"
    if step.kind == "try":
        return "failed"
    text = f"`{step}` failed with {code}: {told}"
    raise CliError(Exit.CANNOT_START, text, code="install_failed")
