"""
The clipboard of an RFB server: read, written, and pasted from.

Text is pasted by offering it, pressing Shift+Insert, and handing it over when it is asked for:
the question is the proof that an application took it. Servers that ask as soon as they are
offered something give no such proof, and the result says so.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from computer.display import Typed, Way
from computer.display.vnc.connection import RfbConnection
from computer.display.vnc.keyboard import Keyboard
from computer.errors import InvalidAction
from computer.rfb import ClipboardOffered, ClipboardProvided, ClipboardRequested, CutText, Event
from computer.rfb.messages import render_cut_text

__all__ = ["MAX_PIECE", "NO_CLIPBOARD", "Paste"]

NO_CLIPBOARD = "the VNC server has no clipboard for Unicode text to paste it from"
UNCONFIRMED = "the VNC server took the text; whether the application did can't be seen"
# Bytes on a clipboard above which Xvnc drops a text without a word, and characters that never
# make more than that.
MAX_BYTES = 262_144
MAX_PIECE = 60_000
# Seconds in which the application must ask for what it is to paste, in which a server that asks
# by itself has done so, in which the last question of one paste comes, and for the server's own text.
TAKE_LIMIT_S = 3.0
EAGER_S = 0.05
QUIET_S = 0.05
READ_LIMIT_S = 2.0


class Paste:
    """The clipboard of *connection*."""

    def __init__(self, connection: RfbConnection, keyboard: Keyboard) -> None:
        self._connection = connection
        self._clipboard = connection.client.clipboard
        self._keyboard = keyboard
        self._ours: str | None = None
        self._theirs = False
        self._has_other = False
        self._cut_text = ""
        self._received: list[str | None] = []
        self._requests = 0
        self._saved: str | None = None
        self._is_saving = False
        connection.listeners.append(self.note)

    @property
    def can_unicode(self) -> bool:
        """Whether any text can be pasted."""
        return self._clipboard.is_extended

    def note(self, event: Event) -> None:
        """Take account of what the server sent."""
        if isinstance(event, ClipboardOffered):
            self._ours = None
            self._theirs = event.has_text
            self._has_other = not event.has_text and not event.is_empty
        elif isinstance(event, ClipboardProvided):
            self._received.append(event.text)
        elif isinstance(event, ClipboardRequested):
            self._requests += 1
            self._clipboard.provide(self._ours or "")
        elif isinstance(event, CutText):
            self._ours, self._cut_text = None, event.text

    def paste(self, text: str) -> Typed:
        """
        Insert *text* into the focused window.

        Raises:
            InvalidAction: the server has no clipboard, the text is too long for it, or nobody took it.
        """
        with self.restoring():
            return Typed(way=Way.PASTE, warning=self.insert(text))

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Put back at the end of a block what was on the clipboard before its first ``insert``."""
        self._saved, self._is_saving = None, True
        try:
            yield
        finally:
            self._restore()

    def insert(self, text: str, *, offset: int = 0) -> str | None:
        """
        Insert *text*, within ``restoring``; returns a warning.

        Args:
            text: of any characters.
            offset: where it begins in the whole text, for the error.

        Raises:
            InvalidAction: the server has no clipboard, the text is too long for it, or nobody took it.
        """
        if not self.can_unicode:
            msg = f"character {offset} of the text was not delivered: {NO_CLIPBOARD}"
            raise InvalidAction(msg)
        _check_length(text)
        if self._is_saving:
            self._saved, self._is_saving = self._read(), False
        self._requests = 0
        self._ours = text
        self._clipboard.offer()
        self._connection.sync()
        is_eager = self._pump_until(lambda: self._requests > 0, EAGER_S)
        self._keyboard.tap_paste()
        self._connection.sync()
        if not is_eager and not self._pump_until(lambda: self._requests > 0, TAKE_LIMIT_S):
            # Should it ask late, it must not get what was meant for another moment.
            self.write("")
            msg = (
                f"the focused window did not take the paste; character {offset} of the text was not delivered"
            )
            raise InvalidAction(msg)
        self._wait_quiet()
        return UNCONFIRMED if is_eager else None

    def write(self, text: str) -> None:
        """
        Put *text* on the clipboard, for as long as this connection lives.

        Raises:
            InvalidAction: too long for the clipboard of a VNC server, or it has only the old one,
                which can't hold this text.
        """
        _check_length(text)
        if self.can_unicode and self._connection.client.has_fences:
            # Handed over unasked: nobody answers questions between two calls.
            self._ours = text
            self._clipboard.offer()
            self._clipboard.provide(text)
        elif not self._is_asked_for(text):
            self._write_old(text)
        self._connection.sync()

    def _is_asked_for(self, text: str) -> bool:
        """Offer *text*; whether the server took it. x11vnc ends at a text that it did not ask for."""
        if not self.can_unicode:
            return False
        before, self._ours, self._requests = self._ours, text, 0
        self._clipboard.offer()
        self._connection.sync()
        if self._pump_until(lambda: self._requests > 0, EAGER_S):
            return True
        self._ours = before
        return False

    def _write_old(self, text: str) -> None:
        try:
            self._connection.client.send(render_cut_text(text))
        except UnicodeEncodeError as exc:
            msg = f"character {exc.start} of the text can't be put on this VNC server's clipboard"
            raise InvalidAction(msg) from exc
        self._ours = text

    def read(self) -> str:
        """
        Text on the clipboard, "" when there is none.

        Raises:
            InvalidAction: it holds something else, or too much, or its owner does not answer.
        """
        self._connection.sync()
        if self._ours is None and self._has_other:
            raise InvalidAction("the clipboard holds something else than text")
        text = self._read()
        if text is None:
            raise InvalidAction("the owner of the clipboard did not hand its text over")
        return text

    def _read(self) -> str | None:
        if self._ours is not None:
            return self._ours
        if not self.can_unicode or not self._theirs:
            return self._cut_text
        self._received.clear()
        self._clipboard.request()
        self._pump_until(lambda: bool(self._received), READ_LIMIT_S)
        return self._received[-1] if self._received else None

    def _restore(self) -> None:
        if self._saved is not None:
            self.write(self._saved)

    def _wait_quiet(self) -> None:
        """Wait until nobody asks any more: applications ask several times for one paste."""
        deadline = time.monotonic() + TAKE_LIMIT_S
        while time.monotonic() < deadline:
            asked = self._requests
            if not self._pump_until(partial(self._has_asked_since, asked), QUIET_S):
                break

    def _has_asked_since(self, count: int) -> bool:
        return self._requests != count

    def _pump_until(self, is_done: Callable[[], bool], limit_s: float) -> bool:
        deadline = time.monotonic() + limit_s
        while not is_done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._connection.pump(left)
        return True


def _check_length(text: str) -> None:
    # Line feeds become two bytes on the way, and a zero byte ends the text.
    length = len(text.encode("utf-8", "replace")) + text.count("\n") + 1
    if length > MAX_BYTES:
        msg = f"the text makes {length} bytes; a VNC server's clipboard takes {MAX_BYTES}"
        raise InvalidAction(msg)
