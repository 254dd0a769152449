"""Messages of a VNC viewer, as bytes and as what hypothesis may choose from."""

import struct
import zlib

from hypothesis import strategies as st

GREETING = b"RFB 003.008\n"
# Version, security "none", ClientInit.
HELLO = GREETING + b"\x01\x01"
INIT = struct.pack(">HH16xI", 8, 4, 4) + b"desk"


def key(keysym: int, *, down: bool) -> bytes:
    return struct.pack(">BBxxI", 4, down, keysym)


def qemu_key(keysym: int, keycode: int, *, down: bool) -> bytes:
    return struct.pack(">BBHII", 255, 0, down, keysym, keycode)


def pointer(x: int, y: int, mask: int) -> bytes:
    return struct.pack(">BBHH", 5, mask, x, y)


def cut_text(data: bytes) -> bytes:
    return struct.pack(">BxxxI", 6, len(data)) + data


def extended(flags: int, data: bytes = b"") -> bytes:
    return struct.pack(">BxxxiI", 6, -4 - len(data), flags) + data


def provide(text: bytes, *, length: int | None = None, formats: int = 1) -> bytes:
    packed = zlib.compress(struct.pack(">I", len(text) if length is None else length) + text)
    return extended(1 << 28 | formats, packed)


def fence(flags: int, payload: bytes) -> bytes:
    return struct.pack(">BxxxIB", 248, flags, len(payload)) + payload


def encodings(*numbers: int) -> bytes:
    return struct.pack(f">BxH{len(numbers)}i", 2, len(numbers), *numbers)


def resize(width: int, height: int) -> bytes:
    return struct.pack(">BxHHBx", 251, width, height, 1) + struct.pack(">IHHHHI", 1, 0, 0, width, height, 0)


_byte = st.integers(0, 255)
_short = st.integers(0, 0xFFFF)
_long = st.integers(0, 0xFFFFFFFF)
passive = st.one_of(
    st.binary(min_size=19, max_size=19).map(lambda body: b"\0" + body),
    st.builds(lambda inc, box: struct.pack(">BB4H", 3, inc, *box), _byte, st.tuples(*[_short] * 4)),
    st.builds(lambda on, box: struct.pack(">BB4H", 150, on, *box), _byte, st.tuples(*[_short] * 4)),
    st.binary(max_size=64).map(lambda sizes: extended(0x1F << 24 | 1, sizes)),
    st.builds(fence, _long, st.binary(max_size=64)),
    st.lists(st.sampled_from([0, 7, 16, -223, -308, -26]), max_size=20).map(lambda all_: encodings(*all_)),
)
active = st.one_of(
    st.builds(lambda keysym, down: key(keysym, down=down), _long, st.booleans()),
    st.builds(lambda keysym, code, down: qemu_key(keysym, code, down=down), _long, _long, st.booleans()),
    st.builds(pointer, _short, _short, _byte),
    st.binary(max_size=300).map(cut_text),
    st.binary(max_size=300).map(provide),
    st.sampled_from([1 << 25, 1 << 26, 1 << 27]).map(lambda action: extended(action | 1)),
    st.builds(resize, _short, _short),
)
