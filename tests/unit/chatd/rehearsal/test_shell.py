"""Prompts, echoes and output in a terminal's text."""

import pytest

from chatd.rehearsal.shell import count_echoes, has_prompt, output_of, visible_text


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
