"""A GTK 4 text view."""

import gi

gi.require_version("Gtk", "4.0")
from common import put, take_clear  # noqa: E402
from gi.repository import GLib, Gtk  # noqa: E402

pending = [False]


def activate(app: Gtk.Application) -> None:
    """Open the window."""
    window = Gtk.ApplicationWindow(application=app, title="gtk4")
    window.set_default_size(600, 300)
    view = Gtk.TextView(wrap_mode=Gtk.WrapMode.CHAR)
    window.set_child(view)
    buffer = view.get_buffer()

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
    window.connect("notify::is-active", lambda *_: put(""))
    window.present()
    view.grab_focus()
    GLib.timeout_add(10, poll)


app = Gtk.Application()
app.connect("activate", activate)
app.run([])
