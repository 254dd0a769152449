"""Exit codes of both commands, and how an error is told."""

import json
import sys
from enum import IntEnum
from typing import NoReturn

__all__ = ["CliError", "Exit", "fail", "print_json"]


class Exit(IntEnum):
    """What the shell sees."""

    OK = 0
    FAILED = 1  # the job itself failed: the chat ended in an error, the action was refused
    USAGE = 2  # bad arguments
    CANNOT_START = 3  # port in use, data directory unusable or busy, no X server
    NOT_RUNNING = 4  # no daemon answers


class CliError(Exception):
    """An error for people: one sentence that says what to do."""

    def __init__(self, exit_code: Exit, message: str, *, code: str = "error") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code


def print_json(value: object) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def fail(error: CliError, *, as_json: bool = False) -> NoReturn:
    """Tell *error* on stderr (with *as_json* also as JSON on stdout) and exit with its code."""
    if as_json:
        print_json({"error": str(error), "code": error.code})
    sys.stderr.write(f"error: {error}\n")
    raise SystemExit(int(error.exit_code))
