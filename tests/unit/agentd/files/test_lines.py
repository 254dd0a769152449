"""Numbered windows of files."""

from hypothesis import given
from hypothesis import strategies as st

from agentd.files.lines import MAX_LINE_BYTES, MAX_WINDOW_BYTES, number_lines


def test_lines_are_numbered_from_the_offset() -> None:
    """Number, tab, text; the count is of the whole file."""
    window = number_lines("abcde", offset=2, limit=2)

    assert window.text == "2\tb\n3\tc"
    assert (window.first, window.count, window.total, window.next_offset) == (2, 2, 5, 4)
    assert window.note == "2 more lines: go on with offset 4"


def test_end_of_file_has_no_note() -> None:
    """Nothing is missing, nothing is said."""
    window = number_lines(["a", ""], offset=1)

    assert window.text == "1\ta\n2\t"
    assert window.next_offset is None
    assert window.note is None


def test_long_line_is_cut_at_a_character() -> None:
    """Cut lines are whole UTF-8, and named."""
    window = number_lines(["é" * MAX_LINE_BYTES, "b"])

    assert window.text == f"1\t{'é' * (MAX_LINE_BYTES // 2)}\n2\tb"
    assert window.note == f"cut to {MAX_LINE_BYTES} bytes: line 1"


@given(st.lists(st.text(alphabet="aé\t", max_size=3_000), max_size=60))
def test_windows_cover_the_file_once(lines: list[str]) -> None:
    """Going on by the offset that is named reads every line once, in bounded answers."""
    offset: int | None = 1
    numbers: list[int] = []
    while offset is not None and lines:
        window = number_lines(lines, offset=offset)
        numbers += [int(line.split("\t", 1)[0]) for line in window.text.split("\n")]
        assert len(window.text.encode()) <= max(MAX_WINDOW_BYTES, MAX_LINE_BYTES + 10)
        offset = window.next_offset

    assert numbers == list(range(1, len(lines) + 1))
