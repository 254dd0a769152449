"""
Text read back from real programs: every kind of text, equal to what was typed.

``AGENTD_TYPING_RUNS=20`` types the whole corpus so many times into each of them.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer.display import Way
from computer.session import DesktopSession
from tests.integration.computer.typing.corpus import CORPUS, IDEOGRAPHS
from tests.integration.computer.typing.programs import PROGRAMS, Program, is_available

RUNS = int(os.environ.get("AGENTD_TYPING_RUNS", "1"))
LONG = 100_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + 90 * RUNS)]


@pytest.fixture(params=PROGRAMS)
async def program(
    request: pytest.FixtureRequest, desktop: DesktopSession, tmp_path: Path
) -> AsyncIterator[Program]:
    """Each program, with the focus in an empty text field."""
    if not is_available(request.param):
        pytest.fail(f"{request.param} is not installed; script/bootstrap --dev installs it")
    program = Program(desktop, request.param, tmp_path)
    await program.start()
    yield program
    program.close()


async def test_every_kind_of_text_arrives_exactly(program: Program) -> None:
    """Required: xterm, Tk, GTK 3 and 4, Qt 6, Chromium; rows 1, 2, 7, 8, 9."""
    wrong = []
    for run in range(RUNS):
        program.reopen()
        for number, text in enumerate(CORPUS):
            typed = await program.type(text)
            arrived = await program.arrived(text)
            if arrived != text or typed.warning:
                wrong.append((run, number, typed, text, arrived))
            await program.clear()

    assert wrong == []


async def test_long_text_arrives_exactly(program: Program) -> None:
    """Required: 100,000 characters, and 300 distinct ideographs in one call."""
    for text in (("0123456789 The quick brown fox " * 4_000)[:LONG], IDEOGRAPHS * 3 + "\n" + IDEOGRAPHS):
        typed = await program.type(text)

        assert await program.arrived(text) == text
        assert typed.way is Way.PASTE
        await program.clear()


@pytest.mark.parametrize("program", ["late"], indirect=True)
async def test_no_key_overtakes_a_paste(program: Program) -> None:
    """A program that inserts long after it has read still gets everything in order."""
    text = IDEOGRAPHS + "\n" + IDEOGRAPHS + "\nthe end"
    typed = await program.type(text)

    assert await program.arrived(text) == text
    assert typed.way is Way.PASTE
