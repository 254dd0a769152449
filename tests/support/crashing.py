"""
A real chatd that kills itself (SIGKILL) at a named commit.

A commit is named by the transitions of its transaction (``commit_step+finish_turn``)
or, for writes that are none, by the function that writes (``claim_call``). *when* is
``before`` (everything is written, nothing committed) or ``after`` (committed, and
nobody was told). Processes are forked from one that has imported everything.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd import cli
from chatd.state import ChatState, Transition
from chatd.store import locked, machine, metadata
from chatd.store.database import Database

__all__ = ["Crash", "start_chatd"]

_names = threading.local()


@dataclass(frozen=True, slots=True)
class Crash:
    """Die at the *count*-th commit called *name*, *when*: ``before`` or ``after``."""

    name: str
    when: str
    count: int = 1


def start_chatd(
    settings: dict[str, str], crash: Crash | None
) -> tuple[BaseProcess, Callable[[], dict[str, str] | None]]:
    """
    Fork a chatd with this environment.

    Returns:
        The process, and what reads its line: it blocks until chatd is ready; None when it died first.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(settings, crash, writer), daemon=True)
    process.start()
    writer.close()

    def read_line() -> dict[str, str] | None:
        with contextlib.closing(reader):
            try:
                line: dict[str, str] = json.loads(os.read(reader.fileno(), 65536) or b"null")
            except OSError:
                return None
            return line

    return process, read_line


def _serve(settings: dict[str, str], crash: Crash | None, writer: Any) -> None:
    for name in [name for name in os.environ if name.startswith("CHATD_") or name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ.update(settings)
    log = os.open(f"{settings['CHATD_DATA_DIR']}/chatd.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(writer.fileno(), 1)
    writer.close()
    if crash is not None:
        _instrument(crash)
    cli.app(["serve", "--port", "0"])


def _instrument(crash: Crash) -> None:
    """Let every transition and every write name itself, and die at the right one."""
    left = crash.count
    lock = threading.Lock()

    def reach(name: str, when: str) -> None:
        nonlocal left
        if (name, when) != (crash.name, crash.when):
            return
        with lock:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    check = locked.check

    def named_check(transition: Transition, state: ChatState) -> frozenset[ChatState]:
        _names.found.append(str(transition))
        return check(transition, state)

    locked.check = machine.check = named_check  # type: ignore[attr-defined]
    acquire = machine.ChatTx.acquire

    def named_acquire(tx: machine.ChatTx, **owner: Any) -> None:
        # Several at once, in one transaction, are one kind of commit.
        if _names.found[-1:] != ["acquire"]:
            _names.found.append("acquire")
        acquire(tx, **owner)

    machine.ChatTx.acquire = named_acquire  # type: ignore[method-assign]
    mark_read = metadata.mark_read

    def named_mark_read(connection: sa.Connection, chat_id: UUID) -> None:
        _names.found.append("mark_read")
        mark_read(connection, chat_id)

    metadata.mark_read = named_mark_read
    write = Database.write

    async def named_write(database: Database, run: Any, *args: Any, **kwargs: Any) -> Any:
        name = ""

        def named(connection: sa.Connection, *args: Any, **kwargs: Any) -> Any:
            nonlocal name
            _names.found = []
            result = run(connection, *args, **kwargs)
            name = "+".join(_names.found) or run.__name__
            reach(name, "before")
            return result

        result = await write(database, named, *args, **kwargs)
        reach(name, "after")
        return result

    Database.write = named_write  # type: ignore[method-assign]
