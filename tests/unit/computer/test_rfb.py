"""Our RFB core, without a server: greetings, messages, limits, and what real servers once sent."""

import hashlib
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from computer.errors import ComputerError, DisplayLost, RfbProtocolError
from computer.geometry import Point, Rect, Size
from computer.rfb import (
    ClipboardOffered,
    ClipboardProvided,
    ClipboardRequested,
    CutText,
    Encoding,
    FenceReply,
    Resized,
    RfbClient,
    Updated,
)
from computer.rfb.client import SMALL
from computer.rfb.des import answer_challenge, encrypt_block
from computer.rfb.messages import ClipboardFlag, Led, render_clipboard_text
from computer.rfb.pixels import decode_zrle, zrle_limit

VECTORS = Path(__file__).parents[2] / "vectors" / "rfb"
INDEX = json.loads((VECTORS / "index.json").read_text())
GREETING = b"RFB 003.008\n"
NONE = b"\x01\x01" + bytes(4)


def _server_init(width: int = 8, height: int = 4, name: bytes = b"desk") -> bytes:
    return struct.pack(">HH16xI", width, height, len(name)) + name


def _open(width: int = 8, height: int = 4) -> RfbClient:
    client = RfbClient(encodings=SMALL)
    client.receive(GREETING + NONE + _server_init(width, height))
    client.data_to_send()
    return client


def _update(*rectangles: bytes) -> bytes:
    return struct.pack(">BxH", 0, len(rectangles)) + b"".join(rectangles)


def _rect(box: tuple[int, int, int, int], encoding: int, data: bytes = b"") -> bytes:
    return struct.pack(">HHHHi", *box, encoding) + data


def _clip(flags: int, data: bytes = b"") -> bytes:
    return struct.pack(">BxxxiI", 3, -4 - len(data), flags) + data


@pytest.mark.parametrize("name", INDEX)
@pytest.mark.parametrize("piece", [1_000_000, 1_000, 7])
def test_recorded_server_makes_the_recorded_picture(name: str, piece: int) -> None:
    """Golden: bytes of Xvnc, x11vnc and QEMU, in whatever pieces they come."""
    data, expected = (VECTORS / f"{name}.bin").read_bytes(), INDEX[name]
    client = RfbClient(encodings=[Encoding(number) for number in expected["encodings"]])
    for start in range(0, len(data), piece):
        client.receive(data[start : start + piece])

    assert client.size == Size(width=expected["size"][0], height=expected["size"][1])
    assert hashlib.sha256(client.framebuffer.tobytes()).hexdigest() == expected["sha256"]


def test_handshake_settles_size_and_name() -> None:
    """RFC 6143, 7.1 to 7.3."""
    client = RfbClient()
    client.receive(GREETING)
    assert client.data_to_send() == GREETING
    client.receive(b"\x02\x02\x01")
    assert client.data_to_send() == b"\x01"
    client.receive(bytes(4))
    assert client.data_to_send() == b"\x01"
    client.receive(_server_init(640, 480, "Büro".encode()))

    assert (client.size, client.name) == (Size(width=640, height=480), "Büro")
    assert client.data_to_send()[:4] == bytes(4)


@pytest.mark.parametrize(
    ("greeting", "answer", "rest"),
    [
        (b"RFB 003.003\n", b"RFB 003.003\n", b"\0\0\0\x01"),
        (b"RFB 003.005\n", b"RFB 003.003\n", b"\0\0\0\x01"),
        (b"RFB 003.007\n", b"RFB 003.007\n", b"\x01\x01"),
        (b"RFB 003.889\n", b"RFB 003.008\n", NONE),
        (b"RFB 005.000\n", b"RFB 003.008\n", NONE),
    ],
)
def test_every_version_is_spoken(greeting: bytes, answer: bytes, rest: bytes) -> None:
    """Ours: a 3.3 client taken for a 3.8 one is a byte off from then on."""
    client = RfbClient()
    client.receive(greeting)
    assert client.data_to_send() == answer
    client.receive(rest + _server_init())

    assert client.size == Size(width=8, height=4)


def test_password_is_answered() -> None:
    """RFC 6143, 7.2.2; the block is the one of FIPS examples."""
    key, block = bytes.fromhex("133457799BBCDFF1"), bytes.fromhex("0123456789ABCDEF")
    assert encrypt_block(key, block).hex() == "85e813540f0ab405"
    client = RfbClient(password="secret12")
    client.receive(GREETING + b"\x01\x02")
    client.data_to_send()
    client.receive(bytes(range(16)))

    assert client.data_to_send() == answer_challenge("secret12 is cut", bytes(range(16)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (GREETING + b"\x00\0\0\0\x04busy", "busy"),
        (GREETING + b"\x01\x02", "wants a password"),
        (GREETING + b"\x02\x13\x05", "VeNCrypt, RA2"),
        (GREETING + b"\x01\x01\0\0\0\x01\0\0\0\x03no!", "no!"),
        (b"RFB 003.003\n\0\0\0\0\0\0\0\x04full", "full"),
    ],
)
def test_refusal_of_the_server_is_told(data: bytes, reason: str) -> None:
    """Ours: with its own words."""
    with pytest.raises(DisplayLost, match=reason):
        RfbClient().receive(data)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400",
        b"RFB 002.002\n",
        GREETING + NONE + _server_init(0, 10),
        GREETING + NONE + _server_init(65_535, 65_535),
        GREETING + NONE + struct.pack(">HH16xI", 8, 4, 1 << 31),
        *(
            GREETING + NONE + _server_init() + message
            for message in (
                b"\x07",
                b"\xff",
                _update(_rect((0, 0, 9, 1), 0)),
                _update(_rect((7, 3, 2, 1), 1)),
                _update(_rect((0, 0, 2, 2), 1, struct.pack(">HH", 7, 3))),
                _update(_rect((0, 0, 2, 2), 5)),
                _update(_rect((0, 0, 2, 2), 16, struct.pack(">I", 1 << 30))),
                _update(_rect((0, 0, 2, 2), 6, struct.pack(">I", 5) + b"junk!")),
                _update(_rect((0, 0, 0, 0), -223)),
                _update(_rect((0, 0, 2_000, 1), -239)),
                _update(_rect((0, 0, 8, 4), -307, struct.pack(">I", 1 << 30))),
                struct.pack(">BxxxIB", 248, 0, 65),
                struct.pack(">Bxxxi", 3, -3),
                struct.pack(">Bxxxi", 3, 2**31 - 1),
                _clip(ClipboardFlag.PROVIDE | 1, b"junk"),
            )
        ),
    ],
)
def test_what_rfb_does_not_allow_is_a_typed_error_and_stays_one(data: bytes) -> None:
    """Ours: no stall, no guess, no memory for what was never sent."""
    client = RfbClient()
    with pytest.raises(RfbProtocolError):
        client.receive(data)
    with pytest.raises(RfbProtocolError):
        client.receive(b"")


def test_update_tells_what_was_sent_and_what_is_new() -> None:
    """Ours: the same pixels again are no change; a change is cut down to its pixels."""
    client = _open()
    pixels = np.zeros((4, 8), "<u4")
    pixels[1:3, 5] = 0xFF_11_22_33
    whole = Rect(left=0, top=0, right=8, bottom=4)
    message = _update(_rect((0, 0, 8, 4), 0, pixels.tobytes()))

    changed = Rect(left=5, top=1, right=6, bottom=3)
    assert client.receive(message) == [Updated(sent=(whole,), changed=(changed,))]
    assert client.receive(message) == [Updated(sent=(whole,), changed=())]
    assert client.framebuffer[1, 5].tolist() == [0x33, 0x22, 0x11, 0]


def test_copied_rectangle_may_overlap_itself() -> None:
    """RFC 6143, 7.7.2."""
    client = _open(4, 1)
    client.receive(_update(_rect((0, 0, 4, 1), 0, struct.pack("<4I", 1, 2, 3, 4))))
    client.receive(_update(_rect((1, 0, 3, 1), 1, struct.pack(">HH", 0, 0))))

    assert client.framebuffer[0, :, 0].tolist() == [1, 1, 2, 3]


def test_size_change_keeps_the_common_part() -> None:
    """Ours: never a mixed frame: what is new is black until it is sent."""
    client = _open(2, 1)
    client.receive(_update(_rect((0, 0, 2, 1), 0, struct.pack("<2I", 7, 8))))
    events = client.receive(_update(_rect((0, 0, 3, 2), -308, b"\x01\0\0\0" + bytes(16))))

    assert events[0] == Resized(size=Size(width=3, height=2))
    assert client.framebuffer[..., 0].tolist() == [[7, 8, 0], [0, 0, 0]]


def test_servers_fence_is_answered_and_ours_is_heard() -> None:
    """rfbproto: unanswered, a server holds its updates back."""
    client = _open()
    assert client.receive(struct.pack(">BxxxIB", 248, 0x8000_0003, 2) + b"ab") == []
    assert client.data_to_send() == struct.pack(">BxxxIB", 248, 3, 2) + b"ab"
    assert client.receive(struct.pack(">BxxxIB", 248, 1, 1) + b"x") == [FenceReply(payload=b"x")]
    assert client.has_fences


def test_pointer_lock_keys_and_name_are_learnt() -> None:
    """rfbproto: pseudo-encodings; a message may end with the last rectangle."""
    client = _open()
    cursor = bytes([10, 20, 30, 0, 1, 2, 3, 0]) + b"\x80"
    none = (0, 0, 0, 0)
    rectangles = [_rect((1, 0, 2, 1), -239, cursor), _rect(none, -261, b"\x04")]
    rectangles += [_rect((5, 3, 0, 0), 0x574D5666), _rect(none, -307, b"\0\0\0\x02hi"), _rect(none, -224)]
    client.receive(struct.pack(">BxH", 0, 0xFFFF) + b"".join(rectangles))

    assert client.cursor is not None
    assert client.cursor.pixels.tolist() == [[[10, 20, 30, 255], [0, 0, 0, 0]]]
    assert client.cursor.origin == Point(x=-1, y=0)
    assert (client.leds, client.pointer) == (Led.CAPS, Point(x=5, y=3))


def test_messages_without_meaning_for_us_are_read_past() -> None:
    """RFC 6143, 7.6.2 and 7.6.3."""
    client = _open()
    data = (
        struct.pack(">BxHH", 1, 0, 3)
        + bytes(18)
        + b"\x02"
        + b"\x96"
        + struct.pack(">BxxxI", 3, 3)
        + b"h\xe9!"
    )

    assert client.receive(data) == [CutText(text="hé!")]


def test_extended_clipboard_speaks_both_ways() -> None:
    """rfbproto: extended clipboard."""
    client = _open()
    client.receive(_clip(ClipboardFlag.CAPS | ClipboardFlag.NOTIFY | 1, bytes(4)))
    assert client.clipboard.is_extended
    assert client.data_to_send()[:1] == b"\x06"
    text = "zwei\nZeilen 漢"
    packed = zlib.compress(struct.pack(">I", 17) + "zwei\r\nZeilen 漢\0".encode())

    assert client.receive(_clip(ClipboardFlag.NOTIFY | 1)) == [
        ClipboardOffered(has_text=True, is_empty=False)
    ]
    assert client.receive(_clip(ClipboardFlag.NOTIFY)) == [ClipboardOffered(has_text=False, is_empty=True)]
    assert client.receive(_clip(ClipboardFlag.REQUEST | 1)) == [ClipboardRequested()]
    assert client.receive(_clip(ClipboardFlag.PROVIDE | 1, packed)) == [ClipboardProvided(text=text)]


def test_text_too_long_to_keep_is_read_past() -> None:
    """Ours: bounded memory, and the stream goes on."""
    client = _open()
    data = struct.pack(">BxxxI", 3, 5 << 20) + bytes(5 << 20) + struct.pack(">BxxxI", 3, 1) + b"x"

    assert client.receive(data) == [CutText(text="x")]


def test_own_text_is_sent_as_the_specification_wants_it() -> None:
    """rfbproto: CR LF, a zero byte, its own zlib stream."""
    message = render_clipboard_text("a\nb")
    kind, length, flags = struct.unpack_from(">BxxxiI", message)

    assert (kind, -length, flags) == (6, len(message) - 8, ClipboardFlag.PROVIDE | 1)
    assert zlib.decompress(message[12:]) == b"\0\0\0\x05a\r\nb\0"


def _zrle_tile(kind: str, tile: np.ndarray) -> bytes:
    """Encode one tile by one subencoding: an encoder of the test's own."""
    flat = [int(value) for value in tile.flat]
    colours = sorted(set(flat))
    three = {colour: colour.to_bytes(3, "little") for colour in colours}
    if kind == "solid":
        return b"\x01" + three[flat[0]]
    if kind == "raw":
        return b"\x00" + b"".join(three[value] for value in flat)
    if kind == "plain rle":
        return b"\x80" + b"".join(three[value] + b"\x00" for value in flat)
    palette = b"".join(three.values())
    indices = [colours.index(value) for value in flat]
    if kind == "palette rle":
        return bytes([128 + len(colours)]) + palette + bytes(indices)
    bits = 1 if len(colours) == 2 else 2 if len(colours) <= 4 else 4
    rows = np.array(indices, np.uint8).reshape(tile.shape)
    spread = (
        ((rows[..., None] >> np.arange(bits - 1, -1, -1)) & 1).reshape(tile.shape[0], -1).astype(np.uint8)
    )
    return bytes([len(colours)]) + palette + np.packbits(spread, axis=1).tobytes()


@given(
    st.sampled_from(["raw", "solid", "plain rle", "palette rle", "packed"]),
    st.integers(1, 70), st.integers(1, 70), st.integers(2, 16), st.randoms(use_true_random=False),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_zrle_is_decoded_for_every_kind_of_tile(
    kind: str, width: int, height: int, colours: int, chance: object
) -> None:
    """RFC 6143, 7.7.6."""
    palette = np.arange(1, colours + 1, dtype=np.uint32) * np.uint32(0x01_02_03)
    pixels = palette[np.arange(width * height).reshape(height, width) * 7 % colours]
    if kind == "solid":
        pixels[:] = palette[0]
    tiles = [pixels[y : y + 64, x : x + 64] for y in range(0, height, 64) for x in range(0, width, 64)]
    data = b"".join(
        _zrle_tile(kind if len(set(tile.flat)) > 1 or kind == "solid" else "raw", tile) for tile in tiles
    )

    size = Size(width=width, height=height)
    assert len(data) <= zrle_limit(size)
    assert (decode_zrle(data, size) == pixels).all()


def test_long_runs_are_decoded() -> None:
    """RFC 6143, 7.7.5: lengths of 255 and more go on in the next byte."""
    data = b"\x82" + b"\x01\0\0\x02\0\0" + b"\x80" + bytes([255, 255, 255, 89]) + b"\x81" + bytes([144])

    pixels = decode_zrle(data, Size(width=50, height=20))
    assert [int((pixels == 1).sum()), int((pixels == 2).sum())] == [855, 145]


@pytest.mark.parametrize(
    "data", [b"", b"\x11", b"\x81", b"\x00", b"\x02\x01\0\0\x02\0\0", b"\x80\0\0\0\xff\xff", b"\x01\0\0\0\0"]
)
def test_broken_zrle_is_a_typed_error(data: bytes) -> None:
    """Ours: short, long, and names of colours that do not exist."""
    with pytest.raises(RfbProtocolError):
        decode_zrle(data, Size(width=4, height=4))


def _packed(encoding: int, data: bytes) -> bytes:
    return _update(_rect((0, 0, 8, 4), encoding, struct.pack(">I", len(data)) + data))


SERVER_MESSAGES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda box, encoding, data: _update(_rect(box, encoding, data)),
        st.tuples(*(st.integers(0, 20) for _ in range(4))),
        st.sampled_from([*map(int, Encoding), 5, 7]),
        st.binary(max_size=200),
    ),
    st.builds(_clip, st.integers(0, 2**32 - 1), st.binary(max_size=60)),
    st.builds(lambda data: _packed(16, zlib.compress(data)), st.binary(max_size=300)),
    st.builds(lambda data: _packed(6, zlib.compress(data)), st.binary(max_size=300)),
)


@given(st.lists(SERVER_MESSAGES, max_size=8), st.integers(1, 50))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_server_sends_ends_in_events_or_a_typed_error(messages: list[bytes], piece: int) -> None:
    """Fuzz: only our errors, bounded sizes, no stall on bytes that are all there."""
    client = _open()
    data = b"".join(messages)
    try:
        for start in range(0, len(data), piece):
            client.receive(data[start : start + piece])
    except ComputerError:
        return
    assert client.size is not None
    assert client.size.width * client.size.height <= 1 << 26
    assert len(client._buffer) < client._needed


@given(st.binary(max_size=120))
def test_whatever_greets_ends_in_a_handshake_or_a_typed_error(data: bytes) -> None:
    """Fuzz: the handshake."""
    for start in (b"", GREETING, GREETING + NONE, b"RFB 003.003\n"):
        try:
            RfbClient(password="x").receive(start + data)
        except ComputerError:
            continue
