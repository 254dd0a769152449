"""A Qt 6 plain text edit."""

import sys

from common import put, take_clear
from PyQt6 import QtCore, QtWidgets

app = QtWidgets.QApplication(sys.argv[:1])
edit = QtWidgets.QPlainTextEdit()
edit.setWindowTitle("qt6")
edit.resize(600, 300)
writing = QtCore.QTimer(singleShot=True, interval=0)
# toPlainText() makes a plain space of a no-break space.
writing.timeout.connect(lambda: put(edit.document().toRawText().replace("\u2029", "\n")))
edit.textChanged.connect(writing.start)
edit.show()
edit.activateWindow()
edit.setFocus()


def poll() -> None:
    """Empty the widget on request."""
    if take_clear():
        edit.setPlainText("")
        put("")


timer = QtCore.QTimer(interval=10)
timer.timeout.connect(poll)
timer.start()
app.focusChanged.connect(lambda *_: put(""))
sys.exit(app.exec())
