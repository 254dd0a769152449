"""What a viewer sends, in whatever pieces: the same messages, or the same refusal."""

import struct
import zlib
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.errors import RfbProtocolError
from computer.rfb.viewer import (
    MAX_CLIPBOARD_BYTES,
    ClipboardMessage,
    ClipboardTrouble,
    Control,
    Encodings,
    FenceMessage,
    KeyMessage,
    PointerMessage,
    ResizeMessage,
    UpdateRequest,
    ViewerMessage,
    ViewerParser,
)
from tests.unit.computer.rfb import viewers as v

REQUEST = struct.pack(">BB4H", 3, 1, 0, 0, 8, 4)


def _feed(pieces: Iterable[bytes]) -> tuple[list[ViewerMessage], bytes, str | None]:
    """Messages, bytes for the viewer, and what ended it."""
    parser = ViewerParser(v.INIT)
    messages: list[ViewerMessage] = []
    for piece in pieces:
        messages += parser.receive(piece)
    return messages, parser.data_to_send(), None if parser.error is None else str(parser.error)


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def _one(data: bytes) -> ViewerMessage:
    messages, _, problem = _feed([v.HELLO + data])
    assert problem is None
    (message,) = messages
    return message


@pytest.mark.parametrize(
    ("hello", "answer"),
    [
        (b"RFB 003.003\n\x00", struct.pack(">I", 1)),
        (b"RFB 003.005\n\x01", struct.pack(">I", 1)),
        (b"RFB 003.007\n\x01\x00", b"\x01\x01"),
        (b"RFB 003.008\n\x01\x00", b"\x01\x01" + bytes(4)),
        (b"RFB 003.889\n\x01\x01", b"\x01\x01" + bytes(4)),
    ],
)
def test_each_version_has_its_own_greeting_and_one_grammar_after_it(hello: bytes, answer: bytes) -> None:
    """RFC 6143, 7.1: a 3.3 client taken for a 3.8 one would be one byte off from then on."""
    messages, sent, problem = _feed(bytes([byte]) for byte in hello + REQUEST)

    assert (v.GREETING + answer + v.INIT, None) == (sent, problem)
    assert [UpdateRequest(raw=REQUEST, is_incremental=True)] == messages


@pytest.mark.parametrize("hello", [b"GET / HTTP/1", b"RFB 002.000\n", v.GREETING + b"\x02"])
def test_what_is_no_greeting_ends_the_connection(hello: bytes) -> None:
    """Ours: neither another protocol nor a security that was not offered."""
    messages, _, problem = _feed([hello + v.key(0x61, down=True)])

    assert messages == []
    assert problem is not None


def test_messages_are_told_apart() -> None:
    """RFC 6143, 7.5 and rfbproto: the fields that roles are decided by."""
    assert Control(raw=bytes(20)) == _one(bytes(20))
    assert Encodings(numbers=(7, -308)) == _one(v.encodings(7, -308))
    assert KeyMessage(raw=v.key(0x61, down=True), keysym=0x61, keycode=0, is_down=True) == _one(
        v.key(0x61, down=True)
    )
    raw = v.qemu_key(0x61, 30, down=False)
    assert KeyMessage(raw=raw, keysym=0x61, keycode=30, is_down=False) == _one(raw)
    assert PointerMessage(raw=v.pointer(3, 2, 5), x=3, y=2, mask=5) == _one(v.pointer(3, 2, 5))
    assert FenceMessage(raw=v.fence(1, b"x"), is_reply=True) == _one(v.fence(1, b"x"))
    assert FenceMessage(raw=v.fence(1 << 31, b""), is_reply=False) == _one(v.fence(1 << 31, b""))
    assert ResizeMessage(raw=v.resize(9, 9)) == _one(v.resize(9, 9))
    assert ClipboardMessage(raw=v.cut_text(b"hi"), has_text=True) == _one(v.cut_text(b"hi"))
    for action, is_request in ((1 << 25, True), (1 << 27, False)):
        raw = v.extended(action | 1)
        assert ClipboardMessage(raw=raw, has_text=False, is_request=is_request) == _one(raw)
    assert ClipboardMessage(raw=v.provide(b"hi\0"), has_text=True) == _one(v.provide(b"hi\0"))


@pytest.mark.parametrize("kind", sorted(set(range(256)) - {0, 2, 3, 4, 5, 6, 150, 248, 251, 255}))
def test_unknown_types_end_the_connection(kind: int) -> None:
    """Measured: RFB has no length prefix, so what follows an unknown type could be anything."""
    messages, _, problem = _feed([v.HELLO + bytes([kind]) + v.key(0x61, down=True) * 50])

    assert ([], f"the viewer sent a message of unknown type {kind}") == (messages, problem)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\x01" + bytes(10),  # QEMU audio
        v.fence(0, b"")[:8] + b"\x41",
        v.encodings()[:2] + b"\xff\xff",
        struct.pack(">Bxxxi", 6, -3),
        struct.pack(">Bxxxi", 6, -(1 << 31)),
        struct.pack(">BxxxI", 6, (64 << 20) + 1),
        v.extended(1 << 28 | 1, b"no zlib"),
        v.extended(1 << 28 | 1, zlib.compress(b"abc")),
    ],
)
def test_broken_messages_end_the_connection_for_good(data: bytes) -> None:
    """Ours: a stream that has lost its place is not trusted again."""
    parser = ViewerParser(v.INIT)
    messages = parser.receive(v.HELLO + data) + parser.receive(v.key(0x61, down=True) * 9)

    assert messages == []
    assert isinstance(parser.error, RfbProtocolError)


@pytest.mark.parametrize(
    ("raw", "trouble"),
    [
        (v.cut_text(b"x" * MAX_CLIPBOARD_BYTES), None),
        (v.cut_text(b"x" * (MAX_CLIPBOARD_BYTES + 1)), ClipboardTrouble.TOO_LONG),
        (v.provide(b"x" * MAX_CLIPBOARD_BYTES + b"\0"), None),
        (v.provide(b"\r\n" * MAX_CLIPBOARD_BYTES + b"\0"), None),
        (v.provide(b"x" * (MAX_CLIPBOARD_BYTES + 1) + b"\0"), ClipboardTrouble.TOO_LONG),
        (v.provide(b"x", length=1 << 31), ClipboardTrouble.TOO_LONG),
        (v.provide(b"x", formats=3), ClipboardTrouble.NOT_TEXT),
    ],
)
def test_clipboard_texts_pass_up_to_1_mib(raw: bytes, trouble: ClipboardTrouble | None) -> None:
    """The issue: 1 MiB, refused above; the messages after it are still understood."""
    messages, _, problem = _feed([v.HELLO + raw + REQUEST])

    passed = b"" if trouble else raw
    assert problem is None
    assert [
        ClipboardMessage(raw=passed, has_text=True, trouble=trouble),
        UpdateRequest(raw=REQUEST, is_incremental=True),
    ] == messages


def test_a_long_text_is_read_past_and_not_stored() -> None:
    """Ours: memory stays bounded whatever a viewer pastes."""
    parser = ViewerParser(v.INIT)
    parser.receive(v.HELLO + struct.pack(">BxxxI", 6, 32 << 20))
    for _ in range(512):
        assert parser.receive(bytes(65_536)) in (
            [],
            [ClipboardMessage(raw=b"", has_text=True, trouble=ClipboardTrouble.TOO_LONG)],
        )
        assert len(parser._buffer) < 65_536


@given(
    messages=st.lists(st.one_of(v.passive, v.active), max_size=30),
    tail=st.binary(max_size=40),
    cuts=st.lists(st.integers(0, 20_000), max_size=12),
)
def test_any_chunking_gives_the_same(messages: list[bytes], tail: bytes, cuts: list[int]) -> None:
    """Ours: pieces are the network's business."""
    data = v.HELLO + b"".join(messages) + tail
    whole = _feed([data])

    assert whole == _feed(_pieces(data, cuts))
    assert whole == _feed(bytes([byte]) for byte in data)
    raws = [getattr(message, "raw", None) for message in whole[0]]
    assert len(raws) >= len(messages)


@given(data=st.binary(max_size=2_000))
def test_garbage_gives_messages_or_one_kind_of_error(data: bytes) -> None:
    """Fuzz: nothing but RfbProtocolError, and the same in any pieces."""
    whole = _feed([v.HELLO + data])

    assert whole == _feed(bytes([byte]) for byte in v.HELLO + data)
