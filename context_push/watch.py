"""
Watches directories for changes that matter, with inotify; reading is no change.

Only directories are watched: an editor that saves by renaming replaces the file, and
a watch on the file would go with the old one. What is missing is watched at its
deepest ancestor that exists.
"""

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from asyncinotify import Event, Inotify, Mask, Watch

from context_push.discover import Interest

__all__ = ["EXHAUSTED_TEXT", "Watcher", "directories_to_watch", "quiet"]

MASK = (
    Mask.CREATE | Mask.DELETE | Mask.MODIFY | Mask.CLOSE_WRITE | Mask.ATTRIB | Mask.MOVE
    | Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.ONLYDIR
)  # fmt: skip
GONE = Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED | Mask.UNMOUNT
# The kernel's limits: watches of this user, memory, instances of this user, files of this process.
EXHAUSTED = frozenset({errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
EXHAUSTED_TEXT = (
    "changes are noticed by looking every {poll_s:g} s, because the kernel's inotify limit is reached; "
    "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances"
)

log = structlog.get_logger("context_push.watch")


def directories_to_watch(interest: Interest) -> set[str]:
    """The directories, all existing, in which anything of *interest* can change."""
    known: dict[str, str] = {}

    def existing(path: str) -> str:
        found = known.get(path)
        if found is None:
            found = path if path == "/" or Path(path).is_dir() else existing(_parent(path))
            known[path] = found
        return found

    # A listed directory is watched itself, and its parent too, where it may vanish and come back.
    parents = {_parent(path) for path in interest.named | interest.listed}
    return {existing(path) for path in parents | interest.listed}


@dataclass(slots=True)
class _Watched:
    """One watched inode and the paths that lead to it; *is_gone* when it moved or was deleted."""

    watch: Watch
    inode: tuple[int, int]
    paths: set[str] = field(default_factory=set)
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class _View:
    """An interest and every directory above it: any of those may vanish or appear."""

    interest: Interest
    ancestors: frozenset[str]


class Watcher:
    """Watches what the last pass was interested in."""

    def __init__(
        self, on_change: Callable[[], None], *, open_inotify: Callable[[], Inotify] = Inotify
    ) -> None:
        self._on_change = on_change
        self._open = open_inotify
        self._inotify: Inotify | None = None
        self._watched: dict[int, _Watched] = {}
        self._view = _View(Interest(), frozenset())
        self._lock = threading.Lock()
        self._epoch = 0
        self.is_exhausted = False

    @property
    def is_running(self) -> bool:
        """Whether the kernel tells of changes at all."""
        return self._inotify is not None

    def update(self, interest: Interest, epoch: int) -> bool:
        """
        Watch what *interest* needs, and nothing else; blocking, in a thread beside ``run``.

        Returns:
            Whether more is watched than before: it may have changed before it was. An
            *epoch* older than the last one changes nothing.
        """
        with self._lock:
            if epoch < self._epoch or self._inotify is None:
                return False
            self._epoch = epoch
            before = self._view.interest
            self._view = _View(interest, _ancestors(interest))
            added = self._rewatch(self._inotify, _inodes(directories_to_watch(interest)))
            return added or not (interest.named <= before.named and interest.listed <= before.listed)

    def _rewatch(self, inotify: Inotify, wanted: dict[tuple[int, int], set[str]]) -> bool:
        self.is_exhausted = False
        current: dict[tuple[int, int], _Watched] = {}
        for watched in list(self._watched.values()):
            if watched.is_gone or watched.inode not in wanted:
                self._remove(inotify, watched)
            else:
                watched.paths = wanted[watched.inode]
                current[watched.inode] = watched
        fresh = [(inode, paths) for inode, paths in wanted.items() if inode not in current]
        return sum(self._add(inotify, inode, paths) for inode, paths in fresh) > 0

    def _add(self, inotify: Inotify, inode: tuple[int, int], paths: set[str]) -> bool:
        if self.is_exhausted:
            return False
        try:
            watch = inotify.add_watch(min(paths), MASK)
        except OSError as exc:
            self.is_exhausted = exc.errno in EXHAUSTED
            # Unreadable or gone meanwhile: the slow look finds what changes there.
            log.info("can't watch", action="watch_failed", path=min(paths), reason=exc.strerror)
            return False
        self._watched[watch.wd] = _Watched(watch, inode, paths)
        return True

    def _remove(self, inotify: Inotify, watched: _Watched) -> None:
        self._watched.pop(watched.watch.wd, None)
        # It may have gone with its directory.
        with contextlib.suppress(OSError):
            inotify.rm_watch(watched.watch)

    async def run(self) -> None:
        """
        Tell of changes until cancelled; ends at once when the kernel gives no instance.

        Cancellation: every watch is dropped.
        """
        try:
            inotify = self._open()
        except OSError as exc:
            log.warning("no inotify", action="watch_failed", reason=exc.strerror)
            return
        self._inotify = inotify
        try:
            async for event in inotify:
                if self._matters(event):
                    self._on_change()
        finally:
            self._inotify = None
            inotify.close()
            self._watched.clear()

    def _matters(self, event: Event) -> bool:
        if Mask.Q_OVERFLOW in event.mask:
            return True
        watch = event.watch
        watched = self._watched.get(watch.wd) if watch is not None else None
        if watched is None or watched.watch is not watch:
            # Removed by us, or about a directory of the past.
            return False
        if event.mask & GONE:
            watched.is_gone = True
            return True
        view = self._view
        if event.name is None:
            return not watched.paths.isdisjoint(view.interest.named)
        name = str(event.name)
        return any(_is_of_interest(view, directory, name) for directory in watched.paths)


def _is_of_interest(view: _View, directory: str, name: str) -> bool:
    path = f"{directory.rstrip('/')}/{name}"
    return directory in view.interest.listed or path in view.interest.named or path in view.ancestors


def _inodes(paths: set[str]) -> dict[tuple[int, int], set[str]]:
    """The paths by what they lead to; one directory can't be watched twice."""
    inodes: dict[tuple[int, int], set[str]] = {}
    for path in paths:
        # One that is gone since it was listed is watched at its ancestor after the next pass.
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            inodes.setdefault((status.st_dev, status.st_ino), set()).add(path)
    return inodes


def _ancestors(interest: Interest) -> frozenset[str]:
    found: set[str] = set(interest.listed)
    for path in interest.named | interest.listed:
        parent = _parent(path)
        while parent not in found and parent != "/":
            found.add(parent)
            parent = _parent(parent)
    return frozenset(found)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


async def quiet(last_event: Callable[[], float], *, quiet_s: float, limit_s: float) -> None:
    """Wait until nothing happened for *quiet_s*, at most *limit_s*."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while True:
        rest = min(last_event() + quiet_s, deadline) - loop.time()
        if rest <= 0:
            return
        await asyncio.sleep(rest)
