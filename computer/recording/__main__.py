"""
The recorder's own process: ``python -m computer.recording record|finish ORDER``.

Tells what happens as JSON lines on stdout. A niceness of 5 leaves the cores to the desktop.
"""

import os
import signal
import sys

from computer.errors import ComputerError
from computer.recording.orders import FinishOrder, RecordOrder, Report

__all__ = ["main"]

NICENESS = 5


def _tell(report: Report) -> None:
    sys.stdout.write(report.model_dump_json() + "\n")
    sys.stdout.flush()


def _record(order: RecordOrder) -> None:
    from computer.recording.recorder import STOP_SIGNALS, record  # noqa: PLC0415 -- once signals are blocked

    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    record(order, _tell)


def _finish(order: FinishOrder) -> None:
    from computer.recording.finish import finish_film  # noqa: PLC0415 -- the video library takes a while

    _tell(finish_film(order))


def main(verb: str, order: str) -> int:
    """Do what is ordered; returns the exit code, with a sentence on stderr when it is not 0."""
    os.nice(NICENESS)
    try:
        if verb == "record":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
            _record(RecordOrder.model_validate_json(order))
        else:
            _finish(FinishOrder.model_validate_json(order))
    except (ComputerError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
