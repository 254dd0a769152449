"""Lines of a stream."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.lines import LineSplitter, Overlong


@given(st.lists(st.binary(max_size=30)))
def test_lines_are_the_same_however_the_bytes_arrive(chunks: list[bytes]) -> None:
    """Bytes come in crumbs; lines come whole."""
    splitter = LineSplitter(1_000)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.flush()
    whole = b"".join(chunks).split(b"\n")

    assert [*whole[:-1], *([whole[-1]] if whole[-1] else [])] == lines


@given(st.integers(1, 50))
def test_a_line_that_is_too_long_is_counted_and_the_next_one_is_whole(size: int) -> None:
    """Its bytes are dropped as they come; its ends are kept."""
    splitter = LineSplitter(10_000)
    text = b"A" * 20_000 + b"Z" * 20_000
    chunks = [text[at : at + 1_000 * size] for at in range(0, len(text), 1_000 * size)]
    lines = [line for chunk in [*chunks, b"\nnext\n"] for line in splitter.feed(chunk)]

    assert isinstance(lines[0], Overlong)
    assert (lines[0].size, lines[0].head, lines[0].tail) == (40_000, b"A" * 2_048, b"Z" * 2_048)
    assert lines[1] == b"next"


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "result": {"id": 9, "x": "%s"}}', 7),
        ('{"id": "abc", "result": {"x": "%s"}}', "abc"),
        ('{"result": {"id": 9, "x": "%s"}, "jsonrpc": "2.0", "id": 7}', 7),
        ('{"result": {"x": "%s"}, "id": 7, "jsonrpc": "2.0"}', 7),
        ('{"result": {"x": "%s", "id": 9}}', None),
        ('{"method": "x", "params": {"x": "%s"}}', None),
    ],
)
def test_a_dropped_answer_still_shows_whose_it_was(message: str, request_id: object) -> None:
    """So that only the call fails that it answers; an id inside the result is none of a message."""
    text = (message % ("y" * 5_000)).encode()
    json.loads(text)
    splitter = LineSplitter(1_000)
    (line,) = splitter.feed(text + b"\n")

    assert isinstance(line, Overlong)
    assert request_id == line.request_id
