"""Builds the control plane's object graph and runs it; no logic of its own."""

import asyncio
import contextlib
import getpass
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa
import structlog
from aiohttp import web
from pydantic import ValidationError

from chatd.agents.directory import Directory
from chatd.datadir import DataDir
from chatd.errors import Unavailable
from chatd.provider.catalog import Catalog, ModelSource, rehearsal_sources, sources_from_settings
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.routes import auth, chats, desktop, errors, misc, open_streams, streams
from chatd.routes.context import SERVICES, SETTINGS
from chatd.settings import ChatdSettings
from chatd.store import accounts, catalog_rows
from chatd.store.accounts import TokenKind
from chatd.store.database import Database, sqlite_url
from chatd.store.store import Store
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.worker.services import Services
from chatd.worker.worker import Worker

__all__ = ["ControlPlane", "LocalTokens", "PortInUse", "make_web_app"]

# Bytes of a request body; messages are at most 200,000 characters a part.
MAX_BODY_BYTES = 8 * 1024 * 1024
# Seconds that requests in progress get at shutdown; streams are ended at once.
SHUTDOWN_S = 1.0

# Tokens that a new run replaces; browser sessions outlive it.
RENEWED_KINDS: tuple[TokenKind, ...] = ("api", "agent", "login")

log = structlog.get_logger("chatd")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTokens:
    """What one machine needs: a browser's login, an API token, the workspace's own."""

    login: str
    api: str
    agent: str


class PortInUse(Unavailable):
    """Something else listens there."""

    code = "port_in_use"


class DatabaseUnusable(Unavailable):
    """The database can't be opened or migrated."""

    code = "database_unusable"


class ScenarioUnusable(Unavailable):
    """The rehearsal model's scenario file can't be used."""

    code = "scenario_unusable"


def make_web_app(services: Services) -> web.Application:
    """Routes and middlewares; the outermost comes first."""
    app = web.Application(
        middlewares=[
            auth.header_middleware,
            errors.error_middleware,
            auth.host_middleware,
            auth.auth_middleware,
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    app[SERVICES] = services
    app[SETTINGS] = services.settings
    # Fixed paths first: `/chats/watch` is no chat.
    for table in (auth.routes, misc.routes, streams.routes, desktop.routes, chats.routes):
        app.add_routes(table)
    misc.add_page(app)
    open_streams.track_streams(app)
    return app


class ControlPlane:
    """One chatd process."""

    def __init__(self, settings: ChatdSettings) -> None:
        self.settings = settings
        self.services: Services
        self.port = 0
        self._cleanup = contextlib.AsyncExitStack()

    @property
    def url(self) -> str:
        """Where it answers."""
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"http://{host}:{self.port}"

    async def start(self) -> None:
        """
        Open the database, take over what an earlier process left, listen.

        Raises:
            DataDirBusy, DataDirUnusable, PortInUse: nothing is left behind.
        """
        try:
            await self._start()
        except BaseException:
            await self._cleanup.aclose()
            raise

    async def _start(self) -> None:
        data_dir = DataDir(self.settings.data_dir)
        self._cleanup.callback(data_dir.release)
        database = Database(sqlite_url(self.settings.database_path))
        self._cleanup.push_async_callback(database.close)
        try:
            await database.migrate()
        except sa.exc.DatabaseError as exc:
            text = f"{self.settings.database_path} is no database of ours: {exc.orig}"
            raise DatabaseUnusable(f"{text}; move it away, or choose another place with --data DIR") from exc
        hub = Hub()
        store = Store(database, publish=hub.publish)
        catalog = Catalog(await self._model_sources())
        self._cleanup.push_async_callback(catalog.close)
        await store.write(catalog_rows.save_configs, catalog.configs(), now=store.now())
        self.services = Services(
            settings=self.settings,
            store=store,
            hub=hub,
            buffer=PartBuffer(hub.touch),
            catalog=catalog,
            directory=Directory(),
        )
        # The data directory's lock says that nobody else lives: every lease in it is a dead one's.
        await store.release_all()
        await self._listen()
        worker = asyncio.get_running_loop().create_task(Worker(self.services).run(), name="worker")
        self._cleanup.push_async_callback(_stop_task, worker)
        log.info("chatd ready", action="ready", url=self.url)

    async def _model_sources(self) -> list[ModelSource]:
        sources = sources_from_settings(self.settings)
        if sources and self.settings.rehearsal == "auto":
            return sources
        path = self.settings.rehearsal_scenario
        scenario = await asyncio.to_thread(_load_scenario, path) if path else None
        server = RehearsalServer()
        base_url = await server.start(scenario=scenario)
        self._cleanup.push_async_callback(server.stop)
        return sources + rehearsal_sources(base_url)

    async def _listen(self) -> None:
        app = make_web_app(self.services)
        runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        self._cleanup.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self.settings.host, self.settings.port)
        try:
            await site.start()
        except OSError as exc:
            msg = (
                f"can't listen on {self.settings.host}:{self.settings.port}: {exc.strerror}; "
                "choose another port with --port (0 takes a free one)"
            )
            raise PortInUse(msg) from exc
        self.port = runner.addresses[0][1]
        self._cleanup.push_async_callback(open_streams.end_streams, app, SHUTDOWN_S)
        # First of all: nobody who is sent away may come back.
        self._cleanup.push_async_callback(site.stop)

    async def issue_local_tokens(self, agent_name: str) -> LocalTokens:
        """Tokens for this machine's user and its workspace *agent_name*; those of earlier runs end."""
        store = self.services.store
        return await store.write(_issue_tokens, agent_name, now=store.now())

    async def stop(self) -> None:
        """Stop everything, newest first; chats at work stay runnable for the next start."""
        await self._cleanup.aclose()


async def _stop_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _issue_tokens(connection: sa.Connection, agent_name: str, *, now: datetime) -> LocalTokens:
    user_id = accounts.ensure_user(connection, getpass.getuser(), now=now)
    agent_id = accounts.ensure_agent(connection, user_id, agent_name, now=now)
    for kind in RENEWED_KINDS:
        accounts.revoke_tokens(connection, kind, user_id, now=now)
    return LocalTokens(
        login=accounts.issue_token(connection, "login", user_id, now=now),
        api=accounts.issue_token(connection, "api", user_id, now=now),
        agent=accounts.issue_token(connection, "agent", user_id, now=now, agent_id=agent_id),
    )


def _load_scenario(path: Path) -> Scenario:
    try:
        return Scenario.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise ScenarioUnusable(f"can't read the scenario {path}: {exc.strerror}") from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ScenarioUnusable(f"scenario {path}: {where}: {first['msg']}") from exc
