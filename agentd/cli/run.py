"""What every command shares: parameters, settings, running a coroutine, telling errors."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from pydantic import ValidationError

from agentd.cli.exits import CliError, Exit, fail
from agentd.settings import AgentdSettings

__all__ = [
    "Dashed",
    "Data",
    "DesktopName",
    "Json",
    "Port",
    "bad_setting",
    "load_settings",
    "read_settings",
    "run",
]

T = TypeVar("T")

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]
Data = Annotated[Path | None, Parameter(name="--data", help="Data directory [the XDG state directory].")]
Port = Annotated[int | None, Parameter(name="--port", help="TCP port on loopback; 0: a free one [7080].")]
# An argument that may be "-": stdin or stdout.
Dashed = Annotated[T, Parameter(allow_leading_hyphen=True)]
DesktopName = Annotated[str, Parameter(name="--name", help="Which desktop.")]


def run(work: Callable[[], Coroutine[Any, Any, T]], *, as_json: bool = False) -> T:
    """Run *work*; tell errors as people and programs expect them."""
    try:
        return asyncio.run(work())
    except CliError as exc:
        fail(exc, as_json=as_json)
    except ExceptionGroup as group:
        matching = group.subgroup(CliError)
        if matching is None:
            raise
        fail(_first_leaf(matching), as_json=as_json)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _first_leaf(group: ExceptionGroup[CliError]) -> CliError:
    """The first error of a task group that failed."""
    first = group.exceptions[0]
    return _first_leaf(first) if isinstance(first, ExceptionGroup) else first


def load_settings() -> AgentdSettings:
    """The daemon's settings; a bad one ends the command with what is wrong."""
    try:
        return read_settings()
    except CliError as exc:
        fail(exc)


def read_settings() -> AgentdSettings:
    """
    The daemon's settings.

    Raises:
        CliError: one makes no sense, or the file can't be read; the text says which.
    """
    try:
        return AgentdSettings()
    except (ValidationError, TOMLDecodeError, OSError) as exc:
        raise bad_setting(exc) from exc


def bad_setting(exc: ValidationError | TOMLDecodeError | OSError) -> CliError:
    """What is wrong with the settings, in one sentence."""
    if isinstance(exc, OSError):
        text = f"the configuration file {exc.filename} can't be read: {exc.strerror}"
        return CliError(Exit.USAGE, text, code="bad_setting")
    if isinstance(exc, TOMLDecodeError):
        return CliError(Exit.USAGE, f"the configuration file is not TOML: {exc}", code="bad_setting")
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    # What several settings are wrong about together is at no place, and names them itself.
    named = f"setting {where}" if where else "settings"
    return CliError(Exit.USAGE, f"{named}: {first['msg'].removeprefix('Value error, ')}", code="bad_setting")
