"""A GTK 4 text view."""

import gi

gi.require_version("Gtk", "4.0")
from common import put  # noqa: E402
from gi.repository import Gtk  # noqa: E402
from gtk_text import make_view  # noqa: E402


def activate(app: Gtk.Application) -> None:
    """Open the window."""
    window = Gtk.ApplicationWindow(application=app, title="gtk4")
    window.set_default_size(600, 300)
    view = make_view()
    window.set_child(view)
    window.connect("notify::is-active", lambda *_: put(""))
    window.present()
    view.grab_focus()


app = Gtk.Application()
app.connect("activate", activate)
app.run([])
