"""
What a viewer may do, enforced on its messages.

Pure. A *viewer* watches: its input, its clipboard and its wish for another size are dropped and
counted. A *controller* may do all that a viewer at the machine's own screen could. What a
controller holds down is known here, so that it can be released when it loses control or its
connection: Xvnc frees the keys of a lost viewer, but not its buttons.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from computer.keys import Keysym
from computer.rfb.messages import Encoding, render_encodings, render_key, render_pointer
from computer.rfb.viewer import (
    ClipboardMessage,
    Encodings,
    KeyMessage,
    PointerMessage,
    ResizeMessage,
    ViewerMessage,
)

__all__ = ["HIDE_CLIPBOARD", "MAX_HELD_KEYS", "Dropped", "Role", "RoleFilter", "is_known_encoding"]

# Keys down at once; people have ten fingers. Of more, the one held longest is let go.
MAX_HELD_KEYS = 64

# Encodings whose messages from the viewer are those parsed here. Others might make the server
# expect a grammar that is not (relative pointers, extended buttons, audio, XVP): they are not passed on.
_ENCODINGS = frozenset({
    0, 1, 2, 4, 5, 6, 7, 8, 16, 21, 50, -260,  # pixels, from raw to TightPNG
    -223, -224, -308,  # sizes, last rectangle
    -232, -239, -240, -314, 0x574D_5664, 0x574D_5666,  # pointer
    -258, -261, 0x574D_5668,  # QEMU's keys, lock keys
    -307, -312, -313,  # name, fences, continuous updates
    Encoding.EXTENDED_CLIPBOARD,
})  # fmt: skip
# To a viewer with the extended clipboard a server only says that there is a text, and is then asked for
# it; to others it sends the text itself. Sent before the viewer's own first list.
HIDE_CLIPBOARD = render_encodings([Encoding.RAW, Encoding.EXTENDED_CLIPBOARD])
# Qualities, compression and subsampling of JPEG and Tight.
_LEVELS = (range(-32, -22), range(-256, -246), range(-512, -411), range(-768, -762))


class Role(StrEnum):
    """What a viewer was granted."""

    VIEWER = "viewer"
    CONTROLLER = "controller"


@dataclass(slots=True, kw_only=True)
class Dropped:
    """Messages that were not passed on, by what they would have done."""

    input: int = 0
    clipboard: int = 0
    resize: int = 0
    clipboard_too_long: int = 0


@dataclass(slots=True, kw_only=True)
class RoleFilter:
    """
    One viewer's messages on their way to the server.

    Attributes:
        sees_clipboard: without it the viewer must know the extended clipboard, and can't ask for a text.
        role: may change at any time; whoever takes control away sends ``release()`` on.
        has_pressed: a key or button went down in the last ``pass_on``, passed or not.
    """

    sees_clipboard: bool = True
    role: Role = Role.VIEWER
    dropped: Dropped = field(default_factory=Dropped)
    has_pressed: bool = False
    _keys: dict[tuple[int, int], None] = field(default_factory=dict)
    _pointer: tuple[int, int] = (0, 0)
    _mask: int = 0

    @property
    def is_holding(self) -> bool:
        """Whether keys or buttons are down that this viewer pressed."""
        return bool(self._keys or self._mask)

    def pass_on(self, message: ViewerMessage) -> bytes:
        """The bytes of *message* for the server; none when the role forbids it."""
        match message:
            case KeyMessage():
                return self._key(message)
            case PointerMessage():
                return self._move(message)
            case ClipboardMessage():
                return self._clipboard(message)
            case ResizeMessage():
                return self._unless_viewer(message.raw, "resize")
            case Encodings():
                return self._encodings(message.numbers)
        return message.raw

    def release(self) -> bytes:
        """Messages that let go of all that this viewer holds; the last pressed goes first."""
        data = b"".join(_render_up(*key) for key in reversed(self._keys))
        if self._mask:
            data += render_pointer(*self._pointer, 0)
        self._keys.clear()
        self._mask = 0
        return data

    def _encodings(self, numbers: tuple[int, ...]) -> bytes:
        known = [number for number in numbers if is_known_encoding(number)]
        if not self.sees_clipboard and Encoding.EXTENDED_CLIPBOARD not in known:
            known.append(Encoding.EXTENDED_CLIPBOARD)
        return render_encodings(known)

    def _key(self, message: KeyMessage) -> bytes:
        self.has_pressed |= message.is_down
        raw = self._unless_viewer(message.raw, "input")
        if raw and message.is_down:
            self._keys[message.keysym, message.keycode] = None
            if len(self._keys) > MAX_HELD_KEYS:
                oldest = next(iter(self._keys))
                del self._keys[oldest]
                return _render_up(*oldest) + raw
        elif raw:
            for held in list(self._same_key(message)):
                del self._keys[held]
        return raw

    def _same_key(self, message: KeyMessage) -> Iterator[tuple[int, int]]:
        """A key may come up with another keysym than it went down with: Shift came or went."""
        for keysym, keycode in self._keys:
            if (keycode and keycode == message.keycode) or (keysym, keycode) == (
                message.keysym,
                message.keycode,
            ):
                yield keysym, keycode

    def _move(self, message: PointerMessage) -> bytes:
        self.has_pressed |= message.mask & ~self._mask != 0
        raw = self._unless_viewer(message.raw, "input")
        if raw:
            self._pointer, self._mask = (message.x, message.y), message.mask
        return raw

    def _clipboard(self, message: ClipboardMessage) -> bytes:
        if message.trouble is not None:
            self.dropped.clipboard_too_long += 1
            return b""
        return self._unless_viewer(message.raw, "clipboard")

    def _unless_viewer(self, raw: bytes, what: str) -> bytes:
        if self.role is Role.CONTROLLER:
            return raw
        setattr(self.dropped, what, getattr(self.dropped, what) + 1)
        return b""


def is_known_encoding(number: int) -> bool:
    """Whether a server that hears of this encoding still expects only messages that are parsed here."""
    return number in _ENCODINGS or any(number in level for level in _LEVELS)


def _render_up(keysym: int, keycode: int) -> bytes:
    if keycode:
        return struct.pack(">BBHII", 255, 0, 0, keysym, keycode)
    return render_key(Keysym(keysym), down=False)
