"""What applications on a real desktop receive, checked from outside."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from Xlib import X

from computer.display.x11 import X11Display, connect
from computer.display.x11.connection import disconnect
from computer.session import DesktopSession
from computer.session.supervisor import Live
from computer.wire import ComputerCall, ComputerResult

# Seconds. Generous: other tests share the machine.
LIMIT_S = 30


def _call(*actions: dict[str, object], **fields: object) -> ComputerCall:
    return ComputerCall.model_validate({"actions": actions, **fields})


def _live(session: DesktopSession) -> Live:
    assert session._live is not None
    return session._live


class Probe:
    """A second client of the same display."""

    def __init__(self, session: DesktopSession) -> None:
        desktop = _live(session).desktop
        self.connection = connect(desktop.display, desktop.cookie)
        self.root = self.connection.screen().root

    def keys_down(self) -> int:
        """Number of keys that are down."""
        return sum(byte.bit_count() for byte in self.connection.query_keymap())

    def mask(self) -> int:
        """Modifiers and buttons."""
        return int(self.root.query_pointer().mask)


@pytest.fixture
async def probe(session: DesktopSession) -> AsyncIterator[Probe]:
    """A second client on the running session."""
    await session.ensure_running()
    probe = Probe(session)
    yield probe
    probe.connection.close()


async def _wait_focus(session: DesktopSession) -> None:
    """Wait until the window manager has given some window the focus."""
    probe = Probe(session)
    active = probe.connection.intern_atom("_NET_ACTIVE_WINDOW")
    while not any(getattr(probe.root.get_full_property(active, X.AnyPropertyType), "value", ())):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    disconnect(probe.connection)


async def _type_into_file(session: DesktopSession, runtime_dir: Path, text: str) -> str:
    """Type *text* into an xterm that writes what it reads into a file; returns the file."""
    ready, out = runtime_dir / "ready", runtime_dir / "out"
    script = f"stty -echo -icanon min 1; touch {ready}; exec cat > {out}"
    await session.open(["xterm", "-u8", "-e", "sh", "-c", script])
    expected = text.encode()
    async with asyncio.timeout(LIMIT_S):
        while not ready.exists():  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)
        await _wait_focus(session)
        result = await session.perform(_call({"action": "type", "text": text}))
        assert result.error is None
        while out.stat().st_size < len(expected):  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)
    return out.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox; ABC xyz {}[]()<>@#$%^&*~`'\"\\|/?!-_=+:,. 0123456789\n",
        "tab\there\nand a second line\n",
        "naïve Größe Ærøskøbing Łódź €5 — “quotes” …\n",
        "漢字かな交じり文を打つ。日本語テスト\n",
        "emoji 😀👍🏽 done\n",
        "".join(chr(code) for code in range(0x4E00, 0x4E00 + 45)) + "\n",
    ],
    ids=["ascii", "control", "latin", "cjk", "emoji", "forty-five ideographs"],
)
async def test_typed_text_arrives_exactly(session: DesktopSession, runtime_dir: Path, text: str) -> None:
    """Design: any Unicode text, read back from a real terminal."""
    assert text == await _type_into_file(session, runtime_dir, text)


async def test_thousand_characters_arrive_exactly(session: DesktopSession, runtime_dir: Path) -> None:
    """Ours: bursts lose nothing."""
    text = "".join(f"{number:04d} Line\n" for number in range(100))

    assert text == await _type_into_file(session, runtime_dir, text)


async def test_caps_lock_does_not_swap_case_and_stays_on(
    session: DesktopSession, probe: Probe, runtime_dir: Path
) -> None:
    """Ours: read, cleared, restored."""
    await session.perform(_call({"action": "key", "text": "Caps_Lock"}, screenshot=False))
    assert probe.mask() & X.LockMask

    assert await _type_into_file(session, runtime_dir, "Mixed Case\n") == "Mixed Case\n"
    assert probe.mask() & X.LockMask


async def _open_terminal(session: DesktopSession, chord: str = "super+Return") -> X11Display:
    """Open a terminal and wait until it is on the screen; returns a display of the test's own."""
    await session.perform(_call({"action": "key", "text": chord}))
    display = X11Display(_live(session).desktop.display, _live(session).desktop.cookie)
    async with asyncio.timeout(LIMIT_S):
        await _wait_focus(session)
        while not (display.capture()[70:580, 300, :3] == 255).all():  # noqa: ASYNC110  drawn by another
            await asyncio.sleep(0.01)
    return display


async def test_terminal_opens_by_key_and_runs_what_is_typed(
    session: DesktopSession, runtime_dir: Path
) -> None:
    """Ours: the prompt is short and the shell is clean."""
    out = runtime_dir / "proof"
    (await _open_terminal(session, "ctrl+alt+t")).close()
    async with asyncio.timeout(LIMIT_S):
        result = await session.perform(_call({"action": "type", "text": f'echo "$PS1" > {out}\n'}))
        while not (out.exists() and out.stat().st_size):  # noqa: ASYNC110  written by another process
            await asyncio.sleep(0.01)

    assert result.error is None
    assert out.read_text() == "\\$ \n"


async def test_terminal_is_black_on_white_without_other_colours(session: DesktopSession) -> None:
    """Ours: another program reads it from pixels."""
    display = await _open_terminal(session)
    async with asyncio.timeout(LIMIT_S):
        await session.perform(_call({"action": "type", "text": "ls --color=always /\n"}))
        while not (display.capture()[80:200, 60:900, :3] == 0).any():  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
    frame = display.capture()
    display.close()

    inside = frame[80:560, 60:900, :3].reshape(-1, 3)
    assert {(255, 255, 255), (0, 0, 0)} == {tuple(pixel) for pixel in inside.tolist()}
    assert frame[790, 1270, :3].tolist() == [0x40, 0x34, 0x2E]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("left_click", [("press", 1), ("release", 1)]),
        ("right_click", [("press", 3), ("release", 3)]),
        ("double_click", [("press", 1), ("release", 1)] * 2),
        ("scroll", [("press", 5), ("release", 5)] * 3),
        ("back_click", [("press", 8), ("release", 8)]),
    ],
)
async def test_window_receives_clicks_at_the_point(
    session: DesktopSession, probe: Probe, action: str, expected: list[tuple[str, int]]
) -> None:
    """Ours: a small client logs what it gets."""
    window = probe.root.create_window(
        100, 100, 300, 200, 0, X.CopyFromParent, event_mask=X.ButtonPressMask | X.ButtonReleaseMask,
        override_redirect=True,
    )  # fmt: skip
    window.map()
    probe.connection.sync()
    async with asyncio.timeout(LIMIT_S):
        result = await session.perform(_call({"action": action, "coordinate": [150, 160]}))
    probe.connection.sync()
    events = [probe.connection.next_event() for _ in range(probe.connection.pending_events())]

    assert result.error is None
    seen = [("press" if event.type == X.ButtonPress else "release", event.detail) for event in events]
    assert expected == seen
    assert {(150, 160)} == {(event.root_x, event.root_y) for event in events}


async def test_drag_moves_a_window(session: DesktopSession) -> None:
    """Ours: the window manager sees press, motion, release."""
    display = await _open_terminal(session)
    drag = {"action": "left_click_drag", "start_coordinate": [500, 50], "coordinate": [700, 250]}
    async with asyncio.timeout(LIMIT_S):
        result = await session.perform(_call(drag))
        while display.capture()[300, 100, :3].tolist() != [0x40, 0x34, 0x2E]:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
    frame = display.capture()
    display.close()

    assert result.error is None
    assert frame[300, 300, :3].tolist() == [255, 255, 255]


async def test_cancelled_hold_leaves_no_key_down(session: DesktopSession, probe: Probe) -> None:
    """Spec: row 23."""
    call = _call(
        {"action": "left_mouse_down", "coordinate": [600, 700]},
        {"action": "hold_key", "text": "ctrl+shift+F9", "duration_ms": 60_000},
    )
    task = asyncio.create_task(session.perform(call))
    async with asyncio.timeout(LIMIT_S):
        while probe.keys_down() < 3:  # noqa: ASYNC110  the server has no event for it
            await asyncio.sleep(0.01)
        assert probe.mask() & X.Button1Mask
        task.cancel()
        await asyncio.wait({task})

    assert task.cancelled()
    assert probe.keys_down() == 0
    assert not probe.mask() & X.Button1Mask


async def test_key_held_on_purpose_is_released_on_request(session: DesktopSession, probe: Probe) -> None:
    """Design: released when control changes hands."""
    await session.perform(_call({"action": "key_down", "text": "shift"}, screenshot=False))
    assert probe.mask() & X.ShiftMask
    await session.release_input()

    assert not probe.mask() & X.ShiftMask


async def test_new_display_releases_what_an_earlier_owner_left(session: DesktopSession, probe: Probe) -> None:
    """Ours: XTEST keys stay down when their client dies."""
    keycode = probe.connection.keysym_to_keycode(0xFFE1)
    probe.connection.xtest_fake_input(X.KeyPress, keycode)
    probe.connection.sync()
    assert probe.keys_down() == 1

    X11Display(_live(session).desktop.display, _live(session).desktop.cookie).close()
    assert probe.keys_down() == 0


async def test_failed_action_leaves_no_modifier_down(session: DesktopSession, probe: Probe) -> None:
    """Ours: refused and failed calls alike."""
    result: ComputerResult = await session.perform(
        _call({"action": "left_click", "coordinate": [5, 5], "modifiers": "ctrl+nosuchkey"})
    )

    assert result.error_code == "unknown_key"
    assert probe.keys_down() == 0
