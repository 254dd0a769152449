"""Prompts, echoes and output in a terminal's text."""

import pytest

from chatd.rehearsal.shell import (
    closes_shell,
    count_echoes,
    has_prompt,
    is_fresh,
    output_of,
    visible_text,
    wipes_screen,
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["$"], True),
        (["#"], True),
        (["user@host:~/src$"], True),
        (["out", "$", ""], True),
        (["$ sleep 5"], False),
        (["out"], False),
        ([], False),
        (["5 $"], False),
        (["$ \ufffd"], True),
    ],
)
def test_a_bare_prompt_at_the_end_waits_for_a_command(lines: list[str], expected: bool) -> None:
    """Ours: only the last line that is not blank counts."""
    assert has_prompt(lines) is expected


def test_output_is_what_lies_between_the_last_echo_and_the_prompt() -> None:
    """Ours: earlier runs of the same command are not reported."""
    lines = ["$ date", "old", "$ date", "new", "", "# comment", "$"]

    assert output_of(lines, "date") == "new\n\n# comment"
    assert count_echoes(lines, "date") == 2


def test_output_without_an_echo_is_unknown() -> None:
    """Ours: scrolled away is not the same as empty."""
    assert output_of(["a", "$"], "date") is None
    assert output_of(["$ date", "$"], "date") == ""


def test_an_unreadable_cell_equals_any_character() -> None:
    """Ours: the pointer may cover a character of the echo."""
    assert count_echoes(["$ d\ufffdte"], "date") == 1
    assert count_echoes(["$ dote"], "date") == 0
    assert count_echoes(["$ echo \ufffd"], "echo é") == 1


def test_visible_text_has_no_prompt_and_no_blank_edges() -> None:
    """Ours: what is told is the text, not the shell's waiting."""
    assert visible_text(["", "a ", "", "b", "$", ""]) == "a\n\nb"


def test_a_prompt_behind_unended_output_is_left_out() -> None:
    """Ours: the prompt is known from the echo; while the command runs there is none."""
    assert output_of(["# x", "~^_#"], "x") == "~^_"
    assert output_of(["u@h:~$ x", "two wordsu@h:~$"], "x") == "two words"
    assert output_of(["$ x", "5$"], "x", is_ended=False) == "5$"
    assert output_of(["$ a", "~^_$ b", "out", "$"], "b") == "out"


def test_a_fresh_terminal_shows_a_prompt_only() -> None:
    """Ours: one that was used shows more."""
    assert is_fresh(["", "$"])
    assert not is_fresh(["$", "$"])
    assert not is_fresh(["x"])


def test_commands_that_end_the_shell_or_wipe_the_screen_are_known() -> None:
    """Ours: for them the loss of the echo is no surprise."""
    assert all(map(closes_shell, ["exit", "exit 3", "ls; exit", "true && logout", " exit ;"]))
    assert not any(map(closes_shell, ["echo exit", "exit-now", "exits"]))
    assert all(map(wipes_screen, ["clear", "ls; reset", r"printf '\033c'"]))
    assert not any(map(wipes_screen, ["ls", "clearly"]))
