"""
``Display`` on a VNC server.

Owns one connection, the pointer and its buttons. What RFB can't tell is not made up: the
layout, keys that others hold, and, on most servers, where others have put the pointer.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from computer.display import DisplayInfo, Typed, Way
from computer.display.keymap import cut_pieces
from computer.display.partial import telling_how_far
from computer.display.vnc.connection import Address, RfbConnection
from computer.display.vnc.keyboard import Keyboard, check_typable, find_untypable
from computer.display.vnc.paste import MAX_PIECE, NO_CLIPBOARD, Paste
from computer.display.vnc.screen import Screen
from computer.errors import ComputerError, DisplayClosed, DisplayLost, InvalidAction
from computer.geometry import Point, Rect, Size
from computer.keys import Chord, keysym_name
from computer.pixels import Framebuffer
from computer.rfb.messages import render_pointer
from computer.wire import Held

__all__ = ["VncDisplay"]

P = ParamSpec("P")
R = TypeVar("R")

# Buttons. A pointer message has a bit for an eighth, which Xvnc drops without a word.
BUTTONS = 7
UNSEEN = "the VNC server does not show its keyboard layout: one without Latin letters loses some of them"


def _on_server(
    method: "Callable[Concatenate[VncDisplay, P], R]",
) -> "Callable[Concatenate[VncDisplay, P], R]":
    @wraps(method)
    def guarded(self: "VncDisplay", /, *args: P.args, **kwargs: P.kwargs) -> R:
        self.check_usable()
        return method(self, *args, **kwargs)

    return guarded


class VncDisplay:
    """
    A VNC server, driven from one thread.

    Text on the server's clipboard that was put there from here goes with the connection.

    Args:
        address: path of a Unix socket, or host and port.
        password: of VNC authentication; None where the server asks for none.
        types_by_paste: RFB does not show the server's layout: one without Latin letters (Russian
            alone) makes a server bind keys while it types, and lose some. True pastes all text;
            False types ASCII by keys and says that the layout has these letters; None, when it is
            not known, types them and warns in every result.

    Raises:
        DisplayLost: nobody answers, the password is wrong, or another kind of security is asked for.
        RfbProtocolError: whoever answers breaks RFB; from every method.
        CaptureTimeout: it stays silent; from every method.
    """

    def __init__(
        self, address: Address, password: str | None = None, *, types_by_paste: bool | None = None
    ) -> None:
        self._types_by_paste = types_by_paste
        self.is_closed = False
        self._is_aborted = False
        self._has_pointed = False
        self._buttons: dict[int, None] = {}
        self._connection = RfbConnection(address, password)
        try:
            self._keyboard = Keyboard(self._connection)
            self._paste = Paste(self._connection, self._keyboard)
            self._screen = Screen(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def check_usable(self) -> None:
        """
        See that the display can be used.

        Raises:
            DisplayClosed, DisplayLost: it was closed, or aborted.
        """
        if self.is_closed:
            msg = "the display was closed"
            raise DisplayClosed(msg)
        if self._is_aborted:
            msg = "the display was aborted"
            raise DisplayLost(msg)

    @_on_server
    def info(self) -> DisplayInfo:
        """Describe what the server has."""
        client = self._connection.client
        warnings = []
        if not client.has_fences:
            warnings.append(
                "the VNC server has no fences: each picture is sent whole, and input is not confirmed"
            )
        if not self._paste.can_unicode:
            warnings.append(f"{NO_CLIPBOARD}: only the characters of a US keyboard can be typed")
        if client.pointer is None:
            warnings.append("the VNC server does not tell where others put the pointer")
        if client.leds is None:
            warnings.append("the VNC server does not tell of Caps Lock: typed letters depend on it")
        return DisplayInfo(
            driver="vnc", capture="rfb", input="rfb", has_damage=True,
            has_cursor=client.cursor is not None, warnings=tuple(warnings),
        )  # fmt: skip

    @_on_server
    def size(self) -> Size:
        """Size that the server told last."""
        return self._screen.size()

    @_on_server
    def capture(self) -> Framebuffer:
        """Ask for what has changed, and copy the whole."""
        return self._screen.capture()

    @_on_server
    def is_unchanged(self) -> bool:
        """Ask for what has changed; never known without fences."""
        return self._screen.is_unchanged()

    @_on_server
    def read_pixels(self, region: Rect) -> Framebuffer:
        """Bring the picture up to date and cut it out."""
        return self._screen.read(region)

    @_on_server
    def active_title(self) -> str | None:
        """RFB knows no windows."""
        return None

    @_on_server
    def pointer(self) -> Point:
        """
        Where the server says it is; where it says nothing, where it was put from here.

        Most servers say nothing. So that the answer is true, the first question then puts the
        pointer in the middle of the screen, where X servers have it at first.
        """
        self._connection.sync()
        return self._known_position()

    @_on_server
    def read_held(self) -> Held:
        """What was pressed here: RFB can't ask the server."""
        keys = tuple(map(keysym_name, self._keyboard.held))
        return Held(keys=keys, buttons=tuple(self._buttons))

    @_on_server
    def move_pointer(self, point: Point) -> None:
        """Send a pointer event."""
        self._screen.size().check_holds(point)
        if not (self._has_pointed or self._connection.client.has_fences) and point == Point(x=0, y=0):
            # x11vnc believes that the pointer is there at first, wherever it is, and leaves it.
            self._send_pointer()
        self._screen.position = point
        if self._connection.client.pointer is not None:
            self._connection.client.pointer = point
        self._send_pointer()

    @_on_server
    def press_button(self, button: int) -> None:
        """
        Press a button.

        Raises:
            InvalidAction: RFB servers have seven: three, and the wheel's four directions.
        """
        if not 1 <= button <= BUTTONS:
            msg = (
                f"a VNC server has no button {button}; back and forward are keys there: press alt+Left, "
                "alt+Right"
            )
            raise InvalidAction(msg)
        if button not in self._buttons:
            self._known_position()
            self._buttons[button] = None
            self._send_pointer()

    @_on_server
    def release_button(self, button: int) -> None:
        """Release a button."""
        if button in self._buttons:
            del self._buttons[button]
            self._send_pointer()

    @_on_server
    def press_chord(self, chord: Chord) -> None:
        """Press a chord."""
        self._keyboard.press(chord)
        self._connection.sync()

    @_on_server
    def release_chord(self, chord: Chord) -> None:
        """Release a chord."""
        self._keyboard.release(chord)
        self._connection.sync()

    def type_text(self, text: str) -> Generator[int, None, Typed]:
        """Type ASCII by keys; of text that holds other characters paste all but line ends and tabs."""
        self.check_usable()
        if find_untypable(text) is None and not self._types_by_paste:
            yield from self._keyboard.type(text)
            return Typed(way=Way.KEYS, warning=UNSEEN if self._types_by_paste is None else None)
        if not self._paste.can_unicode and not self._types_by_paste:
            check_typable(text, NO_CLIPBOARD)
        return (yield from telling_how_far(self._type_pieces(text)))

    @_on_server
    def paste_text(self, text: str) -> Typed:
        """Paste by Shift+Insert."""
        return self._paste.paste(text)

    @_on_server
    def set_clipboard(self, text: str) -> None:
        """Hand the text to the server."""
        self._paste.write(text)

    @_on_server
    def get_clipboard(self) -> str:
        """Ask the server for its text."""
        return self._paste.read()

    def adopt_clipboard(self, max_bytes: int) -> int:  # noqa: ARG002 -- the protocol's
        """Whoever serves this desktop to viewers sees to that."""
        return 0

    @_on_server
    def release_all(self) -> None:
        """Release keys, then buttons."""
        self._keyboard.release_all()
        if self._buttons:
            self._buttons.clear()
            self._send_pointer()
        self._connection.sync()

    @_on_server
    def mark(self) -> None:
        """Forget earlier changes."""
        self._screen.mark()

    @_on_server
    def wait_changes(self, timeout_s: float) -> tuple[Rect, ...]:
        """Wait for an update with other pixels than before."""
        return self._screen.wait(timeout_s)

    @_on_server
    def take_changes(self) -> tuple[Rect, ...]:
        """Boxes of other pixels."""
        return self._screen.take_boxes()

    def close(self) -> None:
        """Release what is held, hang up."""
        if self.is_closed:
            return
        with suppress(ComputerError):
            if self._buttons or self._keyboard.held:
                self.release_all()
        self.is_closed = True
        self._connection.close()

    def abort(self) -> None:
        """Break the connection."""
        self._is_aborted = True
        self._connection.abort()

    def _type_pieces(self, text: str) -> Generator[int, None, Typed]:
        way, warning = Way.KEYS, None
        with self._paste.restoring():
            for piece in cut_pieces(text, frozenset(), 0):
                if not piece.is_paste:
                    for done in self._keyboard.type(text[piece.start : piece.end]):
                        yield piece.start + done
                    continue
                way = Way.PASTE
                for start in range(piece.start, piece.end, MAX_PIECE):
                    end = min(start + MAX_PIECE, piece.end)
                    warning = self._paste.insert(text[start:end], offset=start) or warning
                    yield end
        return Typed(way=way, warning=warning)

    def _known_position(self) -> Point:
        if self._screen.position is None:
            size = self._screen.size()
            self._screen.position = Point(x=size.width // 2, y=size.height // 2)
            self._send_pointer()
        return self._screen.position

    def _send_pointer(self) -> None:
        mask = sum(1 << (button - 1) for button in self._buttons)
        self._has_pointed = True
        place = self._known_position()
        self._connection.send(render_pointer(place.x, place.y, mask))
        self._connection.sync()
