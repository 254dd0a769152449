"""A text view whose text goes to the file, for either GTK: the caller has chosen the version."""

from common import put, take_clear
from gi.repository import GLib, Gtk


def make_view() -> Gtk.TextView:
    """A view that tells its text after each turn of changes, and is emptied on request."""
    view = Gtk.TextView(wrap_mode=Gtk.WrapMode.CHAR)
    buffer = view.get_buffer()
    pending = [False]

    def write() -> bool:
        pending[0] = False
        put(buffer.get_text(buffer.get_start_iter(), buffer.get_end_iter(), True))
        return False

    def change(*_: object) -> None:
        if not pending[0]:
            pending[0] = True
            GLib.idle_add(write)

    def poll() -> bool:
        if take_clear():
            buffer.set_text("")
            put("")
        return True

    buffer.connect("changed", change)
    GLib.timeout_add(10, poll)
    return view
