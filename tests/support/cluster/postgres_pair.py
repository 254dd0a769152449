"""A PostgreSQL that survives being killed, with a synchronous standby that can take its place."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from tests.postgres import _program as program

__all__ = ["PostgresNode", "PostgresPair", "free_port"]

OPTIONS = (
    *("listen_addresses=127.0.0.1", "max_connections=200", "wal_level=replica", "max_wal_senders=4"),
    *("hot_standby=on", "shared_buffers=64MB", "max_wal_size=256MB", "restart_after_crash=on"),
)
START_S = 60


def free_port() -> int:
    """A TCP port that nobody listens at."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class PostgresNode:
    """One server; *data* is its directory."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data, self.port = folder, data, free_port()
        self.user = pwd.getpwnam("postgres").pw_name if os.geteuid() == 0 else None
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str) -> None:
        """One of PostgreSQL's programs."""
        done = subprocess.run(
            (program(command[0]), *command[1:]),
            user=self.user,
            cwd=self.folder,
            check=False,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start, and do not wait."""
        options = [item for option in OPTIONS for item in ("-c", option)]
        command = (program("postgres"), "-D", str(self.data), "-k", str(self.folder), "-p", str(self.port))
        with (self.folder / f"{self.data.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                ("setpriv", "--pdeathsig", "QUIT", *command, *options),
                user=self.user,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def url(self, name: str, port: int | None = None) -> str:
        """The URL of a database, at our port or a proxy's."""
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{name}"

    def execute(self, statement: str, name: str = "postgres") -> None:
        """Run a statement."""
        with psycopg.connect(self.url(name), autocommit=True, connect_timeout=5) as connection:
            connection.execute(statement.encode())

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    async def ready(self) -> None:
        """Wait until it answers; it is started again when it ended meanwhile (a full disk ends it)."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                await asyncio.to_thread(self.execute, "SELECT 1")
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, f"PostgreSQL did not answer within {START_S} s"
                if not self.is_alive:
                    self.start()
                await asyncio.sleep(0.2)
            else:
                return

    def kill(self) -> None:
        """SIGKILL to the postmaster; what it started ends by itself."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def signal_all(self, number: int) -> None:
        """A signal to the postmaster and all its processes."""
        assert self.process is not None
        children = subprocess.run(
            ("pgrep", "-P", str(self.process.pid)), capture_output=True, text=True, check=False
        )
        for pid in [self.process.pid, *map(int, children.stdout.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """The end of it."""
        if self.process is not None and self.is_alive:
            self.signal_all(signal.SIGCONT)
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(START_S)


class PostgresPair:
    """``primary``, and after ``add_standby`` a ``standby`` that has what was acknowledged."""

    def __init__(self, *, disk_mb: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pgc-", dir="/tmp"))
        self.folder.chmod(0o755)
        self._disk_mb = disk_mb
        self.primary = PostgresNode(self.folder, self._disk("first"))
        self.standby: PostgresNode | None = None

    def _disk(self, name: str) -> Path:
        where = self.folder / f"disk-{name}"
        where.mkdir()
        if self._disk_mb:
            subprocess.run(
                ("mount", "-t", "tmpfs", "-o", f"size={self._disk_mb}m", "tmpfs", str(where)), check=True
            )
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
            shutil.chown(where, "postgres")
        return where / name

    async def start(self) -> None:
        """Make and start the primary."""
        node = self.primary
        await asyncio.to_thread(
            node.run,
            "initdb",
            "-D",
            str(node.data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
        )
        node.start()
        await node.ready()

    async def add_standby(self) -> None:
        """Copy the primary, follow it, and from now on let commits wait for the copy."""
        source = self.primary
        node = self.standby = PostgresNode(self.folder, self._disk("second"))
        backup = ("-h", "127.0.0.1", "-p", str(source.port), "-U", "postgres", "-D", str(node.data))
        await asyncio.to_thread(node.run, "pg_basebackup", *backup, "-R", "-X", "stream", "-c", "fast")
        node.start()
        await node.ready()
        await asyncio.to_thread(source.execute, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        await asyncio.to_thread(source.execute, "SELECT pg_reload_conf()")

    async def promote(self) -> None:
        """The primary is gone for good; the standby leads, alone."""
        self.primary.kill()
        assert self.standby is not None
        node = self.primary = self.standby
        self.standby = None
        await asyncio.to_thread(node.execute, "ALTER SYSTEM SET synchronous_standby_names = ''")
        await asyncio.to_thread(node.execute, "SELECT pg_reload_conf()")
        await asyncio.to_thread(node.execute, "SELECT pg_promote()")

    def delay_commits(self, seconds: float) -> None:
        """Let every commit of the primary wait for so long (0.1 at most) before it is synced."""
        for name, value in (("commit_delay", round(seconds * 1e6)), ("commit_siblings", 0)):
            self.primary.execute(f"ALTER SYSTEM SET {name} = {value}")
        self.primary.execute("SELECT pg_reload_conf()")

    def fill_disk(self) -> None:
        """Leave the primary no room."""
        with contextlib.suppress(OSError), (self.primary.data.parent / "ballast").open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
                file.flush()

    def free_disk(self) -> None:
        """And give it back."""
        (self.primary.data.parent / "ballast").unlink(missing_ok=True)

    async def close(self) -> None:
        """Stop and remove everything."""
        for node in (self.primary, self.standby):
            if node is not None:
                await asyncio.to_thread(node.stop)
        if self._disk_mb:
            for name in ("first", "second"):
                subprocess.run(  # noqa: ASYNC221 -- at the end
                    ("umount", "-l", str(self.folder / f"disk-{name}")), check=False, capture_output=True
                )
        shutil.rmtree(self.folder, ignore_errors=True)
