"""
A small process that cleans up after us when we are killed.

It waits for the end of a pipe that only we hold. The kernel closes that whatever ends us; then the
guard ends everything that carries the session's mark, wherever it has gone, and removes what was
named to it. The parent-death signal alone reaches only our own children, and not theirs.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from computer.session.process import Child

__all__ = ["Guard"]

# Finds the mark as a whole entry of an environment; each entry ends with NUL. After TERM it waits
# up to two seconds. The lock of an X server is removed when the process it names is gone, or dead and
# not yet collected.
_SCRIPT = r"""
marked() { grep -lzxsF -- "$mark" /proc/[0-9]*/environ | cut -d/ -f3; }
mark=$1 directory=$2 lock= socket=
while read -r line; do
  lock=${line% *} socket=${line#* }
done
for signal in TERM KILL; do
  pids=$(marked)
  [ -n "$pids" ] || break
  kill -$signal $pids
  tries=0
  while [ $tries -lt 20 ] && [ -n "$(marked)" ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
done 2>/dev/null
if [ -n "$lock" ] && [ -s "$lock" ]; then
  case $(cut -d' ' -f3 "/proc/$(tr -d ' \n' <"$lock")/stat" 2>/dev/null) in
    '' | Z) rm -f "$lock" "$socket" ;;
  esac
fi
rm -f "$directory/rfb.sock" "$directory/Xauthority"
"""
# What the guard's own tools need.
_VARIABLES = ("PATH", "LANG")


class Guard:
    """
    Guards one life of a desktop.

    Args:
        mark: ``NAME=value`` in the environment of everything that belongs to it.
        directory: the session's own.
        environment: where programs are found.
    """

    def __init__(self, mark: str, directory: Path, environment: Mapping[str, str]) -> None:
        self._child: Child | None = None
        self._pipe: int | None = None
        if shutil.which("grep", path=environment.get("PATH")) is None:
            return
        reader, self._pipe = os.pipe2(os.O_CLOEXEC)
        try:
            self._child = Child(
                ["sh", "-c", _SCRIPT, "agentd-guard", mark, str(directory)],
                environment={name: environment[name] for name in _VARIABLES if name in environment},
                stdin=reader,
                dies_with_us=False,
            )
        finally:
            os.close(reader)
            if self._child is None:
                self._close_pipe()

    def tell(self, lock: Path, socket: Path) -> None:
        """Name the files of the X server; they are removed when we and it are gone."""
        if self._pipe is not None:
            with suppress(BrokenPipeError):
                os.write(self._pipe, f"{lock} {socket}\n".encode())

    async def stop(self) -> None:
        """End the guard: all that it watched over is gone; harmless when repeated."""
        if self._child is not None:
            await self._child.stop()
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
