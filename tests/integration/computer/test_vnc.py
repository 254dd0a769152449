"""The VNC display on real servers, judged by X clients, files, pixels and vncdotool."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from Xlib import X

from computer.display import Patience, Typed, Way
from computer.display.rest import wait_settled
from computer.display.vnc import VncDisplay, connection
from computer.display.vnc.display import UNSEEN
from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import XConnection, connected, disconnect
from computer.driver import ComputerDriver
from computer.errors import CaptureTimeout, DisplayLost, InvalidAction, NotConfirmed, RfbProtocolError
from computer.geometry import Point, Size
from computer.keys import parse_chord
from computer.wire import ComputerCall
from tests.rfb_servers import RfbServer, run_qemu, run_x11vnc, run_xvnc

LIMIT_S = 30
PATIENCE = Patience(first_change_s=2.0, quiet_s=0.2, cap_s=5.0)
ASCII = "".join(chr(code) for code in range(0x20, 0x7F))
NEEDS_CLIPBOARD = [
    "naïve Größe Łódź €5 — “quotes”\n",
    "漢字かな 😀👍🏽 مرحبا e\u0301\n",
    "".join(map(chr, range(0x4E00, 0x4F2C))),
]


@pytest.fixture
def server(runtime_dir: Path) -> Iterator[RfbServer]:
    """Xvnc without a window manager, by its Unix socket."""
    with run_xvnc(runtime_dir) as server:
        yield server


@pytest.fixture
def display(server: RfbServer) -> Iterator[VncDisplay]:
    """A VNC display on it."""
    display = VncDisplay(server.address)
    yield display
    display.close()


@pytest.fixture
def client(server: RfbServer) -> Iterator[XConnection]:
    """A second client, of the X server itself."""
    assert server.display is not None
    client = connect(server.display, None)
    yield client
    disconnect(client)


def _until(is_done: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def _terminal(server: RfbServer, directory: Path, *options: str) -> Iterator[Path]:
    """An xterm with the pointer's focus that writes what it reads into a file."""
    assert server.display is not None
    ready, out = directory / "ready", directory / "out"
    script = f"stty -echo -icanon min 1; touch {ready}; exec cat > {out}"
    argv = ["xterm", "-u8", *options, "-geometry", "200x60+0+0", "-e", "sh", "-c", script]
    environment = {"PATH": os.environ["PATH"], "DISPLAY": server.display, "LANG": "C.UTF-8", "HOME": "/"}
    process = subprocess.Popen(argv, env=environment)
    try:
        # It starts its program before its window is there, and what is typed until then is nobody's.
        _until(lambda: ready.exists() and out.exists() and _shows_window(server.display))
        yield out
    finally:
        process.terminate()
        process.wait()


def _shows_window(name: str | None) -> bool:
    with connected(name or "", None) as connection:
        children = connection.screen().root.query_tree().children
        return any(child.get_attributes().map_state == X.IsViewable for child in children)


def _type(display: VncDisplay, text: str, out: Path, *, arriving: str | None = None) -> tuple[str, Way]:
    """Type into the window under the pointer; returns what arrived, and the way."""
    display.move_pointer(Point(x=100, y=100))
    typing = display.type_text(text)
    while True:
        try:
            next(typing)
        except StopIteration as end:
            way: Way = end.value.way
            break
    _until(lambda: out.stat().st_size >= len((arriving or text).encode()))
    return out.read_bytes().decode(), way


def test_all_of_ascii_arrives_exactly(server: RfbServer, display: VncDisplay, runtime_dir: Path) -> None:
    """Ours: through a real terminal, five times, in bursts."""
    text = f"{ASCII}\tAbC xYz\n" * 5
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out) == (text, Way.KEYS)


@pytest.mark.parametrize("text", NEEDS_CLIPBOARD, ids=["latin", "joiners", "three hundred ideographs"])
def test_other_text_is_pasted_exactly(
    server: RfbServer, display: VncDisplay, runtime_dir: Path, text: str
) -> None:
    """Ours: by the extended clipboard, in one piece; the question for it is the proof."""
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out) == (text, Way.PASTE)


def _toggle_caps(client: XConnection) -> None:
    keycode = client.keysym_to_keycode(0xFFE5)
    client.xtest_fake_input(X.KeyPress, keycode)
    client.xtest_fake_input(X.KeyRelease, keycode)
    client.sync()


def _mask(client: XConnection) -> int:
    return int(client.screen().root.query_pointer().mask)


@pytest.mark.parametrize("is_on", [False, True])
def test_caps_lock_neither_disturbs_typing_nor_changes(
    server: RfbServer, display: VncDisplay, client: XConnection, runtime_dir: Path, *, is_on: bool
) -> None:
    """Ours: Xvnc toggles it for clients that send no Shift."""
    if is_on:
        _toggle_caps(client)
        display.capture()
    with _terminal(server, runtime_dir) as out:
        assert _type(display, "MiXeD CaSe aB\n", out)[0] == "MiXeD CaSe aB\n"

    assert bool(_mask(client) & X.LockMask) == is_on


@pytest.mark.parametrize("layout", ["de", "fr", "no", "jp"])
def test_layout_of_the_server_does_not_change_what_arrives(
    server: RfbServer, display: VncDisplay, runtime_dir: Path, layout: str
) -> None:
    """Ours: Shift as on a US keyboard, whatever the server's layout."""
    assert server.display is not None
    subprocess.run(["setxkbmap", "-display", server.display, layout], check=True)
    text = "abc XYZ {}[]@\\|~^`'\" <>?/!1 12.5\n" * 5
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out)[0] == text


def test_layout_without_latin_letters_needs_pasting(server: RfbServer, runtime_dir: Path) -> None:
    """Ours: RFB does not show the layout, and Xvnc binds missing letters too late; line ends are keys."""
    assert server.display is not None
    subprocess.run(["setxkbmap", "-display", server.display, "ru"], check=True)
    display = VncDisplay(server.address, types_by_paste=True)
    text = f"{ASCII}\tж漢\n\nplain\n"
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out) == (text, Way.PASTE)
    display.close()


@pytest.mark.parametrize(("knows", "warning"), [(None, UNSEEN), (False, None)])
def test_layout_that_nobody_vouched_for_is_a_warning(
    server: RfbServer, knows: bool | None, warning: str | None
) -> None:
    """Ours: never ok on faith: keys that a server may lose are told as such, unless the caller knows."""
    display = VncDisplay(server.address, types_by_paste=knows)
    display.move_pointer(Point(x=100, y=100))
    typing = display.type_text("abc")
    assert next(typing) == 3
    with pytest.raises(StopIteration) as end:
        next(typing)
    display.close()

    assert end.value.value == Typed(way=Way.KEYS, warning=warning)


def test_line_ends_and_tabs_are_keys_beside_what_is_pasted(
    display: VncDisplay, server: RfbServer, client: XConnection, runtime_dir: Path
) -> None:
    """Required: newlines as Return and tabs as Tab, in every text; a terminal would hide the difference."""
    before = client.query_keymap()
    with _terminal(server, runtime_dir, "-xrm", "*VT100.translations: #override <Key>Return: string(R)"):
        out = runtime_dir / "out"
        assert _type(display, "é\tж\n", out, arriving="é\tжR") == ("é\tжR", Way.PASTE)
    assert client.query_keymap() == before


def test_clipboard_goes_both_ways_and_survives_a_paste(
    server: RfbServer, display: VncDisplay, runtime_dir: Path
) -> None:
    """Ours: what was there before comes back."""
    display.set_clipboard("kept — 漢\nzwei")
    with _terminal(server, runtime_dir) as out:
        _type(display, "é漢", out)

    assert display.get_clipboard() == "kept — 漢\nzwei"


def test_shift_is_never_lost(server: RfbServer, display: VncDisplay, runtime_dir: Path) -> None:
    """Public report: cua#3226: `_` became `-` and `>` became `.` towards a VM; fifty times, by RFB."""
    text = "Hello_World-42 (a>b)\n" * 50
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out)[0] == text


@pytest.mark.slow
def test_hundred_thousand_characters_are_pasted_in_pieces(
    server: RfbServer, display: VncDisplay, runtime_dir: Path
) -> None:
    """Ours: more than a VNC server's clipboard takes at once."""
    text = "".join(chr(0x4E00 + number % 5_000) for number in range(99_997))
    text = f"{text[:70_000]}\n\t{text[70_000:]}\n"
    with _terminal(server, runtime_dir) as out:
        assert _type(display, text, out)[0] == text


def test_clipboard_takes_a_text_or_refuses_it(server: RfbServer, display: VncDisplay) -> None:
    """Public report: TigerVNC#1482: above 256 KiB the server drops a text without a word."""
    assert server.display is not None
    other = X11Display(server.display)
    for length in (100_000, 262_000):
        display.set_clipboard("é" + "x" * length)
        assert other.get_clipboard() == "é" + "x" * length
    for length in (300_000, 10_000_000):
        with pytest.raises(InvalidAction, match="262144"):
            display.set_clipboard("x" * length)
    other.close()


def test_button_left_by_a_broken_connection_is_let_go_by_the_next(
    server: RfbServer, client: XConnection
) -> None:
    """Public report: noVNC#1880: Xvnc leaves a button down whose viewer has gone."""
    first = VncDisplay(server.address)
    first.press_button(1)
    assert _mask(client) & X.Button1Mask
    first.abort()
    first.close()
    second = VncDisplay(server.address)
    second.pointer()

    _until(lambda: not _mask(client) & X.Button1Mask)
    second.close()


async def test_driver_works_by_vnc(server: RfbServer, runtime_dir: Path) -> None:
    """Ours: calls of models, on a screen reachable only by RFB."""
    address = server.address
    driver = ComputerDriver(lambda: VncDisplay(address))
    await driver.open()
    with _terminal(server, runtime_dir) as out:
        actions = [
            {"action": "left_click", "coordinate": [100, 100]},
            {"action": "type", "text": "Ärger: no\n"},
        ]
        result = await driver.perform(ComputerCall.model_validate({"actions": actions}))
        _until(lambda: out.stat().st_size >= 11)

    assert (result.error, out.read_text()) == (None, "Ärger: no\n")
    assert result.screenshot is not None
    await driver.close()


def _open_window(client: XConnection) -> None:
    """A window with the focus, which is told of keys and takes nothing else."""
    mask = X.KeyPressMask | X.KeyReleaseMask
    window = client.screen().root.create_window(
        0, 0, 50, 50, 0, X.CopyFromParent, event_mask=mask, override_redirect=True
    )
    window.map()
    client.sync()
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    client.sync()


@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize(
    ("chord", "keys"), [("ctrl+l", "ctrl l"), ("ctrl+shift+t", "ctrl shift t"), ("ctrl+T", "ctrl t")]
)
def test_chord_of_a_letter_arrives_as_such_whatever_caps_lock(
    display: VncDisplay, client: XConnection, *, is_on: bool, chord: str, keys: str
) -> None:
    """Ours: for a letter of the other case Xvnc presses Shift, or lifts it: ctrl+l became ctrl+shift+l."""
    _open_window(client)
    if is_on:
        _toggle_caps(client)
        display.capture()
    codes = {"ctrl": 0xFFE3, "shift": 0xFFE1, "l": ord("l"), "t": ord("t")}
    expected = [client.keysym_to_keycode(codes[key]) for key in keys.split()]
    client.sync()
    while client.pending_events():
        client.next_event()
    display.press_chord(parse_chord(chord))
    display.release_chord(parse_chord(chord))
    client.sync()
    events = [client.next_event() for _ in range(client.pending_events())]

    pressed = [event.detail for event in events if event.type == X.KeyPress]
    released = [event.detail for event in events if event.type == X.KeyRelease]
    assert (pressed, released) == (expected, expected[::-1])


def test_paste_that_nobody_takes_is_an_error(display: VncDisplay) -> None:
    """Ours: never ok on faith; the offset says that nothing arrived."""
    with pytest.raises(InvalidAction, match="character 0 "):
        display.paste_text("é")
    with pytest.raises(InvalidAction, match="character 0 "):
        list(display.type_text("漢"))


async def test_paste_that_nobody_takes_after_a_key_tells_what_arrived(
    server: RfbServer, client: XConnection
) -> None:
    """Required: the line end was pressed, so this is no refusal; the offset of the first lost character."""
    _open_window(client)
    address = server.address
    driver = ComputerDriver(lambda: VncDisplay(address))
    await driver.open()
    typing = {"action": "type", "text": "\n漢字"}
    result = await driver.perform(ComputerCall.model_validate({"actions": [typing]}))
    client.sync()
    events = [client.next_event() for _ in range(client.pending_events())]
    await driver.close()

    assert result.error_code == NotConfirmed.code
    assert "character 1 " in (result.error or "")
    assert "the first character was delivered, the rest was not" in (result.error or "")
    keys = [event.detail for event in events if event.type == X.KeyPress]
    assert keys[0] == client.keysym_to_keycode(0xFF0D)


def test_window_receives_clicks_at_the_point(display: VncDisplay, client: XConnection) -> None:
    """Ours: a small client logs what it gets; seven buttons, and no eighth."""
    window = client.screen().root.create_window(
        100, 100, 300, 200, 0, X.CopyFromParent, event_mask=X.ButtonPressMask | X.ButtonReleaseMask
    )
    window.map()
    client.sync()
    display.move_pointer(Point(x=150, y=160))
    for button in range(1, 8):
        display.press_button(button)
        display.release_button(button)
    with pytest.raises(InvalidAction):
        display.press_button(8)
    client.sync()
    events = [client.next_event() for _ in range(client.pending_events())]

    seen = [(event.type == X.ButtonPress, event.detail) for event in events]
    assert seen == [(is_press, button) for button in range(1, 8) for is_press in (True, False)]
    assert {(150, 160)} == {(event.root_x, event.root_y) for event in events}


def test_chords_hold_and_release_all_lets_go(display: VncDisplay, client: XConnection) -> None:
    """Ours: keys and buttons are read back from the X server."""
    display.press_chord(parse_chord("ctrl+shift+F9"))
    display.press_button(1)
    _until(lambda: sum(byte.bit_count() for byte in client.query_keymap()) == 3)
    assert _mask(client) & X.Button1Mask
    assert display.read_held().buttons == (1,)
    display.release_all()

    _until(lambda: not any(client.query_keymap()))
    assert not _mask(client) & X.Button1Mask
    assert display.read_held().keys == ()


def test_held_keys_are_released_by_closing_and_by_breaking_off(
    server: RfbServer, client: XConnection
) -> None:
    """Ours: Xvnc releases what a client held that goes away."""
    for end in (VncDisplay.close, VncDisplay.abort):
        display = VncDisplay(server.address)
        display.press_chord(parse_chord("shift+a"))
        _until(lambda: any(client.query_keymap()))
        end(display)
        _until(lambda: not any(client.query_keymap()))
        display.close()


def test_abandoned_typing_leaves_nothing_down(display: VncDisplay, client: XConnection) -> None:
    """Ours: closing the generator is enough."""
    typing = display.type_text("SHOUT" * 200)
    next(typing)
    typing.close()

    _until(lambda: not any(client.query_keymap()))


def _fill(client: XConnection, box: tuple[int, int, int, int], colour: int) -> None:
    root = client.screen().root
    root.fill_rectangle(root.create_gc(foreground=colour), *box)
    client.sync()


def test_picture_is_never_older_than_the_question(display: VncDisplay, client: XConnection) -> None:
    """Ours: what was drawn before the capture is in it, a hundred times."""
    display.move_pointer(Point(x=1279, y=799))
    for number in range(100):
        _fill(client, (10 + number, 20, 200, 100), 0x010203 * (number + 1) & 0xFFFFFF)
        frame = display.capture()

        expected = (0x010203 * (number + 1) & 0xFFFFFF).to_bytes(3, "little")
        assert bytes(frame[25, 15 + number, :3]) == expected


def test_changes_are_told_with_their_boxes(display: VncDisplay, client: XConnection) -> None:
    """Ours: settling by incremental updates; equal pixels are no change."""
    display.capture()
    display.mark()
    assert display.is_unchanged()
    _fill(client, (300, 200, 40, 30), 0xFF0000)
    settled = wait_settled(display, PATIENCE)
    assert (settled.changed, settled.is_settled) == (True, True)
    assert not display.is_unchanged()
    assert [(box.left, box.top, box.right, box.bottom) for box in display.take_changes()] == [
        (300, 200, 340, 230)
    ]
    display.mark()
    _fill(client, (300, 200, 40, 30), 0xFF0000)

    assert not wait_settled(display, Patience(first_change_s=0.2, quiet_s=0.1, cap_s=1)).changed
    assert display.take_changes() == ()


def test_size_changes_are_followed_without_a_mixed_frame(
    server: RfbServer, display: VncDisplay, client: XConnection
) -> None:
    """Ours: RandR on the server's side."""
    assert server.display is not None
    assert display.size() == Size(width=1280, height=800)
    for width, height in ((640, 480), (1024, 768)):
        subprocess.run(["xrandr", "-d", server.display, "-s", f"{width}x{height}"], check=True)
        _fill(client, (0, 0, width, height), 0x00AA00 + width % 256)
        frame = display.capture()

        assert frame.shape == (height, width, 4)
        assert (frame[5:200, 5:200, 1] == 0xAA).all()
        display.move_pointer(Point(x=width - 1, y=height - 1))


def _wait_for_ever(display: VncDisplay) -> None:
    while True:
        display.wait_changes(LIMIT_S)


def test_abort_ends_a_wait_in_another_thread(display: VncDisplay) -> None:
    """Ours: a call in progress ends in DisplayLost."""
    timer = threading.Timer(0.2, display.abort)
    timer.start()
    with pytest.raises(DisplayLost):
        _wait_for_ever(display)
    timer.join()
    with pytest.raises(DisplayLost):
        display.capture()


def test_stopped_server_costs_a_limited_time(
    server: RfbServer, display: VncDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: silence is CaptureTimeout."""
    monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 0.3)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(CaptureTimeout):
            display.capture()
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_dead_server_is_lost(runtime_dir: Path) -> None:
    """Ours: and a new display is refused in words."""
    with run_xvnc(runtime_dir) as server:
        display = VncDisplay(server.address)
    with pytest.raises(DisplayLost):
        display.capture()
    display.close()
    with pytest.raises(DisplayLost, match="no VNC server answers"):
        VncDisplay(server.address)


def test_wrong_password_is_told(runtime_dir: Path) -> None:
    """Ours: the server's own reason."""
    with run_xvnc(runtime_dir, password="secret12") as server:
        VncDisplay(server.address, "secret12").close()
        with pytest.raises(DisplayLost, match="password"):
            VncDisplay(server.address)
        with pytest.raises(DisplayLost, match="does not let us in"):
            VncDisplay(server.address, "wrong")


@pytest.mark.parametrize("data", [b"\x09", b"SSH-2.0-OpenSSH_9.2"], ids=["unknown message", "no server"])
def test_what_is_not_rfb_never_stalls(data: bytes, runtime_dir: Path) -> None:
    """Ours: unknown server messages are a typed error at once."""
    path = runtime_dir / "odd"
    hello = b"RFB 003.008\n\x01\x01" + bytes(4) + b"\0\x08\0\x04" + bytes(20) if data == b"\x09" else b""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener, hello + data))
        thread.start()
        with pytest.raises(RfbProtocolError):
            VncDisplay(path)
        thread.join()


def _serve(listener: socket.socket, data: bytes) -> None:
    peer, _ = listener.accept()
    with peer, suppress(OSError):
        peer.sendall(data)
        while peer.recv(4_096):
            pass


def _vncdotool(server: RfbServer, *command: str) -> None:
    where = (
        f"{server.address[0]}::{server.address[1]}"
        if isinstance(server.address, tuple)
        else str(server.address)
    )
    argv = [sys.executable, "-m", "vncdotool.command", "--nocursor", "-s", where, *command]
    subprocess.run(argv, check=True, timeout=LIMIT_S, capture_output=True)


def test_independent_client_sees_what_we_see_and_types_what_we_hear(runtime_dir: Path) -> None:
    """Ours: vncdotool is the peer."""
    with (
        run_xvnc(runtime_dir, tcp=True) as server,
        _terminal(server, runtime_dir) as out,
        ExitStack() as stack,
    ):
        stack.callback((display := VncDisplay(server.address)).close)
        assert _type(display, "seen by another\n", out)[0] == "seen by another\n"
        wait_settled(display, PATIENCE)
        file = runtime_dir / "theirs.png"
        _vncdotool(server, "capture", str(file))
        theirs = np.asarray(Image.open(file).convert("RGB"))
        # Its picture ends where the last rectangle does that was not black.
        ours = display.capture()[: theirs.shape[0], : theirs.shape[1], 2::-1]
        # Both pictures hold the pointer, drawn by the server in one and by us in the other.
        assert int((ours != theirs).any(axis=2).sum()) < 400
        display.mark()
        _vncdotool(server, "move", "100", "120", "type", "hello")
        _until(lambda: out.read_bytes().endswith(b"hello"))


def test_x11vnc_types_ascii_and_refuses_the_rest_whole(runtime_dir: Path) -> None:
    """Ours: it offers a clipboard and never asks for its text, so nothing is said to have arrived."""
    with run_x11vnc(runtime_dir) as server, _terminal(server, runtime_dir) as out:
        display = VncDisplay(server.address)
        assert _type(display, "Hello, X11 World!\n", out)[0] == "Hello, X11 World!\n"
        with pytest.raises(InvalidAction, match="character 0 of the text was not delivered"):
            next(display.type_text("plainé"))
        display.close()
        assert out.read_text() == "Hello, X11 World!\n"


@pytest.mark.parametrize("tcp", [False, True])
def test_qemu_shows_its_firmware_and_takes_input(runtime_dir: Path, *, tcp: bool) -> None:
    """Ours: a text screen; keys can't be read back, so only the picture is judged."""
    with run_qemu(runtime_dir, tcp=tcp) as server:
        display = VncDisplay(server.address)
        deadline = time.monotonic() + LIMIT_S
        while not display.capture()[..., :3].any():
            assert time.monotonic() < deadline
        assert list(display.type_text("A!b\n")) == [4]
        display.move_pointer(Point(x=10, y=10))
        display.press_button(1)
        display.release_all()
        with pytest.raises(InvalidAction):
            next(display.type_text("é"))
        size = display.size()
        assert display.capture().shape == (size.height, size.width, 4)
        display.close()
