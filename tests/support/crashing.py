"""
A real chatd that kills itself (SIGKILL) at a named commit.

A commit is named by the transitions of its transaction (``commit_step+finish_turn``)
or, for writes that are none, by the function that writes (``claim_call``). Three are told
apart that are no transitions of their own: ``spawn``, ``boundary`` (a summary takes the
place of what was said) and ``set_aside``. *when* is ``before`` (everything is written,
nothing committed) or ``after`` (committed, and nobody was told). Every name that a process
comes to is in a file, so that a list of them can be held against what there is. Processes
are forked from one that has imported everything.
"""

import contextlib
import inspect
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from chatd import cli
from chatd.state import ChatState, Transition
from chatd.store import locked, machine, metadata, store
from chatd.store.database import Database

__all__ = ["DEADLINE", "Crash", "commits_seen", "start_chatd"]

# In the data directory: names of commits, a line each.
SEEN_NAME = "commits"
# Seconds that a client's own tools have here; a variable of ours, since it is no setting of chatd's.
DEADLINE = "TEST_REQUIRES_ACTION_S"
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


def commits_seen(data_dir: Path) -> set[str]:
    """Names of the commits that processes with this data directory came to."""
    return set((data_dir / SEEN_NAME).read_text().split())


def _serve(settings: dict[str, str], crash: Crash | None, writer: Any) -> None:
    for name in [name for name in os.environ if name.startswith("CHATD_") or name.endswith("_API_KEY")]:
        del os.environ[name]
    os.environ.update(settings)
    log = os.open(f"{settings['CHATD_DATA_DIR']}/chatd.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(writer.fileno(), 1)
    writer.close()
    machine.REQUIRES_ACTION_S = float(settings.get(DEADLINE, machine.REQUIRES_ACTION_S))  # type: ignore[attr-defined]
    _instrument(crash, Path(settings["CHATD_DATA_DIR"]) / SEEN_NAME)
    cli.app(["serve", "--port", "0"])


def _instrument(crash: Crash | None, seen: Path) -> None:
    """Let every transition and every write name itself, write the names down, and die at the right one."""
    reach = _reacher(crash, seen)
    check = locked.check

    def named_check(transition: Transition, state: ChatState) -> frozenset[ChatState]:
        _names.found.append(str(transition))
        return check(transition, state)

    locked.check = machine.check = named_check  # type: ignore[attr-defined]
    machine.ChatTx.acquire = _named("acquire", machine.ChatTx.acquire)  # type: ignore[method-assign]
    machine.ChatTx.set_aside = _named("set_aside", machine.ChatTx.set_aside)  # type: ignore[method-assign]
    metadata.mark_read = _named("mark_read", metadata.mark_read)
    store._hold_parent = _named("spawn", store._hold_parent)
    commit_step = machine.ChatTx.commit_step

    def named_commit_step(tx: machine.ChatTx, messages: Any) -> Any:
        rows = commit_step(tx, messages)
        if any(message.compressed for message in messages):
            _names.found.append("boundary")
        return rows

    machine.ChatTx.commit_step = named_commit_step  # type: ignore[method-assign]
    write = Database.write

    async def named_write(database: Database, run: Any, *args: Any, **kwargs: Any) -> Any:
        name = ""

        def named(connection: sa.Connection, *args: Any, **kwargs: Any) -> Any:
            nonlocal name
            _names.found = []
            result = run(connection, *args, **kwargs)
            name = "+".join(_names.found) or _name_of(run)
            reach(name, "before")
            return result

        result = await write(database, named, *args, **kwargs)
        reach(name, "after")
        return result

    Database.write = named_write  # type: ignore[method-assign]


def _reacher(crash: Crash | None, seen: Path) -> Callable[[str, str], None]:
    """What is told of every commit before and after it."""
    left = crash.count if crash is not None else 0
    written: set[str] = set()
    lock = threading.Lock()

    def reach(name: str, when: str) -> None:
        nonlocal left
        with lock:
            if name not in written:
                written.add(name)
                with seen.open("a") as stream:
                    stream.write(f"{name}\n")
            if crash is not None and (name, when) == (crash.name, crash.when):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _named(name: str, run: Callable[..., Any]) -> Any:
    """*run*, which tells its name; several at once, in one transaction, are one kind of commit."""

    @wraps(run)
    def told(*args: Any, **kwargs: Any) -> Any:
        if _names.found[-1:] != [name]:
            _names.found.append(name)
        return run(*args, **kwargs)

    return told


def _name_of(run: Any) -> str:
    """The function that writes; of one that the store wraps (``change``), the one inside."""
    inner = inspect.getclosurevars(run).nonlocals.get("run") if run.__name__ == "work" else None
    return str((inner or run).__name__)
