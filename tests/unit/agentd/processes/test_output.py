"""Head and tail of what was printed."""

from hypothesis import given
from hypothesis import strategies as st

from agentd.processes.output import CUT_SUFFIX, HEAD_BYTES, MAX_LINE_BYTES, TAIL_BYTES, Output, Printed


def printed(*pieces: bytes) -> Printed:
    """What is kept of *pieces*."""
    output = Output()
    for piece in pieces:
        output.feed(piece)
    return output.printed()


def test_40_kib_keep_both_ends() -> None:
    """16 KiB, a marker, 16 KiB; 8 KiB omitted."""
    raw = b"".join(b"%07d\n" % number for number in range(5 * 1024))

    kept = printed(raw)

    head, marker, tail = kept.text.partition("\n\n[... 8192 bytes omitted ...]\n\n")
    assert marker
    assert head.encode() == raw[:HEAD_BYTES]
    assert tail.encode() == raw[-TAIL_BYTES:]
    assert (kept.original_bytes, kept.omitted_bytes) == (40 * 1024, 8192)


def test_long_line_is_cut_as_it_comes() -> None:
    """2,048 bytes are a line; of one more, 2,032 and a suffix are left."""
    whole = b"x" * MAX_LINE_BYTES

    assert printed(whole + b"\nb").text == whole.decode() + "\nb"
    cut = printed(whole + b"y\nb")
    assert cut.text == "x" * (MAX_LINE_BYTES - len(CUT_SUFFIX)) + CUT_SUFFIX.decode() + "\nb"
    assert cut.omitted_bytes == len(CUT_SUFFIX) + 1


def test_prompt_without_newline_is_seen() -> None:
    """What waits for the rest of its line is printed all the same."""
    assert printed(b"a\nPassword: ").text == "a\nPassword: "
    assert printed(b"x" * 2_040).text == "x" * 2_040


def test_characters_are_not_halved_at_the_gap() -> None:
    """A gap inside a character shows neither half; bytes that are no UTF-8 show as such."""
    kept = printed(b"a" + "é\n".encode() * 20_000)

    assert "\ufffd" not in kept.text
    assert printed(b"\xff").text == "\ufffd"


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"x" * 500, b"x" * 2_048, "é".encode()]), max_size=80), st.data()
)
def test_pieces_do_not_matter(parts: list[bytes], data: st.DataObject) -> None:
    """However the bytes are cut up, the same is kept; its size is bounded and every byte is accounted for."""
    raw = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    kept = printed(raw)

    assert printed(*pieces) == kept
    assert kept.original_bytes == len(raw)
    assert len(kept.text.encode()) <= HEAD_BYTES + TAIL_BYTES + 100
