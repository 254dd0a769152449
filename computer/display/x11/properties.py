"""
What windows and their manager say of themselves: properties, read and decoded.

Belongs to the thread of its connection. A window that has gone meanwhile says nothing.

Source: Extended Window Manager Hints 1.5.
"""

from typing import Any

from Xlib import X
from Xlib import error as xerror

from computer.display.x11.connection import XConnection

__all__ = ["MAX_WINDOWS", "Properties"]

# Windows listed; more are left out.
MAX_WINDOWS = 500
# Characters of a title or a class, and 32-bit words of a property, that are read.
MAX_TEXT = 1_000
MAX_WORDS = 1_024
_ESCAPE = "\x1b"


class Properties:
    """Reads properties on *connection*."""

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        self._root = connection.screen().root
        self._atoms: dict[str, int] = {}

    def active_title(self) -> str:
        """Title of the window that has the focus; "" when there is none, or no manager that knows."""
        active = self.active_id() if self.has_manager() else None
        return self.title(self._window(active)) if active else ""

    def has_manager(self) -> bool:
        """Whether a manager lives: its marks outlast it, except the window that they point to."""
        check = self.words(self._root, "_NET_SUPPORTING_WM_CHECK")
        if not check:
            return False
        return self.words(self._window(check[0]), "_NET_SUPPORTING_WM_CHECK")[:1] == check[:1]

    def listed(self) -> tuple[int, ...]:
        """Windows that the manager lists, oldest first; none where no manager lives."""
        if not self.has_manager():
            return ()
        return self.words(self._root, "_NET_CLIENT_LIST")[:MAX_WINDOWS]

    def active_id(self) -> int | None:
        """The window that has the focus, as the manager says."""
        words = self.words(self._root, "_NET_ACTIVE_WINDOW")
        return words[0] if words and words[0] else None

    def title(self, window: Any) -> str:  # noqa: ANN401  Xlib has no types
        """Title of a window, "" when it has none."""
        if title := self.text(window, "_NET_WM_NAME", "utf-8"):
            return title
        # Old clients write other scripts as COMPOUND_TEXT, which the manager has decoded already.
        title = self.text(window, "WM_NAME", "latin-1")
        return (self.text(window, "_NET_WM_VISIBLE_NAME", "utf-8") if _ESCAPE in title else "") or title

    def text(self, window: Any, name: str, charset: str) -> str:  # noqa: ANN401
        """A property of text; "" when there is none."""
        value = self._read(window, name, MAX_TEXT)
        if not isinstance(value, bytes):
            return ""
        return value.decode(charset, "replace")[:MAX_TEXT]

    def words(self, window: Any, name: str) -> tuple[int, ...]:  # noqa: ANN401
        """A property of numbers; empty when there is none."""
        value = self._read(window, name, MAX_WORDS)
        return () if value is None or isinstance(value, (bytes, str)) else tuple(value)

    def atom(self, name: str) -> int:
        """The server's number for a name."""
        if name not in self._atoms:
            self._atoms[name] = self._connection.intern_atom(name)
        return self._atoms[name]

    def _read(self, window: Any, name: str, words: int) -> Any:  # noqa: ANN401
        try:
            found = window.get_property(self.atom(name), X.AnyPropertyType, 0, words)
        except (xerror.BadWindow, xerror.BadDrawable):
            return None
        return found.value if found is not None else None

    def _window(self, number: int) -> Any:  # noqa: ANN401
        return self._connection.create_resource_object("window", number)
