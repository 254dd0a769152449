"""A Tk text widget."""

import tkinter as tk

from common import put, take_clear

root = tk.Tk()
text = tk.Text(root, width=80, height=20, undo=False)
text.pack()
text.focus_force()


def read(*_: object) -> None:
    """Write what the widget holds."""
    if text.edit_modified():
        text.edit_modified(False)
        put(text.get("1.0", "end-1c"))


def poll() -> None:
    """Empty the widget on request."""
    if take_clear():
        text.delete("1.0", "end")
        put("")
    root.after(10, poll)


text.bind("<<Modified>>", read)
root.after(100, lambda: put(""))
root.after(100, poll)
root.mainloop()
