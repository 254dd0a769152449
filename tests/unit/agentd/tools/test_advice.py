"""What a model is told besides a command's output."""

import pytest

from agentd.tools.advice import advise


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("cat a.txt", "read_file"),
        (" cat  a.txt\n", "read_file"),
        ("head a.txt", "read_file"),
        ("head -n 20 a.txt", "read_file"),
        ("tail -5 a.txt", "read_file"),
        ("tail -n +5 a.txt", "read_file"),
        ("sed -n 10,20p a.txt", "read_file"),
        ("sed -n '10p' a.txt", "read_file"),
        ("ls", "list_directory"),
        ("ls -la", "list_directory"),
        ("ls -l /srv", "list_directory"),
        ("sed -i s/a/b/ x.txt", "edit_files"),
        ("sed -E -i 's/a/b/' x.txt y.txt", "edit_files"),
    ],
)
def test_a_tool_that_does_it_better_is_named(command: str, word: str) -> None:
    """Ours: whole commands only, for which there is a tool."""
    assert word in (advise(command, 0) or "")


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "cat a b",
        "cat -A a",
        "cat a|wc",
        "cat a > b",
        "cat $(which x)",
        "tail -f log",
        "ls a b",
        "ls | wc -l",
        "sed s/a/b/ x",
        "grep -rn word .",
        "rg word",
        "find . -name x",
    ],
)
def test_nothing_is_said_of_what_no_tool_does_better(command: str) -> None:
    """Ours: no tool of the workspace searches, so nobody is sent to one."""
    assert advise(command, 0) is None


def test_codes_are_explained() -> None:
    """Ours: a program that is not there, and one that was killed."""
    assert "did not find a program" in (advise("nope", 127) or "")
    assert "was killed" in (advise("stress", 137) or "")
    assert (advise("false", 1), advise("true", None)) == (None, None)
