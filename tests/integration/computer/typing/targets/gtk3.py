"""A GTK 3 text view."""

import gi

gi.require_version("Gtk", "3.0")
from common import put  # noqa: E402
from gi.repository import Gtk  # noqa: E402
from gtk_text import make_view  # noqa: E402

window = Gtk.Window(title="gtk3")
window.set_default_size(600, 300)
view = make_view()
window.add(view)
window.connect("destroy", Gtk.main_quit)
window.show_all()
window.present()
view.connect("focus-in-event", lambda *_: put("") and False)
Gtk.main()
