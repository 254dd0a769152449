"""A service manager's side: a real notify socket, and a daemon that is started as systemd starts it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

__all__ = ["LIMIT_S", "Service", "starting"]

# A loaded machine takes its time.
LIMIT_S = 45.0
MAINS = {"chatd": "from chatd.cli import main; main()", "agentd": "from agentd.cli import main; main()"}


class Service:
    """One daemon as a child, and what it told."""

    def __init__(self, process: asyncio.subprocess.Process, receiver: socket.socket, log: Path) -> None:
        self.process = process
        self._receiver = receiver
        self._log = log
        self.heard: list[dict[str, str]] = []

    async def hear(self, wanted: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """The next notice that is *wanted*; the daemon must not end before."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                datagram = await self._receive()
                notice = dict(line.split("=", 1) for line in datagram.decode().splitlines())
                self.heard.append(notice)
                if wanted(notice):
                    return notice

    async def _receive(self) -> bytes:
        """The next datagram; one that a daemon sent before it ended counts."""
        arriving = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(self._receiver, 4096))
        ending = asyncio.ensure_future(self.process.wait())
        try:
            await asyncio.wait({arriving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not arriving.done():
                await asyncio.wait({arriving}, timeout=0.1)
            if not arriving.done():
                await self.process.communicate()
                msg = f"it ended with {self.process.returncode}: {self._log.read_text()}"
                raise AssertionError(msg)
            return arriving.result()
        finally:
            arriving.cancel()
            ending.cancel()

    async def hear_silence(self, seconds: float) -> None:
        """Wait until nothing has come for *seconds*."""
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(seconds):
                    await asyncio.get_running_loop().sock_recv(self._receiver, 4096)

    async def hear_field(self, name: str) -> dict[str, str]:
        """The next notice with the field *name*."""
        return await self.hear(lambda notice: name in notice)

    async def reload(self) -> str:
        """What ``systemctl reload`` does; the status that came of it."""
        self.process.send_signal(signal.SIGHUP)
        assert int((await self.hear_field("RELOADING"))["MONOTONIC_USEC"]) > 0
        return (await self.hear_field("READY"))["STATUS"]

    async def stop(self) -> tuple[int, str, str]:
        """What ``systemctl stop`` does; exit code, standard output and error."""
        self.process.terminate()
        return await self.ended()

    async def ended(self) -> tuple[int, str, str]:
        """Wait until it has ended by itself: exit code, standard output, log."""
        async with asyncio.timeout(LIMIT_S):
            out, _ = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), self._log.read_text()


@contextlib.asynccontextmanager
async def starting(
    place: Path,
    *command: str,
    watchdog_s: float = 1.5,
    prefix: tuple[str, ...] = (),
    listener: socket.socket | None = None,
    **variables: str,
) -> AsyncIterator[Service]:
    """
    Start ``chatd …`` or ``agentd …`` as a service with a notify socket; ended, one way or the other.

    Args:
        place: its home directory.
        command: the daemon and its arguments.
        watchdog_s: seconds after which silence counts as death.
        prefix: a command that becomes the daemon.
        listener: a socket that the manager opened for it.
        variables: further variables of its environment.
    """
    # Sockets have short paths.
    runtime = tempfile.TemporaryDirectory(prefix="agentd-")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "LOGNAME": "tester",
        "XDG_RUNTIME_DIR": runtime.name,
        "NOTIFY_SOCKET": f"{runtime.name}/notify",
        "WATCHDOG_USEC": str(int(watchdog_s * 1_000_000)),
        **variables,
    }
    argv = [*prefix, sys.executable, "-c", MAINS[command[0]], *command[1:]]
    descriptors: tuple[int, ...] = ()
    if listener is not None:
        # Only the process itself knows its number: as systemd's own shim does.
        descriptors = (listener.fileno(),)
        shell = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&{listener.fileno()}'
        argv = ["/bin/bash", "-c", shell, "bash", *argv]
    # A file and no pipe: whoever logs much would wait for somebody to read it.
    log = Path(runtime.name) / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver, log.open("wb") as errors:
        receiver.bind(environment["NOTIFY_SOCKET"])
        receiver.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=Path(__file__).parents[2],
            env=environment,
            pass_fds=descriptors,
        )
        try:
            yield Service(process, receiver, log)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
            runtime.cleanup()
