"""What a viewer's own messages tell of the updates that it has taken in."""

import struct

import pytest

from computer.rfb.acknowledged import SEEN, Acknowledged
from computer.rfb.viewer import ViewerParser
from tests.unit.computer.rfb import viewers as v

ON, OFF = (struct.pack(">BBHHHH", 150, is_on, 0, 0, 8, 4) for is_on in (1, 0))
WHOLE, NEXT = (struct.pack(">BBHHHH", 3, is_next, 0, 0, 8, 4) for is_next in (0, 1))
# What Xvnc asks before and after an update, as it is answered.
PONG = v.fence(1, b"\1")
ASKED = 1 << 31


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (b"", 0),
        (WHOLE, 0),
        (WHOLE + NEXT * 3, 3),
        (ON, None),
        (NEXT + ON, None),
        (NEXT + ON + v.fence(0, b"\0"), 1),
        (ON + PONG, 0),
        (NEXT + ON + PONG * 4, 3),
        (ON + PONG * 4 + NEXT, 2),
        (ON + v.fence(0, SEEN) * 3, 3),
        (ON + PONG * 2 + v.fence(0, SEEN), 2),
        (ON + v.fence(ASKED, SEEN), None),
        (PONG * 4 + NEXT, 1),
        (ON + PONG * 4 + OFF + PONG * 4 + NEXT, 3),
    ],
    ids=[
        "nothing", "the first asked for", "asking", "unasked, untold", "unasked after one, untold",
        "a fence that is of no update", "half an update", "asking, then unasked", "unasked, and asking",
        "of a broadcast", "first of the server, then of a broadcast", "a fence of its own",
        "fences beside requests", "unasked, then asking",
    ],
)  # fmt: skip
def test_updates_are_counted_once_in_either_mode(said: bytes, count: int | None) -> None:
    """The issue: frames of each viewer; what can't be known is not called none."""
    acknowledged, parser = Acknowledged(), ViewerParser(v.INIT)
    for message in parser.receive(v.HELLO + said):
        acknowledged.note(message)

    assert parser.error is None
    assert acknowledged.count == count
