"""How commands are read."""

import pytest

from agentd.errors import CommandRefused
from agentd.processes.command import Invocation, parse_command, parse_duration, process_environment


@pytest.mark.parametrize(
    ("text", "command", "background"),
    [
        ("ls", "ls", False),
        (" ls \n", "ls", False),
        ("sleep 5 &", "sleep 5", True),
        ("sleep 5&", "sleep 5", True),
        ("a & b &", "a & b", True),
        ("a &&", "a &&", False),
        ("a |&", "a |&", False),
        ("a 2>&", "a 2>&", False),
        ("echo \\&", "echo \\&", False),
        ("a & b", "a & b", False),
    ],
)
def test_background_mark(text: str, command: str, background: bool) -> None:
    """One ampersand at the end, and nothing that only looks like it."""
    assert parse_command(text) == Invocation(command=command, background=background)


@pytest.mark.parametrize("text", ["", "  ", "&", "a\0b", "\ud800", "x" * 100_001])
def test_refused_commands(text: str) -> None:
    """Said before anything runs."""
    with pytest.raises(CommandRefused):
        parse_command(text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("1h30m", 5400.0),
        ("500ms", 0.5),
        ("1m0s", 60.0),
        ("0s", 0.0),
        (" 2M ", 120.0),
    ],
)
def test_durations(value: str | float, seconds: float) -> None:
    """Numbers are seconds; texts carry their units."""
    assert parse_duration(value) == seconds


@pytest.mark.parametrize("value", ["", "soon", "5 minutes", "-1", -1, float("nan"), float("inf"), "m5"])
def test_what_is_no_duration(value: str | float) -> None:
    """Refused with an example."""
    with pytest.raises(CommandRefused, match="no duration"):
        parse_duration(value)


def test_environment_order() -> None:
    """The caller's own variables win; the chat is named."""
    made = process_environment({"PATH": "/bin", "PAGER": "less"}, chat_id="c", extra={"TERM": "xterm"})

    assert (made["PATH"], made["PAGER"], made["TERM"], made["AGENTD_CHAT_ID"]) == (
        "/bin",
        "cat",
        "xterm",
        "c",
    )
