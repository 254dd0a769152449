"""What daemon and keeper say to each other: JSON-RPC, one frame a line, on a Unix socket."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CLOSE",
    "LIST",
    "MAX_FRAME_BYTES",
    "MAX_OUTPUT_WAIT_S",
    "OUTPUT",
    "SIGNAL",
    "START",
    "ListParams",
    "OutputParams",
    "ProcessList",
    "ProcessReport",
    "SignalName",
    "SignalParams",
    "StartParams",
    "Started",
]

START = "processes/start"
OUTPUT = "processes/output"
LIST = "processes/list"
SIGNAL = "processes/signal"
CLOSE = "keeper/close"

# Bytes of one line: a command of 100 kB with its environment, escaped.
MAX_FRAME_BYTES = 4 * 1024 * 1024
# Seconds that one question for output may wait for the end; longer waits ask again.
MAX_OUTPUT_WAIT_S = 300.0

SignalName = Literal["terminate", "kill"]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StartParams(_Message):
    """Run *command* by ``sh -c``, at most once for one *key*; with *pty* it prints to a terminal."""

    key: Annotated[str, Field(min_length=1, max_length=300)]
    chat_id: str | None
    command: str
    workdir: str
    environment: dict[str, str]
    pty: bool = False


class Started(_Message):
    """The process of that key; *is_new* is false when it had been started before."""

    process_id: str
    is_new: bool


class OutputParams(_Message):
    """Ask for a report, waiting at most *wait_s* for the process's end."""

    process_id: str
    chat_id: str | None
    wait_s: Annotated[float, Field(ge=0, le=MAX_OUTPUT_WAIT_S)] = 0.0


class SignalParams(_Message):
    """Signal the whole process group."""

    process_id: str
    chat_id: str | None
    signal: SignalName


class ListParams(_Message):
    """Processes of one chat."""

    chat_id: str | None


class ProcessReport(_Message):
    """
    One process as it is.

    Attributes:
        exit_code: None while it runs; 128 + N when signal N ended it.
        output: stdout and stderr as they came, bounded.
        original_bytes: how much was printed.
        omitted_bytes: how much of it *output* leaves out.
    """

    process_id: str
    command: str
    workdir: str
    running: bool
    exit_code: int | None
    started_at: datetime
    wall_ms: int
    output: str = ""
    original_bytes: int = 0
    omitted_bytes: int = 0


class ProcessList(_Message):
    """Running ones first, then the newest."""

    processes: tuple[ProcessReport, ...]
