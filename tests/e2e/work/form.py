"""A form in a GTK window: saves what it holds as JSON in the file given, then ends with exit code 7."""

import json
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gtk  # noqa: E402

window = Gtk.Window(title="Order form")
window.set_default_size(600, 360)
# Without borders a place in the window is a place on the screen.
window.set_decorated(False)
window.move(40, 40)
place = Gtk.Fixed()
name, colour = Gtk.Entry(), Gtk.Entry()
sanded = Gtk.CheckButton(label="Sand it first")
save = Gtk.Button(label="Save the order")
for widget, text, top in ((name, "Name", 40), (colour, "Colour", 100)):
    place.put(Gtk.Label(label=text), 30, top + 8)
    widget.set_size_request(300, 36)
    place.put(widget, 140, top)
place.put(sanded, 140, 160)
save.set_size_request(200, 50)
place.put(save, 140, 230)
window.add(place)


def finish(_: object) -> None:
    """Write the form down."""
    held = {"name": name.get_text(), "colour": colour.get_text(), "sanded": sanded.get_active()}
    with open(sys.argv[1], "w", encoding="utf-8") as file:  # noqa: PTH123 -- the system's Python
        json.dump(held, file, ensure_ascii=False)
    sys.exit(7)


save.connect("clicked", finish)
window.connect("destroy", Gtk.main_quit)
window.show_all()
window.present()
Gtk.main()
