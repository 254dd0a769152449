"""
Programs launched in a session: tracked, listed, and ended with it.

Each is the leader of its own process group. What escapes its group is found by the session's mark.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from computer.errors import InvalidAction, StartFailed
from computer.session.launch import OutputTail
from computer.session.process import GRACE_S, Child
from computer.wire import AppInfo

__all__ = ["MAX_APPS", "Apps"]

# Programs that run at the same time.
MAX_APPS = 200
# Seconds before a desktop's death is noticed in which its programs may have ended of it.
LOST_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _App:
    argv: tuple[str, ...]
    child: Child
    tail: OutputTail | None


class Apps:
    """The programs of one session."""

    def __init__(self) -> None:
        self._apps: dict[int, _App] = {}

    def start(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str | None = None,
        tail: OutputTail | None = None,
    ) -> Child:
        """
        Start a program; *tail* keeps what it says, and is closed here.

        Raises:
            InvalidAction: it is not installed, can't be executed, or too many run.
        """
        try:
            self._check_room()
            child = Child(argv, environment=environment, cwd=cwd, log=tail.writer if tail else None)
        except StartFailed as exc:
            _close(tail)
            raise InvalidAction(str(exc)) from exc
        except BaseException:
            _close(tail)
            raise
        if tail is not None:
            tail.started()
        self._apps[child.pid] = _App(argv=tuple(argv), child=child, tail=tail)
        return child

    def list(self) -> tuple[AppInfo, ...]:
        """Those that run, oldest first."""
        return tuple(AppInfo(pid=pid, argv=app.argv) for pid, app in self._apps.items() if app.child.is_alive)

    def lost(self, within_s: float = LOST_S) -> tuple[str, ...]:
        """Programs that run or ended just now, each once: a server's die before its death is noticed."""
        since = time.monotonic() - within_s
        lost = (app for app in self._apps.values() if (app.child.ended_at or since) >= since)
        return tuple(dict.fromkeys(app.argv[0].rpartition("/")[2] for app in lost))

    async def stop(self, pid: int) -> None:
        """
        End one and its process group.

        Raises:
            InvalidAction: none of ours has this number.
        """
        app = self._apps.get(pid)
        if app is None or not app.child.is_alive:
            running = ", ".join(str(other.pid) for other in self.list()) or "none"
            msg = f"no program {pid} was opened here and still runs; running: {running}"
            raise InvalidAction(msg)
        await app.child.stop()
        self._forget_ended()

    async def stop_all(self, grace_s: float = GRACE_S) -> None:
        """End all, by force after *grace_s*; harmless when repeated."""
        apps, self._apps = self._apps, {}
        await asyncio.gather(*(app.child.stop(grace_s) for app in apps.values()))
        for app in apps.values():
            _close(app.tail)

    def _check_room(self) -> None:
        self._forget_ended()
        if len(self.list()) >= MAX_APPS:
            msg = f"{MAX_APPS} programs run in this session already"
            raise InvalidAction(msg)

    def _forget_ended(self) -> None:
        for pid, app in tuple(self._apps.items()):
            # What a launcher left running may still write: then its pipe must stay open.
            if not app.child.is_alive and (app.tail is None or not app.tail.is_open):
                del self._apps[pid]


def _close(tail: OutputTail | None) -> None:
    if tail is not None:
        tail.close()
