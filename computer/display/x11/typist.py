"""
Text into the focused window, exactly.

Owns the choice of the way, and the paste: take the clipboard, press Shift+Insert, see the
focused application read it, give the clipboard back. Belongs to the thread of its display.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from Xlib import X, Xatom

from computer.display import Typed, Way
from computer.display.keymap import MAX_BURST_KEYS, Piece, TypingPlan, cut_bursts, plan_typing
from computer.display.x11.clipboard import UNREADABLE, Clipboard
from computer.display.x11.connection import XConnection
from computer.display.x11.keyboard import Keyboard
from computer.display.x11.screen import Screen
from computer.errors import InvalidAction
from computer.geometry import Rect

__all__ = ["Typist"]

# Seconds in which the application must ask for what it is to paste, and read it.
TAKE_LIMIT_S = 3.0
# Seconds without a further question after which a paste is over: applications ask several times
# for one paste, and drop it when the clipboard changes hands meanwhile.
QUIET_S = 0.04
# Turns of its event loop that an application is given between a paste and a key: GTK 4 inserts
# some turns after it has read.
TURNS = 3
# Seconds in which it must have drawn something then: GTK 4 reads in another thread, which a busy
# machine may forget for longer than any number of turns. One that shows nothing costs this once.
DRAWN_LIMIT_S = 0.5
# Times that it may draw before it is pasted into, each within the quiet time after the last.
QUIET_TRIES = 5
NOT_PASTED = "the focused window did not take a paste; the text was typed by keys instead"
# Parts of the class names of windows whose Shift+Insert pastes the primary selection.
TERMINALS = ("term", "rxvt", "alacritty", "kitty", "konsole", "tilix", "sakura", "ghostty", "foot", "emacs")
MAX_ANCESTORS = 20
# Pixels of a window that takes keys for others and shows nothing itself.
MAX_PROXY_AREA = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The application that has the focus."""

    client: int
    reads_primary: bool
    area: Rect


class Typist:
    """
    Types and pastes.

    Args:
        connection: that of the keyboard.
        keyboard: presses the keys.
        screen: tells what is drawn.
        get_clipboard: makes the clipboard, or returns the one that there is.
    """

    def __init__(
        self,
        connection: XConnection,
        keyboard: Keyboard,
        screen: Screen,
        get_clipboard: Callable[[], Clipboard],
    ) -> None:
        self._connection = connection
        self._keyboard = keyboard
        self._screen = screen
        self._get_clipboard = get_clipboard

    def type(self, text: str) -> Generator[int, None, Typed]:
        """Type *text*; see ``Display.type_text``."""
        keyboard = self._keyboard
        with keyboard.undisturbed() as may_use_keys:
            plan = plan_typing(text, keyboard.keymap, keyboard.bindings, may_use_keys=may_use_keys)
            keyboard.bind(plan.missing)
            if plan.way is not Way.PASTE:
                yield from self._type_keys(text, plan.pieces[0])
                return Typed(way=plan.way)
            return (yield from self._type_pieces(text, plan))

    def paste(self, text: str) -> Typed:
        """Insert *text* in one piece; see ``Display.paste_text``."""
        with self._keyboard.undisturbed():
            paste = _Paste(self)
            try:
                paste.insert(text)
            except _NotTakenError:
                raise InvalidAction(_not_taken(0)) from None
            finally:
                paste.finish()
        return Typed(way=Way.PASTE, warning=paste.warning)

    def _type_pieces(self, text: str, plan: TypingPlan) -> Generator[int, None, Typed]:
        paste = _Paste(self)
        try:
            for piece in plan.pieces:
                if piece.is_paste and self._is_pasted(text, piece, paste, must=not plan.has_keys):
                    yield piece.end
                else:
                    yield from self._type_keys(text, piece)
        finally:
            paste.finish()
        way = plan.way if paste.is_possible else plan.keys_way
        return Typed(way=way, warning=paste.warning)

    def _is_pasted(self, text: str, piece: Piece, paste: "_Paste", *, must: bool) -> bool:
        """Paste a piece; False where keys have to do it."""
        if not paste.is_possible:
            return False
        try:
            paste.insert(text[piece.start : piece.end])
        except _NotTakenError:
            if must:
                raise InvalidAction(_not_taken(piece.start)) from None
            paste.give_up()
        return paste.is_possible

    def _type_keys(self, text: str, piece: Piece) -> Generator[int, None, None]:
        keyboard = self._keyboard
        if piece.end - piece.start > MAX_BURST_KEYS:
            # While it has nothing to do, so that one which never answers is told from a busy one.
            keyboard.pace()
        for burst in cut_bursts(text, piece, keyboard.keymap, keyboard.bindings):
            keyboard.type_burst(burst)
            if burst.end < piece.end:
                keyboard.pace()
            yield burst.end


class _NotTakenError(Exception):
    """The application did not ask for what it was to paste."""


class _Paste:
    """Pastes one after another; the person's clipboard comes back at the end."""

    def __init__(self, typist: Typist) -> None:
        self._connection = typist._connection
        self._keyboard = typist._keyboard
        self._screen = typist._screen
        self._get_clipboard = typist._get_clipboard
        self._clipboard: Clipboard | None = None
        self._target: _Target | None = None
        self._is_shown = True
        self.is_possible = True
        self.warning: str | None = None

    def insert(self, text: str) -> None:
        """Paste *text* into the focused window, and see it taken."""
        if self._clipboard is None:
            self._clipboard = self._get_clipboard()
            self._target = self._find_target(self._clipboard)
            if not self._clipboard.save(with_primary=self._target.reads_primary):
                self.warning = UNREADABLE
        clipboard, target = self._clipboard, self._target
        if target is None:
            raise _NotTakenError
        clipboard.offer(text)
        self._wait_drawn_before(target)
        with self._screen.following() as has_drawn:
            self._keyboard.tap_paste()
            clients = frozenset({target.client})
            for _ in range(TURNS):
                if not clipboard.wait_taken(clients, quiet_s=QUIET_S, limit_s=TAKE_LIMIT_S):
                    raise _NotTakenError
                # What follows must not overtake it; and now it may have more to ask.
                self._keyboard.pace()
            self._is_shown = self._is_shown and has_drawn(target.area, DRAWN_LIMIT_S)

    def _wait_drawn_before(self, target: _Target) -> None:
        """Let it draw what came earlier, which would be taken for the paste; not for long."""
        for _ in range(QUIET_TRIES):
            with self._screen.following() as has_drawn:
                if not has_drawn(target.area, QUIET_S):
                    return

    def give_up(self) -> None:
        """Paste no more; should the application ask late, it must not get what the person had copied."""
        self.is_possible = False
        self.warning = NOT_PASTED
        if self._clipboard is not None:
            self._clipboard.offer("")

    def finish(self) -> None:
        """Give the clipboard back."""
        if self._clipboard is not None:
            self._clipboard.restore()

    def _find_target(self, clipboard: Clipboard) -> _Target:
        window = self._find_focus()
        if window is None:
            raise _NotTakenError
        client = clipboard.client_of(window.id)
        # Owning the primary selection takes it from the application, which then has nothing
        # selected any more; only a terminal needs that if it is the owner itself.
        reads_primary = clipboard.primary_client() != client or self._is_terminal(window)
        return _Target(client=client, reads_primary=reads_primary, area=self._find_area(window))

    def _find_area(self, window: Any) -> Rect:  # noqa: ANN401
        """Where *window* is, or the whole screen where it only takes keys for others."""
        size = window.get_geometry()
        at = self._connection.screen().root.translate_coords(window, 0, 0)
        area = Rect(left=at.x, top=at.y, right=at.x + size.width, bottom=at.y + size.height)
        seen = self._screen.size_seen
        screen = Rect(left=0, top=0, right=seen.width, bottom=seen.height)
        return area if area.area > MAX_PROXY_AREA and area.is_near(screen) else screen

    def _find_focus(self) -> Any | None:  # noqa: ANN401  Xlib's windows are typed as Any
        focus: Any = self._connection.get_input_focus().focus
        if focus == X.PointerRoot:
            focus = self._connection.screen().root.query_pointer().child
        return focus if getattr(focus, "id", 0) else None

    def _is_terminal(self, window: Any) -> bool:  # noqa: ANN401
        for _ in range(MAX_ANCESTORS):
            names = window.get_full_property(Xatom.WM_CLASS, X.AnyPropertyType)
            if names is not None:
                found = bytes(names.value).decode("latin-1").lower()
                return any(name in found for name in TERMINALS) or found.startswith("st\0")
            window = window.query_tree().parent
            if not getattr(window, "id", 0):
                break
        return False


def _not_taken(offset: int) -> str:
    return f"the focused window did not take the paste; character {offset} of the text was not delivered"
