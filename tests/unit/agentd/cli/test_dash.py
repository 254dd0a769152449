"""A lone dash is an argument: stdin or stdout."""

import pytest

from agentd.cli.app import app

PARENT = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["do", "-"], ["-"]),
        (["do", "-", "--json"], ["-"]),
        (["screenshot", "-"], ["-"]),
        (["screenshot", "--json", "a.png"], ["a.png"]),
        (["trace", "export", "-"], ["-"]),
        (["record", "save", PARENT, "-"], [PARENT, "-"]),
    ],
)
def test_dash_is_taken_as_an_argument(words: list[str], arguments: list[str]) -> None:
    """Ours: the help says so; a secret goes in by stdin, out of the list of processes."""
    _, bound, _ = app.parse_args(["desktop", *words])

    assert arguments == [str(argument) for argument in bound.args]
