"""Several control planes on one PostgreSQL, in one process."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.integration.chatd.http.site import Site, serving
from tests.postgres import PostgresServer

KEY = Fernet.generate_key().decode()
# Starts the next control plane on the same database.
NewReplica = Callable[..., Awaitable[Site]]


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CHATD_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
def database_url(postgres: PostgresServer, postgres_template: str) -> object:
    """An empty, migrated PostgreSQL database."""
    url = postgres.lend(postgres_template)
    yield url
    postgres.give_back(url, postgres_template)


@pytest.fixture
async def new_replica(tmp_path: Path, database_url: str) -> AsyncIterator[NewReplica]:
    """Makes control planes; all are stopped at the end."""
    async with AsyncExitStack() as stack:
        made: list[Site] = []

        async def make(**settings: object) -> Site:
            where = tmp_path / f"replica-{len(made)}"
            defaults = {
                "secret_keys": (KEY,),
                "auto_titles": False,
                "database": database_url,
                "replica_interval_s": 0.2,
                "replica_timeout_s": 2.0,
            }
            site = await stack.enter_async_context(serving(where, **(defaults | settings)))
            made.append(site)
            for one in made:
                # They see each other without waiting for the next beat.
                together = one.plane.services.together
                assert together is not None
                await together.registry.beat()
            return site

        yield make
