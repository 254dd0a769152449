"""The clipboard: set, read, lent for a paste and given back."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from Xlib import XK, X

from computer.display import Way
from computer.display.x11 import X11Display
from computer.display.x11.connection import XConnection, connect, disconnect
from computer.display.x11.selection import CHUNK_BYTES, Content, Data, Selections, text_content
from computer.errors import InvalidAction, NotConfirmed
from computer.session import DesktopSession
from computer.wire import MAX_CLIPBOARD_CHARACTERS, ComputerCall
from tests.integration.computer.typing.programs import Program

LIMIT_S = 20
UNTYPABLE = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 40))


class Person:
    """Somebody else who copies, in a thread of their own."""

    def __init__(self, desktop: DesktopSession) -> None:
        assert desktop._live is not None
        self.connection = connect(desktop._live.desktop.display, desktop._live.desktop.cookie)
        self.selections = Selections(self.connection)
        # Xlib's connections belong to one thread at a time; ours and the serving one take turns.
        self._turn = threading.RLock()
        self._is_done = threading.Event()
        self._thread: threading.Thread | None = None

    def copy(self, content: Content, name: str = "CLIPBOARD") -> None:
        """Own a selection and serve it from now on."""
        with self._turn:
            assert self.selections.own(self.selections.atom(name), content)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True)
            self._thread.start()

    def copy_text(self, text: str, name: str = "CLIPBOARD") -> None:
        """Copy text."""
        with self._turn:
            self.copy(text_content(self.selections, text), name)

    def stop(self) -> None:
        """Answer nobody any more."""
        self._is_done.set()
        if self._thread is not None:
            self._thread.join(LIMIT_S)

    def _serve(self) -> None:
        while not self._is_done.is_set():
            with self._turn:
                self.selections.pump(lambda _: False, time.monotonic() + 0.01)
            time.sleep(0)


@contextmanager
def _person(desktop: DesktopSession) -> Iterator[Person]:
    person = Person(desktop)
    try:
        yield person
    finally:
        person.stop()
        disconnect(person.connection)


@pytest.fixture
def person(desktop: DesktopSession) -> Iterator[Person]:
    """Somebody else at the same desktop."""
    with _person(desktop) as person:
        yield person


@pytest.fixture
def reader(desktop: DesktopSession) -> Iterator[Person]:
    """Somebody else who only reads."""
    with _person(desktop) as reader:
        yield reader


def _read(reader: Person, target: str, name: str = "CLIPBOARD") -> bytes | None:
    atom = reader.selections.atom
    data = reader.selections.read(atom(name), atom(target), LIMIT_S)
    return None if data is None else bytes(data.value)


@pytest.mark.parametrize("size", [0, 1, 100_000, 300_000, MAX_CLIPBOARD_CHARACTERS])
def test_text_of_any_size_is_delivered(display: X11Display, reader: Person, size: int) -> None:
    """BUGS 56: above 256 KiB in pieces; nothing is dropped in silence."""
    text = ("é" + "x" * 79) * (size // 80) + "y" * (size % 80)
    display.set_clipboard(text)

    assert _read(reader, "UTF8_STRING") == text.encode()
    assert display.get_clipboard() == text


def test_text_over_the_limit_is_refused_in_words(display: X11Display, person: Person) -> None:
    """BUGS 56: an explicit refusal."""
    person.copy_text("x" * (MAX_CLIPBOARD_CHARACTERS + 1))

    with pytest.raises(InvalidAction, match="1048577 characters"):
        display.get_clipboard()


@pytest.mark.parametrize("text", ["plain", "naïve 漢字 👍🏽\n\ttab", "x" * 500_000, ""])
def test_what_somebody_else_copied_is_read(display: X11Display, person: Person, text: str) -> None:
    """Required: get_clipboard, small and large."""
    person.copy_text(text)

    assert display.get_clipboard() == text


def test_empty_clipboard_reads_as_no_text(display: X11Display) -> None:
    """Ours: nobody has copied anything yet."""
    assert display.get_clipboard() == ""


def test_clipboard_without_text_is_refused(display: X11Display, person: Person) -> None:
    """Ours: a picture is no text."""
    atom = person.selections.atom
    person.copy({atom("image/png"): Data(type=atom("image/png"), format=8, value=b"\x89PNG")})

    with pytest.raises(InvalidAction, match="no text"):
        display.get_clipboard()


def test_owner_that_does_not_answer_is_not_waited_for_long(display: X11Display, other: XConnection) -> None:
    """Ours: a stopped program owns the clipboard."""
    window = other.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(other.intern_atom("CLIPBOARD"), X.CurrentTime)
    other.sync()
    started = time.monotonic()

    with pytest.raises(InvalidAction, match="does not answer"):
        display.get_clipboard()
    assert time.monotonic() - started < 7


def test_latin_text_is_offered_to_old_programs_too(display: X11Display, reader: Person) -> None:
    """ICCCM: STRING is Latin-1; never a text that it would damage."""
    display.set_clipboard("naïve")
    assert _read(reader, "STRING") == b"na\xefve"

    display.set_clipboard("漢")
    assert _read(reader, "STRING") is None


async def test_typing_by_paste_gives_the_clipboard_back(
    terminal: Program, person: Person, reader: Person
) -> None:
    """Required: the person's clipboard is saved and restored, with all its forms, and the selection too."""
    atom = person.selections.atom
    picture = Data(type=atom("image/png"), format=8, value=bytes(range(256)) * 2_000)
    person.copy({**text_content(person.selections, "theirs"), atom("image/png"): picture})
    person.copy_text("selected", "PRIMARY")
    typed = await terminal.type(UNTYPABLE)

    assert await terminal.arrived(UNTYPABLE) == UNTYPABLE
    assert (typed.way, typed.warning) == (Way.PASTE, None)
    assert _read(reader, "UTF8_STRING") == b"theirs"
    assert _read(reader, "image/png") == picture.value
    assert _read(reader, "UTF8_STRING", "PRIMARY") == b"selected"
    assert terminal.display.get_clipboard() == "theirs"


async def test_clipboard_that_was_empty_is_empty_again(terminal: Program, reader: Person) -> None:
    """Ours: typed text does not linger there."""
    await terminal.type(UNTYPABLE)

    assert terminal.display.get_clipboard() == ""
    assert not reader.selections.owner(reader.selections.atom("PRIMARY"))


async def test_clipboard_that_cannot_be_read_is_a_warning(terminal: Program, other: XConnection) -> None:
    """Ours: a stopped owner; the text arrives, and the loss is told."""
    window = other.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(other.intern_atom("CLIPBOARD"), X.CurrentTime)
    other.sync()
    typed = await terminal.type(UNTYPABLE)

    assert await terminal.arrived(UNTYPABLE) == UNTYPABLE
    assert typed.warning is not None
    assert "lost" in typed.warning


async def test_paste_is_one_insert_of_lines_and_tabs(terminal: Program) -> None:
    """BUGS 12: no Return and no Tab are pressed; a terminal makes line ends of its own."""
    text = "one\n\ttwo 漢字\nthree"
    typed = await asyncio.to_thread(terminal.display.paste_text, text)

    assert await terminal.arrived(text) == text
    assert typed.way is Way.PASTE


def test_paste_that_nobody_takes_is_refused(display: X11Display) -> None:
    """Required: the offset of the first character that was not delivered."""
    with pytest.raises(InvalidAction, match="character 0 "):
        display.paste_text("text")
    with pytest.raises(InvalidAction, match="character 0 "):
        list(display.type_text(UNTYPABLE))


def test_paste_that_nobody_takes_after_keys_tells_what_arrived(
    display: X11Display, other: XConnection
) -> None:
    """Required: line ends were pressed, so this is no refusal; the offset of the first lost character."""
    window = _open_window(other, X.KeyPressMask)
    with pytest.raises(NotConfirmed, match=r"character 2 .* the first 2 characters were delivered"):
        list(display.type_text(f"\n\n{UNTYPABLE}"))
    other.sync()
    events = [other.next_event() for _ in range(other.pending_events())]
    presses = [event.detail for event in events if event.type == X.KeyPress]
    window.destroy()

    # Shift and Insert, in vain.
    assert presses[:2] == [other.keysym_to_keycode(XK.XK_Return)] * 2
    assert len(presses) == 4


def test_deaf_window_gets_keys_where_keys_can_do_it(display: X11Display, other: XConnection) -> None:
    """Ours: a program that can't paste still gets long text; the result says how."""
    window = _open_window(other, X.KeyPressMask)
    bursts = display.type_text("x" * 3_000)
    outcome: object = None
    while outcome is None:
        try:
            next(bursts)
        except StopIteration as end:
            outcome = end.value
    other.sync()
    presses = sum(other.next_event().type == X.KeyPress for _ in range(other.pending_events()))
    window.destroy()

    # Shift and Insert, in vain, then the text.
    assert presses == 3_002
    assert getattr(outcome, "way", None) is Way.KEYS
    assert "keys instead" in str(outcome)


def test_reader_that_stalls_blocks_nobody(display: X11Display, reader: Person, other: XConnection) -> None:
    """BUGS 57: somebody asks for a long text and never reads it."""
    text = "z" * (CHUNK_BYTES * 5)
    display.set_clipboard(text)
    window = other.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    clipboard, target = other.intern_atom("CLIPBOARD"), other.intern_atom("UTF8_STRING")
    window.convert_selection(clipboard, target, other.intern_atom("SLOT"), X.CurrentTime)
    other.sync()
    started = time.monotonic()
    display.press_button(9)
    display.release_button(9)
    took_s = time.monotonic() - started

    assert _read(reader, "UTF8_STRING") == text.encode()
    assert took_s < 0.5


async def test_actions_set_read_and_paste(desktop: DesktopSession, terminal: Program) -> None:
    """Required: through the driver; the clipboard's text is the report's output."""
    actions = [
        {"action": "set_clipboard", "text": "kept 漢"},
        {"action": "paste", "text": "pasted 字"},
        {"action": "type", "text": UNTYPABLE},
        {"action": "get_clipboard"},
    ]
    result = await desktop.perform(ComputerCall.model_validate({"actions": actions, "screenshot": False}))

    assert result.error is None
    assert [report.output for report in result.reports] == [
        "Put 6 characters on the clipboard.",
        "Pasted 8 characters.",
        f"Typed {len(UNTYPABLE)} characters by paste.",
        "kept 漢",
    ]
    assert await terminal.arrived("pasted 字" + UNTYPABLE) == "pasted 字" + UNTYPABLE


def test_locale_of_the_process_does_not_matter(desktop: DesktopSession) -> None:
    """BUGS 6: LANG=C."""
    assert desktop._live is not None
    live = desktop._live.desktop
    program = (
        "import sys; from computer.display.x11 import X11Display\n"
        f"d = X11Display({live.display!r}, bytes.fromhex({live.cookie.hex()!r}))\n"
        "list(d.type_text('\\u00e9')); d.set_clipboard('\\u00e9\\U0001f44d')\n"
        "sys.exit(d.get_clipboard() != '\\u00e9\\U0001f44d')"
    )
    environment = {
        "LANG": "C",
        "LC_ALL": "C",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }

    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


def _open_window(other: XConnection, mask: int) -> Any:
    root = other.screen().root
    window = root.create_window(0, 0, 50, 50, 0, X.CopyFromParent, event_mask=mask, override_redirect=True)
    window.map()
    other.sync()
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    other.sync()
    return window
