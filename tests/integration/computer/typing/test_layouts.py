"""The same texts under other keyboard layouts, locks and broken modifier maps."""

import subprocess

import pytest
from Xlib import X

from computer.display.x11.connection import XConnection
from computer.keys import parse_chord
from computer.session import DesktopSession
from tests.integration.computer.typing.corpus import CORPUS
from tests.integration.computer.typing.programs import Program

# Signs that move between layouts, letters that need AltGr or Shift, some that no layout has.
TEXTS = (
    CORPUS[1],
    CORPUS[2],
    CORPUS[6],
    CORPUS[14],
    CORPUS[15],
    CORPUS[16],
    CORPUS[21],
    CORPUS[25],
    CORPUS[58],
)
LAYOUTS = ("us", "de", "fr", "no", "ru", "jp", "us,ru")

pytestmark = pytest.mark.slow


async def _check(terminal: Program) -> None:
    for text in TEXTS:
        await terminal.type(text)

        assert await terminal.arrived(text) == text
        await terminal.clear()


def _set_layout(desktop: DesktopSession, layout: str, *options: str) -> None:
    subprocess.run(["setxkbmap", "-layout", layout, *options], env=desktop.environment(), check=True)


def _tap(terminal: Program, name: str) -> None:
    chord = parse_chord(name)
    terminal.display.press_chord(chord)
    terminal.display.release_chord(chord)


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_text_is_exact_under_every_layout(
    desktop: DesktopSession, terminal: Program, layout: str
) -> None:
    """Required: us, de, fr, no, ru, jp."""
    _set_layout(desktop, layout)

    await _check(terminal)


async def test_second_layout_may_be_the_active_one(
    desktop: DesktopSession, terminal: Program, other: XConnection
) -> None:
    """Ours: with Russian active, a Latin letter's own key makes a Russian one."""
    _set_layout(desktop, "us,ru", "-option", "grp:menu_toggle")
    menu = 135
    other.xtest_fake_input(X.KeyPress, menu)
    other.xtest_fake_input(X.KeyRelease, menu)
    other.sync()
    assert other.screen().root.query_pointer().mask >> 13 & 3 == 1

    await _check(terminal)


async def test_text_is_exact_with_an_empty_modifier_map(terminal: Program, other: XConnection) -> None:
    """Required: keys that should shift do nothing; the map is left as it was."""
    assert other.set_modifier_mapping([[0]] * 8) == X.MappingSuccess
    other.sync()

    await _check(terminal)
    assert not any(any(row) for row in other.get_modifier_mapping())


@pytest.mark.parametrize("locks", [["Caps_Lock"], ["Num_Lock"], ["Caps_Lock", "Num_Lock"]])
async def test_locks_neither_disturb_nor_are_changed(
    terminal: Program, other: XConnection, locks: list[str]
) -> None:
    """BUGS 3."""
    for lock in locks:
        _tap(terminal, lock)
    before = other.screen().root.query_pointer().mask

    assert before & 0xFF
    await _check(terminal)
    assert other.screen().root.query_pointer().mask == before
