"""Sentences that tell of answers."""

import pytest

from chatd.prompt.notes import NOTE_CHARACTERS, SAMPLE_CHARACTERS, note_sample, read_note


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("All tests pass.", "All tests pass."),
        ('  "All\n tests pass." ', "All tests pass."),
        ("", None),
        (' "" ', None),
        ("x" * NOTE_CHARACTERS, "x" * NOTE_CHARACTERS),
        ("x" * (NOTE_CHARACTERS + 1), "x" * (NOTE_CHARACTERS - 1) + "…"),
    ],
)
def test_a_reply_is_one_bounded_line_or_none(reply: str, note: str | None) -> None:
    """Spec 10: a short summary; an empty one is none."""
    assert read_note(reply) == note


def test_a_long_answer_is_shown_by_both_its_ends() -> None:
    """Ours: the result may stand at either."""
    text = "begin" + "x" * SAMPLE_CHARACTERS + "end"
    sample = note_sample(text)

    assert note_sample("short") == "short"
    assert sample.startswith("begin")
    assert sample.endswith("end")
    assert len(sample) <= SAMPLE_CHARACTERS + 5
