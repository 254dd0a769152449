"""What every test may count on: nothing of the desktop it was started in; servers and databases to share."""

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from chatd.store.database import sqlite_url
from tests.databases import KINDS, NewDatabase, migrate
from tests.postgres import PostgresServer, postgres_server
from tests.threats import named_tests

MEMORY = Path("/dev/shm")
# Much more than any test's database; a container may give it 64 MB only, and others use it.
MEMORY_FREE_BYTES = 48 * 1024 * 1024


def pytest_configure() -> None:
    """Forget somebody else's desktop, before any test module is imported; keep what Python compiles."""
    for name in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    # Tests start hundreds of Python processes, each of a thousand modules.
    sys.dont_write_bytecode = False
    log_plainly()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that the threat model names."""
    for item in items:
        if getattr(item, "originalname", None) in named_tests():
            item.add_marker(pytest.mark.attack)


def log_plainly() -> None:
    """Log as structlog does by itself, but for its tracebacks: those with locals take seconds."""
    structlog.reset_defaults()
    *processors, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, renderer])


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Undo what a command that ran in this process set: its stderr is closed with the test."""
    yield
    log_plainly()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of this run's own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that nobody writes to."""
    path = tmp_path_factory.mktemp("template") / "chatd.sqlite3"
    migrate(sqlite_url(path))
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> str:
    """The name of a migrated PostgreSQL database that nobody connects to."""
    postgres.execute("CREATE DATABASE template_chatd")
    migrate(postgres.url("template_chatd"))
    return "template_chatd"


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A directory whose files are in memory where there is room: a database that syncs waits for no disk."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < MEMORY_FREE_BYTES:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="chatd-") as directory:
        yield Path(directory)


@pytest.fixture(params=KINDS)
def new_database(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[NewDatabase]:
    """Makes migrated databases of one kind; they are gone after the test."""
    made: list[str] = []
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")

        def make() -> str:
            path = memory_path / ("chatd.sqlite3" if not made else f"{uuid.uuid4()}.sqlite3")
            shutil.copy(template, path)
            made.append(sqlite_url(path))
            return made[-1]

        yield make
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name: str = request.getfixturevalue("postgres_template")

    def copy() -> str:
        made.append(server.lend(name))
        return made[-1]

    yield copy
    for url in made:
        server.give_back(url, name)


@pytest.fixture
def database_url(new_database: NewDatabase) -> str:
    """The URL of an empty, migrated database."""
    return new_database()
