"""
Questions to an X server that are asked together, for one way there and back.

Each is sent when the first answer is waited for; the server answers in the order of asking.
"""

from Xlib.protocol import request, rq

from computer.display.x11.connection import XConnection

__all__ = ["CursorImage", "ask_cursor", "ask_keymap", "ask_pointer", "ask_size", "await_answers"]


class CursorImage(rq.ReplyRequest):
    """
    XFixesGetCursorImage with its pixels as bytes; Xlib's own makes a number of each.

    Source: X Fixes extension, version 5.0, 7.
    """

    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(4), rq.RequestLength())
    _reply = rq.Struct(
        rq.ReplyCode(),
        rq.Pad(1),
        rq.Card16("sequence_number"),
        rq.ReplyLength(),
        rq.Int16("x"),
        rq.Int16("y"),
        rq.Card16("width"),
        rq.Card16("height"),
        rq.Card16("xhot"),
        rq.Card16("yhot"),
        rq.Card32("cursor_serial"),
        rq.Pad(8),
        rq.Binary("cursor_image"),
    )


def ask_cursor(connection: XConnection) -> CursorImage:
    """Picture, serial number and place of the pointer; needs XFIXES."""
    opcode = connection.display.get_extension_major("XFIXES")
    return CursorImage(display=connection.display, defer=True, opcode=opcode)


def ask_keymap(connection: XConnection) -> request.QueryKeymap:
    """Keys that are down."""
    return request.QueryKeymap(display=connection.display, defer=True)


def ask_pointer(connection: XConnection) -> request.QueryPointer:
    """Place of the pointer, and what is down of buttons and modifiers."""
    root = connection.screen().root
    return request.QueryPointer(display=connection.display, defer=True, window=root)


def ask_size(connection: XConnection) -> request.GetGeometry:
    """Size of the root window."""
    root = connection.screen().root
    return request.GetGeometry(display=connection.display, defer=True, drawable=root)


def await_answers(*questions: rq.ReplyRequest) -> None:
    """Send what is not sent yet and wait for every answer."""
    for question in questions:
        question.reply()
