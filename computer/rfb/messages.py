"""
What a client sends, as bytes, and what it hears, as values.

Pure. Numbers are those of the protocol.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from computer.geometry import Rect, Size
from computer.keys import Keysym

__all__ = [
    "CAPTURE_FORMAT",
    "MAX_FENCE_BYTES",
    "ClipboardFlag",
    "ClipboardOffered",
    "ClipboardProvided",
    "ClipboardRequested",
    "CutText",
    "Encoding",
    "Event",
    "FenceFlag",
    "FenceReply",
    "Led",
    "Resized",
    "ServerMessage",
    "Updated",
    "render_clipboard",
    "render_clipboard_text",
    "render_cut_text",
    "render_encodings",
    "render_fence",
    "render_key",
    "render_pixel_format",
    "render_pointer",
    "render_update_request",
]

# Bytes that a fence carries at most.
MAX_FENCE_BYTES = 64
# 32 bits a pixel, 24 of them used, little endian: blue, green, red, nothing.
CAPTURE_FORMAT = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)


class Encoding(IntEnum):
    """Encodings of rectangles, and pseudo-encodings by which a client says what it understands."""

    RAW = 0
    COPY_RECT = 1
    ZLIB = 6
    TIGHT = 7
    ZRLE = 16
    DESKTOP_SIZE = -223
    LAST_RECT = -224
    POINTER_POSITION = -232
    CURSOR = -239
    LED_STATE = -261
    DESKTOP_NAME = -307
    EXTENDED_DESKTOP_SIZE = -308
    FENCE = -312
    CURSOR_WITH_ALPHA = -314
    VMWARE_CURSOR_POSITION = 0x574D_5666
    EXTENDED_CLIPBOARD = 0xC0A1_E5CE - (1 << 32)


# First bytes of a client's messages: how it wants pixels; continuous updates on or off.
SET_PIXEL_FORMAT = 0
CONTINUOUS_UPDATES = 150


class ServerMessage(IntEnum):
    """First byte of what a server sends."""

    UPDATE = 0
    COLOUR_MAP = 1
    BELL = 2
    CUT_TEXT = 3
    END_OF_CONTINUOUS_UPDATES = 150
    FENCE = 248


class FenceFlag(IntFlag):
    """What a fence waits for; ``REQUEST`` asks for an answer."""

    BLOCK_BEFORE = 1
    BLOCK_AFTER = 2
    SYNC_NEXT = 4
    REQUEST = 1 << 31


class ClipboardFlag(IntFlag):
    """Formats and actions of the extended clipboard."""

    TEXT = 1
    FORMATS = 0xFFFF
    CAPS = 1 << 24
    REQUEST = 1 << 25
    PEEK = 1 << 26
    NOTIFY = 1 << 27
    PROVIDE = 1 << 28


class Led(IntFlag):
    """Lock keys that are on."""

    SCROLL = 1
    NUM = 2
    CAPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """
    One update is complete: the picture is whole again.

    Attributes:
        sent: rectangles that the server sent.
        changed: those of them whose pixels are others than before, cut down to these pixels.
    """

    sent: tuple[Rect, ...]
    changed: tuple[Rect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """The screen has another size; what is new of it is black until the next full update."""

    size: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceReply:
    """The server has come to a fence of ours."""

    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CutText:
    """The old clipboard: Latin-1, without question or answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipboardOffered:
    """The server's clipboard has new contents; *has_text* when text is among its formats."""

    has_text: bool
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipboardRequested:
    """Somebody on the server's side wants our text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipboardProvided:
    """The text that we asked for; None when it holds no text or too much."""

    text: str | None


Event = Updated | Resized | FenceReply | CutText | ClipboardOffered | ClipboardRequested | ClipboardProvided


def render_pixel_format() -> bytes:
    """Ask for the pixels that a framebuffer is made of."""
    return struct.pack(">Bxxx", SET_PIXEL_FORMAT) + CAPTURE_FORMAT


def render_encodings(encodings: Sequence[int]) -> bytes:
    """Say what we understand, best first; numbers of ``Encoding`` or others."""
    return struct.pack(f">BxH{len(encodings)}i", 2, len(encodings), *encodings)


def render_update_request(area: Rect, *, incremental: bool) -> bytes:
    """Ask for what has changed in an area, or for all of it."""
    size = area.size
    return struct.pack(">BBHHHH", 3, incremental, area.left, area.top, size.width, size.height)


def render_key(keysym: Keysym, *, down: bool) -> bytes:
    """Press or release a key."""
    return struct.pack(">BBxxI", 4, down, keysym)


def render_pointer(x: int, y: int, mask: int) -> bytes:
    """Put the pointer somewhere with these buttons down; bit 0 is button 1."""
    return struct.pack(">BBHH", 5, mask, x, y)


def render_cut_text(text: str) -> bytes:
    """Put text on the old clipboard; raises UnicodeEncodeError outside Latin-1."""
    data = text.encode("latin-1")
    return struct.pack(">BxxxI", 6, len(data)) + data


def render_continuous_updates(area: Rect, *, enabled: bool) -> bytes:
    """Have updates of an area sent unasked from now on, or not any more."""
    size = area.size
    return struct.pack(">BBHHHH", CONTINUOUS_UPDATES, enabled, area.left, area.top, size.width, size.height)


def render_fence(flags: int, payload: bytes) -> bytes:
    """Set a fence, or answer one."""
    return struct.pack(">BxxxIB", 248, flags, len(payload)) + payload


def render_clipboard(flags: int, data: bytes = b"") -> bytes:
    """One message of the extended clipboard."""
    return struct.pack(">BxxxiI", 6, -4 - len(data), flags) + data


def render_clipboard_text(text: str) -> bytes:
    """Hand text over by the extended clipboard."""
    # The specification wants CR LF and a zero byte at the end.
    data = text.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8", "replace") + b"\0"
    packed = zlib.compress(struct.pack(">I", len(data)) + data)
    return render_clipboard(ClipboardFlag.PROVIDE | ClipboardFlag.TEXT, packed)
