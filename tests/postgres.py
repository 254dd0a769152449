"""A PostgreSQL of the tests' own: on a Unix socket, fast, forgetful; each database copies a template."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

__all__ = ["PostgresServer", "postgres_server"]

# Nothing of it needs to survive: no fsync.
OPTIONS = (
    *("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off"),
    *("autovacuum=off", "max_connections=200", "wal_level=minimal", "max_wal_senders=0"),
)
START_S = 60
# Every row of every table but the schema's version, and every sequence from its start.
EMPTY = """
    DO $$ DECLARE name text; BEGIN
        SET session_replication_role = replica;
        FOR name IN SELECT tablename FROM pg_tables
            WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
        FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'
        LOOP PERFORM setval(format('public.%I', name)::regclass, 1, false); END LOOP;
    END $$
"""


def _program(name: str) -> str:
    """PostgreSQL's own programs are not on Debian's PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    assert path, f"no PostgreSQL here ({name}): script/bootstrap --dev installs it"
    return path


class PostgresServer:
    """A running cluster; *folder* holds its data and its socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._free: dict[str, list[str]] = {}

    def url(self, name: str) -> str:
        """The URL of the database called *name*."""
        return f"postgresql://postgres@/{name}?host={self._folder}"

    def create(self, template: str = "template1") -> str:
        """The URL of a new database, a copy of *template* (which nobody may be connected to)."""
        self._made += 1
        name = f"t{self._made}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected."""
        self.execute(f"DROP DATABASE {psycopg.conninfo.conninfo_to_dict(url)['dbname']} WITH (FORCE)")

    def lend(self, template: str) -> str:
        """The URL of an empty copy of *template*: one that was given back, or a new one."""
        free = self._free.setdefault(template, [])
        return free.pop() if free else self.create(template)

    def give_back(self, url: str, template: str) -> None:
        """Empty a database for the next one; the rows of a test are few, a copy is a thousand files."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> pg_backend_pid()",
                (name,),
            )
            connection.execute(EMPTY)
        self._free[template].append(url)

    def execute(self, statement: str) -> None:
        """Run a statement as the superuser, outside any transaction."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


def _wait_ready(server: PostgresServer, process: subprocess.Popen[bytes]) -> None:
    """Until it answers; how it ended if it did."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            assert process.poll() is None, "PostgreSQL ended instead of starting"
            assert time.monotonic() < deadline, f"PostgreSQL did not answer within {START_S} s"
            time.sleep(0.02)
        else:
            return


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A fresh cluster, stopped and removed at the end; it refuses root, so root runs it as somebody else."""
    user = pwd.getpwnam("postgres").pw_name if os.geteuid() == 0 else None
    # In /tmp by itself: a socket's path must be short, and the other user must get there.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"

    initdb = (_program("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
    options = [item for option in OPTIONS for item in ("-c", option)]
    # Told to quit at once should we be killed: nobody else would stop it.
    start = (
        "setpriv",
        "--pdeathsig",
        "QUIT",
        _program("postgres"),
        "-D",
        str(data),
        "-k",
        str(folder),
        *options,
    )
    try:
        subprocess.run(
            [*initdb, "--locale=C"],
            user=user,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=START_S,
        )
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(start, user=user, cwd=folder, stdout=log, stderr=log) as process,
        ):
            try:
                server = PostgresServer(folder)
                _wait_ready(server, process)
                yield server
            finally:
                process.send_signal(signal.SIGQUIT)
                process.wait(START_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
