"""A GTK 3 text view."""

import gi

gi.require_version("Gtk", "3.0")
from common import put, take_clear  # noqa: E402
from gi.repository import GLib, Gtk  # noqa: E402

window = Gtk.Window(title="gtk3")
window.set_default_size(600, 300)
view = Gtk.TextView(wrap_mode=Gtk.WrapMode.CHAR)
window.add(view)
buffer = view.get_buffer()
pending = [False]


def write() -> bool:
    """Write what the view holds."""
    pending[0] = False
    put(buffer.get_text(buffer.get_start_iter(), buffer.get_end_iter(), True))
    return False


def change(*_: object) -> None:
    """Write once the changes of this turn are over."""
    if not pending[0]:
        pending[0] = True
        GLib.idle_add(write)


def poll() -> bool:
    """Empty the view on request."""
    if take_clear():
        buffer.set_text("")
        put("")
    return True


buffer.connect("changed", change)
window.connect("destroy", Gtk.main_quit)
window.show_all()
window.present()
view.connect("focus-in-event", lambda *_: put("") and False)
GLib.timeout_add(10, poll)
Gtk.main()
