"""A Tk text widget that inserts a paste some time after it has read it, as busy GTK 4 programs do."""

import tkinter as tk

from common import put, take_clear

# Far more than any number of turns of an idle program's event loop.
LATE_MS = 350

root = tk.Tk()
# A caret that blinks would draw as well.
text = tk.Text(root, width=80, height=20, undo=False, insertofftime=0)
text.pack()
text.focus_force()


def paste(_: object) -> str:
    """Read now, insert later."""
    found = text.selection_get(selection="CLIPBOARD")
    root.after(LATE_MS, lambda: text.insert("insert", found))
    return "break"


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
text.bind("<Shift-Insert>", paste)
root.after(100, lambda: put(""))
root.after(100, poll)
root.mainloop()
