"""
Perform a log again on a desktop and say how much each step's screen is as it was.

Owns what can be performed again (not a secret, whose text is not in the log) and what similar means: the
part of the pixels that differ by no more than a shade.
"""

import base64
import io
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError

from agentd.errors import BadRequest
from agentd.trace.entry import LogEntry, LoggedPicture, read_lines
from agentd.trace.export import LINES
from computer.errors import ComputerError
from computer.wire import ComputerCall, ComputerResult

__all__ = ["Performer", "StepOutcome", "Trace", "replay", "similarity"]

# Difference of a colour that nobody sees; JPEG and font hinting make such.
SHADE = 8
# Bytes of the lines and of one picture: more is no log of ours.
MAX_LINES_BYTES = 256 * 2**20
MAX_PICTURE_BYTES = 64 * 2**20


# What was done to windows, processes and the screen, by numbers that were of that day.
MANAGED = frozenset({
    "end_program", "focus_window", "move_window", "resize_window", "close_window", "resize_screen",
})  # fmt: skip
LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})


class Performer(Protocol):
    """What performs a call: a desktop session."""

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """Perform *call*."""

    async def launch(self, argv: Sequence[str], *, cwd: str | None = None) -> object:
        """Open a program and wait for its window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """
    One step performed again.

    *similarity* is the part of the screen that is as it was, 0 to 1; None where there is no picture to
    compare with. *note* tells why a step was not performed or failed.
    """

    number: int
    actions: tuple[str, ...]
    similarity: float | None = None
    note: str | None = None


class Trace:
    """
    An exported log.

    Raises:
        BadRequest: *path* is none.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
            lines = self._read(LINES, MAX_LINES_BYTES).decode()
        except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError) as exc:
            msg = f"{path} is no trace: {exc}; `agentd desktop trace export` makes one"
            raise BadRequest(msg) from exc
        self.entries = tuple(read_lines(lines.splitlines()))

    def picture(self, picture: LoggedPicture) -> bytes | None:
        """Bytes of a picture; None when it was no longer kept."""
        name = next((n for n in self._archive.namelist() if n.startswith(f"pictures/{picture.sha256}")), None)
        return self._read(name, MAX_PICTURE_BYTES) if name is not None else None

    def native_size(self) -> tuple[int, int] | None:
        """Size of the screen that it was made on."""
        return next((entry.native_size for entry in self.entries if entry.native_size is not None), None)

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def _read(self, name: str, limit: int) -> bytes:
        info = self._archive.getinfo(name)
        if info.file_size > limit:
            msg = f"{name} has {info.file_size} bytes"
            raise BadRequest(msg)
        return self._archive.read(info)


async def replay(trace: Trace, performer: Performer) -> AsyncIterator[StepOutcome]:
    """Perform every step in order; a step that fails does not stop the rest."""
    for entry in trace.entries:
        yield await _replay_step(trace, entry, performer)


def similarity(first: bytes, second: bytes) -> float:
    """Part of the pixels that are the same to the eye; 0 when the sizes differ."""
    one, two = _pixels(first), _pixels(second)
    if one.shape != two.shape:
        return 0.0
    same = (np.abs(one - two) <= SHADE).all(axis=2)
    return float(same.mean())


async def _replay_step(trace: Trace, entry: LogEntry, performer: Performer) -> StepOutcome:
    names = tuple(str(each.action.get("action")) for each in entry.actions)
    outcome = StepOutcome(number=entry.number, actions=names)
    if any(each.action.get("secret") for each in entry.actions):
        return _noted(outcome, "not performed: the text of a secret is not in a trace")
    if names[0] in MANAGED:
        return _noted(outcome, "not performed: numbers of windows and processes are others now")
    try:
        if names[0] == "open":
            first = entry.actions[0].action
            await performer.launch(first["argv"], cwd=first.get("cwd"))
            return _compare(trace, entry, await performer.perform(LOOK), outcome)
        call = ComputerCall.model_validate(
            {"actions": [each.action for each in entry.actions], "model_size": entry.model_size}
        )
        return _compare(trace, entry, await performer.perform(call), outcome)
    except (KeyError, ValidationError, ComputerError) as exc:
        return _noted(outcome, str(exc))


def _compare(trace: Trace, entry: LogEntry, result: ComputerResult, outcome: StepOutcome) -> StepOutcome:
    alike = None
    recorded = trace.picture(entry.after) if entry.after is not None else None
    if recorded is not None and result.screenshot is not None:
        alike = round(similarity(recorded, base64.b64decode(result.screenshot.data)), 4)
    return replace(outcome, similarity=alike, note=result.error)


def _noted(outcome: StepOutcome, note: str) -> StepOutcome:
    return replace(outcome, note=note)


def _pixels(data: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"), np.int16)
