"""
The clipboard of an X server.

A clipboard lives in the program that owns it, so this one has a thread and a connection of
its own that serve whoever asks, whatever the thread of the display is doing. Made when first
needed. What the person had copied is kept, with all its forms, while text is pasted, and
served again afterwards.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from Xlib import Xatom

from computer.display.x11.connection import connect, disconnect, shut_down, translate_errors
from computer.display.x11.selection import (
    TEXT_TARGETS,
    Atom,
    Content,
    Data,
    Delivery,
    Selections,
    text_content,
)
from computer.errors import ComputerError, DisplayClosed, DisplayLost, InvalidAction
from computer.wire import MAX_CLIPBOARD_CHARACTERS

__all__ = ["UNREADABLE", "Clipboard"]

T = TypeVar("T")

# Seconds in which another program must hand over what it owns, per selection.
READ_LIMIT_S = 1.0
# Seconds after which a program that was handed text, and does not say so, has read it.
UNREAD_S = 0.05
# How much longer than the longest pause between two questions quiet must last, and seconds at most.
GAP_FACTOR = 3
MAX_QUIET_S = 0.5
# Seconds in which the thread must do anything else.
JOB_LIMIT_S = 8.0
UNREADABLE = "what was on the clipboard could not be read and is lost"
PRIMARY, CLIPBOARD = "PRIMARY", "CLIPBOARD"


class Clipboard:
    """
    Reads and writes the clipboard; used from one thread, served by another.

    Raises:
        DisplayLost: the server can't be reached.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._connection = connect(name, cookie)
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake_read, self._wake_write = os.pipe()
        self._is_closing = False
        self._saved: dict[Atom, Content | None] = {}
        try:
            with translate_errors():
                self._selections = Selections(self._connection)
        except BaseException:
            disconnect(self._connection)
            os.close(self._wake_read)
            os.close(self._wake_write)
            raise
        self._names = {name: self._selections.atom(name) for name in (PRIMARY, CLIPBOARD)}
        self._thread = threading.Thread(target=self._run, name="clipboard", daemon=True)
        self._thread.start()

    def read_text(self) -> str:
        """
        Text on the clipboard; "" when nobody owns it.

        Raises:
            InvalidAction: its owner has no text, does not answer, or has too much.
        """
        return self._do(self._read_text)

    def write_text(self, text: str) -> None:
        """Own the clipboard with *text*."""
        self._do(lambda: self._own(CLIPBOARD, text))

    def adopt_text(self, max_bytes: int) -> int:
        """
        Own a long text that another program has on the clipboard, in every form that it has.

        Xvnc reads for its viewers, but nothing that comes in pieces; from us it gets a text whole.
        Returns the bytes of a text that is longer than *max_bytes* and so stays where it is; else 0.
        """
        return self._do(lambda: self._adopt_text(max_bytes))

    def client_of(self, window: int) -> int:
        """Which client made *window*."""
        return self._selections.client_of(window)

    def primary_client(self) -> int:
        """Which client owns the primary selection; 0 is nobody, or the server."""
        return self._do(lambda: self._selections.client_of(self._selections.owner(self._names[PRIMARY])))

    def save(self, *, with_primary: bool) -> bool:
        """Keep what is on the clipboard until ``restore``; False when its owner would not tell."""
        return self._do(lambda: self._save(with_primary=with_primary))

    def offer(self, text: str) -> None:
        """Own every saved selection with *text*, and count from here who takes it."""
        self._do(lambda: self._offer(text))

    def wait_taken(self, clients: frozenset[int], *, quiet_s: float, limit_s: float) -> bool:
        """Wait until one of *clients* has read the offered text, and asked nothing for *quiet_s*."""
        return self._do(lambda: self._wait_taken(clients, quiet_s, limit_s))

    def restore(self) -> None:
        """Serve again what was saved, unless somebody else has copied meanwhile."""
        self._do(self._restore)

    def close(self) -> None:
        """End the thread and disconnect: what we served is gone. Harmless when repeated."""
        if self._is_closing:
            return
        self._is_closing = True
        self._wake()
        self._thread.join(JOB_LIMIT_S)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def abort(self) -> None:
        """Break the connection, from any thread."""
        shut_down(self._connection)

    def _read_text(self) -> str:
        selection = self._names[CLIPBOARD]
        own = self._selections.owned(selection)
        if own is None and not self._selections.owner(selection):
            return ""
        targets = [self._selections.atom(name) for name in TEXT_TARGETS]
        for target in targets:
            data = self._selections.read(selection, target, READ_LIMIT_S) if own is None else own.get(target)
            if data is not None and data.format == 8:
                charset = "latin-1" if data.type == Xatom.STRING else "utf-8"
                return _check_length(bytes(data.value).decode(charset, errors="replace"))
        msg = "the clipboard holds no text, or the program that owns it does not answer"
        raise InvalidAction(msg)

    def _adopt_text(self, max_bytes: int) -> int:
        selections, selection = self._selections, self._names[CLIPBOARD]
        target = selections.atom(TEXT_TARGETS[0])
        owned = selections.owned(selection)
        if owned is not None:
            return _excess(owned.get(target), max_bytes)
        if not selections.client_of(selections.owner(selection)):
            return 0
        text = selections.read(selection, target, READ_LIMIT_S)
        if (excess := _excess(text, max_bytes)) or not selections.came_in_pieces:
            return excess
        content = selections.read_all(selection, READ_LIMIT_S)
        if content is not None:
            selections.own(selection, content)
        return 0

    def _own(self, name: str, text: str) -> None:
        content = text_content(self._selections, text)
        if not self._selections.own(self._names[name], content):
            msg = "another program took the clipboard at the same moment"
            raise InvalidAction(msg)

    def _save(self, *, with_primary: bool) -> bool:
        is_complete = True
        for name in (CLIPBOARD, PRIMARY) if with_primary else (CLIPBOARD,):
            selection = self._names[name]
            content = self._selections.owned(selection)
            if content is None and self._selections.owner(selection):
                content = self._selections.read_all(selection, READ_LIMIT_S)
                is_complete = is_complete and content is not None
            self._saved[selection] = content
        return is_complete

    def _offer(self, text: str) -> None:
        for name, selection in self._names.items():
            if selection in self._saved:
                self._own(name, text)
        self._selections.forget_transfers()
        self._selections.touched = time.monotonic()
        self._selections.longest_gap_s = 0.0

    def _wait_taken(self, clients: frozenset[int], quiet_s: float, limit_s: float) -> bool:
        selections = self._selections
        deadline = time.monotonic() + limit_s
        # Long text may take twice the time as long as it is on its way.
        end = deadline + limit_s
        while (now := time.monotonic()) < (end if selections.is_transferring else deadline):
            selections.assume_read(UNREAD_S)
            taken = any(self._counts(delivery, clients) for delivery in selections.deliveries)
            # On a busy machine questions of one paste come further apart.
            gap_s = min(GAP_FACTOR * selections.longest_gap_s, MAX_QUIET_S)
            quiet_at = selections.touched + max(quiet_s, gap_s)
            if taken and now >= quiet_at:
                return True
            soon = quiet_at if taken else now + UNREAD_S / 10
            selections.pump(lambda _: True, min(soon, end))
        return False

    def _counts(self, delivery: Delivery, clients: frozenset[int]) -> bool:
        return delivery.client in clients and delivery.selection in self._saved

    def _restore(self) -> None:
        for selection, content in self._saved.items():
            if self._selections.owned(selection) is None:
                continue
            if content:
                self._selections.own(selection, content)
            else:
                self._selections.disown(selection)
        self._saved.clear()

    def _do(self, job: Callable[[], T]) -> T:
        if not self._thread.is_alive():
            msg = "the clipboard's connection is gone"
            raise DisplayClosed(msg) if self._is_closing else DisplayLost(msg)
        future: Future[T] = Future()
        self._jobs.put((job, future))
        self._wake()
        try:
            return future.result(JOB_LIMIT_S)
        except FutureTimeoutError as exc:
            self.abort()
            msg = f"the clipboard did not answer within {JOB_LIMIT_S:g} s"
            raise DisplayLost(msg) from exc

    def _wake(self) -> None:
        # The pipe is closed together with the thread.
        if self._thread.is_alive():
            os.write(self._wake_write, b"x")

    def _run(self) -> None:
        try:
            with translate_errors():
                while not self._is_closing:
                    self._selections.pump(lambda _: False, time.monotonic() + 60.0, wake=self._wake_read)
                    self._run_jobs()
        except ComputerError as exc:
            self._fail_jobs(exc)
        finally:
            self._fail_jobs(DisplayClosed("the clipboard was closed"))
            disconnect(self._connection)

    def _run_jobs(self) -> None:
        while not self._jobs.empty():
            os.read(self._wake_read, 1)
            job, future = self._jobs.get()
            try:
                with translate_errors():
                    future.set_result(job())
            except DisplayLost as exc:
                future.set_exception(exc)
                raise
            except ComputerError as exc:
                future.set_exception(exc)

    def _fail_jobs(self, error: ComputerError) -> None:
        while not self._jobs.empty():
            self._jobs.get()[1].set_exception(error)


def _excess(text: Data | None, max_bytes: int) -> int:
    """How long *text* is, if it is too long."""
    length = len(text.value) if text is not None else 0
    return length if length > max_bytes else 0


def _check_length(text: str) -> str:
    if len(text) > MAX_CLIPBOARD_CHARACTERS:
        msg = f"the clipboard holds {len(text)} characters, more than {MAX_CLIPBOARD_CHARACTERS}"
        raise InvalidAction(msg)
    return text
