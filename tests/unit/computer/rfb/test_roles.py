"""A viewer can watch and nothing else, whatever it sends; a controller leaves nothing held."""

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.rfb.roles import MAX_HELD_KEYS, Dropped, Role, RoleFilter, is_known_encoding
from computer.rfb.viewer import (
    ClipboardMessage,
    Encodings,
    KeyMessage,
    PointerMessage,
    ResizeMessage,
    ViewerMessage,
    ViewerParser,
)
from tests.unit.computer.rfb import viewers as v

ACTIVE = (KeyMessage, PointerMessage, ClipboardMessage, ResizeMessage)
A, SHIFT = 0x61, 0xFFE1


class Gate:
    """Parser and filter in a row, as a relay has them."""

    def __init__(self, role: Role) -> None:
        self.parser = ViewerParser(v.INIT)
        self.parser.receive(v.HELLO)
        self.filter = RoleFilter(role=role)

    def send(self, data: bytes) -> bytes:
        """What of *data* the server gets."""
        return b"".join(self.filter.pass_on(message) for message in self.parser.receive(data))


def _seen_by_server(data: bytes) -> list[ViewerMessage]:
    """What a server makes of *data*; all of it must be whole messages."""
    parser = ViewerParser(v.INIT)
    messages = parser.receive(v.HELLO + data)
    assert not parser._buffer
    return messages


def _pressed(messages: Iterable[ViewerMessage]) -> tuple[set[tuple[int, int]], int]:
    keys: set[tuple[int, int]] = set()
    mask = 0
    for message in messages:
        if isinstance(message, KeyMessage):
            key = (message.keysym, message.keycode)
            if message.is_down:
                keys.add(key)
            else:
                # A server knows a key by its code, where it is told one.
                keys -= {other for other in keys if other == key or 0 != other[1] == message.keycode}
        elif isinstance(message, PointerMessage):
            mask = message.mask
    return keys, mask


@given(messages=st.lists(st.one_of(v.passive, v.active), max_size=30), noise=st.binary(max_size=200))
def test_no_bytes_of_a_viewer_touch_the_desktop(messages: list[bytes], noise: bytes) -> None:
    """The issue: a bypass attempt is a test; what gets through holds no input, clipboard or resize."""
    gate = Gate(Role.VIEWER)
    passed = b""
    for piece in [*messages, noise]:
        passed += gate.send(piece)

    assert not [message for message in _seen_by_server(passed) if isinstance(message, ACTIVE)]


@given(data=st.binary(max_size=4_000))
def test_garbage_of_a_viewer_does_not_get_through_as_input(data: bytes) -> None:
    """Fuzz: bytes that are messages only to a server that is out of step."""
    gate = Gate(Role.VIEWER)
    passed = b"".join(gate.send(data[start : start + 7]) for start in range(0, len(data), 7))

    assert not [message for message in _seen_by_server(passed) if isinstance(message, ACTIVE)]


@pytest.mark.parametrize(
    "wrapping",
    [
        # Input inside other messages' bodies, and behind wrong lengths.
        v.fence(1 << 31, v.key(A, down=True)),
        b"\0" + (v.key(A, down=True) * 3)[:19],
        v.encodings(*struct.unpack(">2i", v.key(A, down=True))),
        struct.pack(">BB4H", 3, 4, 0x0100, 0, 0, A),
        v.cut_text(v.key(A, down=True)),
        v.extended(0, v.pointer(1, 1, 1)),
        v.resize(4, 4)[:7] + b"\x00" + v.key(A, down=True),
    ],
)
def test_input_that_hides_in_other_messages_stays_hidden(wrapping: bytes) -> None:
    """The issue: a bypass attempt is a test; a server reads the same messages as the filter."""
    gate = Gate(Role.VIEWER)

    assert not [m for m in _seen_by_server(gate.send(wrapping + wrapping)) if isinstance(m, ACTIVE)]


def test_encodings_that_change_the_grammar_are_not_passed_on() -> None:
    """Ours: with extended buttons (-316) a pointer message may have seven bytes: one byte out of step."""
    gate = Gate(Role.VIEWER)

    passed = gate.send(v.encodings(7, -316, -257, -259, -309, -305, -308, 99))

    assert [Encodings(numbers=(7, -308))] == _seen_by_server(passed)
    assert not is_known_encoding(-316)


def test_dropped_messages_are_counted() -> None:
    """The issue: input and clipboard-in are dropped and counted, resize is dropped."""
    gate = Gate(Role.VIEWER)

    passed = gate.send(
        v.key(A, down=True) + v.qemu_key(A, 30, down=True) + v.pointer(1, 1, 1) + v.cut_text(b"x")
        + v.extended(1 << 25 | 1) + v.resize(4, 4) + v.cut_text(b"x" * (2 << 20))
    )  # fmt: skip

    assert passed == b""
    assert Dropped(input=3, clipboard=2, resize=1, clipboard_too_long=1) == gate.filter.dropped


@given(messages=st.lists(st.one_of(v.passive, v.active), max_size=30))
def test_a_controller_s_messages_pass_unchanged(messages: list[bytes]) -> None:
    """The issue: controller; not a byte is added or lost."""
    gate = Gate(Role.CONTROLLER)

    assert b"".join(messages) == b"".join(gate.send(message) for message in messages)


@given(messages=st.lists(v.active, max_size=60))
def test_release_lets_go_of_everything_that_is_down(messages: list[bytes]) -> None:
    """The issue: stuck input is impossible."""
    gate = Gate(Role.CONTROLLER)
    passed = b"".join(gate.send(message) for message in messages)
    released = gate.filter.release()

    assert (set(), 0) == _pressed(_seen_by_server(passed + released))
    assert not gate.filter.is_holding
    assert gate.filter.release() == b""


def test_the_last_pressed_is_released_first_and_the_pointer_stays() -> None:
    """Ours: Shift outlives the letter it belongs to; a button comes up where it is."""
    gate = Gate(Role.CONTROLLER)
    gate.send(v.key(SHIFT, down=True) + v.qemu_key(A, 30, down=True) + v.pointer(3, 2, 1))

    expected = v.qemu_key(A, 30, down=False) + v.key(SHIFT, down=False) + v.pointer(3, 2, 0)
    assert expected == gate.filter.release()


def test_a_key_may_come_up_as_another_keysym() -> None:
    """Ours: "A" goes down, Shift comes up, "a" comes up: the same keycode."""
    gate = Gate(Role.CONTROLLER)
    gate.send(v.qemu_key(0x41, 30, down=True) + v.qemu_key(A, 30, down=False))

    assert not gate.filter.is_holding


def test_nobody_holds_more_keys_than_are_remembered() -> None:
    """Ours: memory is bounded; of too many keys the one held longest is let go."""
    gate = Gate(Role.CONTROLLER)
    passed = b"".join(gate.send(v.key(0x1000000 + n, down=True)) for n in range(MAX_HELD_KEYS + 5))

    keys, _ = _pressed(_seen_by_server(passed))
    assert len(keys) == MAX_HELD_KEYS
    assert (set(), 0) == _pressed(_seen_by_server(passed + gate.filter.release()))


def test_what_a_viewer_pressed_is_not_down_when_it_gets_control() -> None:
    """Ours: dropped input leaves no trace; a press is told, so that a controller may ask again."""
    gate = Gate(Role.VIEWER)
    gate.send(v.key(A, down=True) + v.pointer(1, 1, 1))

    assert gate.filter.has_pressed
    assert not gate.filter.is_holding
