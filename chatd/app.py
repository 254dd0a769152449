"""Builds the control plane's object graph and runs it; no logic of its own."""

import asyncio
import contextlib
import getpass
import socket
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import sqlalchemy as sa
import structlog
from aiohttp import web
from pydantic import ValidationError

from agentd.wire.reload import Reload
from chatd.agents.directory import Directory
from chatd.constants import MAX_BODY_BYTES
from chatd.datadir import DataDir
from chatd.errors import Unavailable
from chatd.mcp_host import McpHost
from chatd.memory import give_back_after_storms
from chatd.provider.catalog import Catalog, ModelSource, rehearsal_sources, sources_from_settings
from chatd.push.sender import PushSender
from chatd.reloading import reload_settings
from chatd.replicas.footprint import Footprint
from chatd.replicas.membership import Membership
from chatd.replicas.poller import Poller
from chatd.replicas.registry import Registry
from chatd.replicas.together import Together
from chatd.routes import (
    access,
    audit_log,
    auth,
    bounds,
    chats,
    config,
    desktop,
    downloads,
    errors,
    files,
    groups,
    health,
    limits,
    login,
    mcp,
    messages,
    misc,
    oidc,
    open_streams,
    openapi,
    overrides,
    pins,
    push,
    replicas,
    shares,
    streams,
    thresholds,
    tokens,
    users,
    why,
)
from chatd.routes.context import SERVICES, SETTINGS
from chatd.routes.guarding import GUARDS, Guards
from chatd.sealing import Sealer, load_sealer
from chatd.settings import ChatdSettings
from chatd.store import accounts, catalog_rows, deployment, sealed
from chatd.store import users as user_rows
from chatd.store.accounts import TokenKind
from chatd.store.clock import DatabaseClock
from chatd.store.database import Database, sqlite_url
from chatd.store.migrating import SchemaUnfit
from chatd.store.replicas import list_live
from chatd.store.spending import SpendPolicy
from chatd.store.store import Notice, Store, utc_now
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.tls import TlsUnusable
from chatd.worker.announce import announce_answers
from chatd.worker.housekeeping import keep_house
from chatd.worker.services import Services
from chatd.worker.titles import find_titles
from chatd.worker.worker import Worker

if TYPE_CHECKING:
    from chatd.rehearsal import Scenario

__all__ = ["ControlPlane", "LocalTokens", "PortInUse", "load_scenario", "make_web_app", "openapi_document"]

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


# Fixed paths first: `/chats/watch` is no chat.
ROUTES = (
    login,
    oidc,
    health,
    misc,
    tokens,
    users,
    audit_log,
    openapi,
    files,
    thresholds,
    config,
    overrides,
    limits,
    groups,
    streams,
    desktop,
    shares,
    chats,
    messages,
    mcp,
    pins,
    push,
    why,
    access,
    downloads,
    replicas,
)


def make_web_app(services: Services) -> web.Application:
    """Routes and middlewares; the outermost comes first."""
    app = web.Application(
        middlewares=[
            auth.header_middleware,
            errors.error_middleware,
            bounds.bounds_middleware,
            auth.host_middleware,
            auth.auth_middleware,
            replicas.replica_middleware,
        ],
        client_max_size=MAX_BODY_BYTES,
    )
    app.on_response_prepare.append(errors.note_begun)
    app[SERVICES] = services
    app[SETTINGS] = services.settings
    app[GUARDS] = Guards(services.settings)
    app[health.READINESS] = health.Readiness(services.store)
    _add_provider(app)
    for module in ROUTES:
        app.add_routes(module.routes)
    misc.add_page(app)
    app[bounds.BOUNDS] = bounds.Bounds(services.settings)
    open_streams.track_streams(app)
    return app


def _add_provider(app: web.Application) -> None:
    """Whom people log in with, if the settings name somebody."""
    if app[SETTINGS].oidc_issuer is not None:
        # Loaded where it is used: its libraries take a while.
        from chatd.oidc.provider import Provider  # noqa: PLC0415

        app[oidc.PROVIDER] = Provider(app[SETTINGS])


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document of what a control plane serves; nothing is started for it."""
    idle = SimpleNamespace(settings=ChatdSettings.model_construct(), store=None)
    return openapi.build_openapi(make_web_app(cast("Services", idle)).router)


class ControlPlane:
    """One chatd process; it listens where the settings say, or on *listener*, which is open already."""

    def __init__(self, settings: ChatdSettings, listener: socket.socket | None = None) -> None:
        self.settings = settings
        self._listener = listener
        self.services: Services
        self.port = 0
        self._footprint: Footprint
        self._listeners: list[Callable[[Notice], None]] = []
        self._readiness: health.Readiness | None = None
        self.bounds: bounds.Bounds
        self._tls: ssl.SSLContext | None = None
        self._cleanup = contextlib.AsyncExitStack()

    @property
    def url(self) -> str:
        """Where it answers."""
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{'http' if self._tls is None else 'https'}://{host}:{self.port}"

    async def start(self) -> None:
        """
        Open the database, take over what an earlier process left, listen.

        Raises:
            DataDirBusy, DataDirUnusable, DatabaseBusy, DatabaseUnusable, PortInUse: nothing is left behind.
        """
        try:
            await self._start()
        except BaseException:
            await self._cleanup.aclose()
            raise

    async def _start(self) -> None:
        data_dir = DataDir(self.settings.data_dir)
        self._cleanup.callback(data_dir.release)
        self._footprint = Footprint(self.settings.data_dir)
        database = await self._open_database()
        hub = Hub()
        buffer = PartBuffer(hub.touch)
        self._listeners = [hub.publish]
        clock = utc_now if database.is_sqlite else DatabaseClock()
        spending = _spend_policy(self.settings)
        store = Store(database, publish=self._publish, clock=clock, spending=spending)
        together = None
        if isinstance(clock, DatabaseClock):
            together = await self._join(database, store, hub, buffer, clock)
        else:
            # We own the database, so nobody else lives: every lease in it is a dead one's.
            await store.release_all()
        sealer = _load_sealer(self.settings)
        if together is not None:
            is_alone = len(await store.read(list_live)) == 1
            await store.write(sealed.share_key, sealer, is_alone=is_alone, now=store.now())
        catalog = await self._make_catalog(store)
        services = self.services = self._make_services(
            store, hub, buffer, catalog=catalog, sealer=sealer, together=together
        )
        self._cleanup.push_async_callback(services.directory.close)
        services.metrics.watch_streams(
            lambda: services.buffer.gauges(subscribers=services.hub.chat_subscribers)
        )
        await store.write(sealed.seal_bare_keys, sealer)
        readiness = await self._listen()
        if together is not None:
            await together.registry.advertise(self.settings.advertise_url or self.url)
            readiness.watch(self._run("replicas", together.run()))
        else:
            readiness.watch(self._run("poller", Poller(store, hub).run()))
        for name, work in (
            ("worker", Worker(services).run()),
            ("housekeeping", keep_house(services)),
            ("mcp", services.mcp.run()),
            ("push", services.push.run()),
            ("titles", find_titles(services)),
            ("announcements", announce_answers(services)),
            ("bounds", self.bounds.run()),
            ("memory", give_back_after_storms(lambda: self.bounds.connections)),
        ):
            readiness.watch(self._run(name, work))
        # Before all else at the end: what runs in workspaces is not stopped by our going.
        self._cleanup.callback(services.directory.leave)
        log.info("chatd ready", action="ready", url=self.url)

    async def _make_catalog(self, store: Store) -> Catalog:
        catalog = Catalog(await self._model_sources(), self.settings.outbound)
        self._cleanup.push_async_callback(catalog.close)
        chosen = await store.read(deployment.read_setting, "default-model")
        catalog.choose_default(UUID(chosen) if chosen else None)
        await store.write(catalog_rows.save_configs, catalog.configs(), now=store.now())
        return catalog

    def _make_services(
        self,
        store: Store,
        hub: Hub,
        buffer: PartBuffer,
        *,
        catalog: Catalog,
        sealer: Sealer,
        together: Together | None,
    ) -> Services:
        settings = self.settings
        make_directory = Directory if together is None else together.make_directory
        return Services(
            settings=settings,
            store=store,
            hub=hub,
            buffer=buffer,
            catalog=catalog,
            directory=make_directory(fetches_streams=settings.outbound if settings.fetch_streams else None),
            mcp=McpHost(store, sealer, hub, settings.outbound),
            push=PushSender(store, sealer, allowed=settings.push_services, contact=settings.push_contact),
            membership=Membership() if together is None else together.membership,
            together=together,
        )

    def _publish(self, notice: Notice) -> None:
        """After a commit."""
        for tell in self._listeners:
            tell(notice)

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._cleanup.push_async_callback(_stop_task, task)
        return task

    async def _join(
        self, database: Database, store: Store, hub: Hub, buffer: PartBuffer, clock: DatabaseClock
    ) -> Together:
        """Take our place among the processes on this PostgreSQL; that of our forerunner here is free."""
        membership = Membership()
        registry = Registry(
            store,
            membership,
            clock,
            interval_s=self.settings.replica_interval_s,
            timeout_s=self.settings.replica_timeout_s,
            note=self._footprint.note_replica,
        )
        together = Together(
            store, hub, buffer, connect=database.connect_options(), membership=membership, registry=registry
        )
        await registry.join(previous=self._footprint.before.replica_id)
        self._cleanup.push_async_callback(registry.leave)
        self._cleanup.push_async_callback(together.close)
        self._listeners.append(together.hints.tell)
        return together

    async def _open_database(self) -> Database:
        try:
            database = Database(self.settings.database or sqlite_url(self.settings.database_path))
        except ValueError as exc:
            raise DatabaseUnusable(str(exc)) from exc
        self._cleanup.push_async_callback(database.close)
        try:
            await database.take(alone=False)
            await self._migrate(database)
        except sa.exc.DatabaseError as exc:
            raise DatabaseUnusable(_what_is_wrong(database, exc)) from exc
        return database

    async def _migrate(self, database: Database) -> None:
        """
        Bring the schema to what this code needs, as far as others that run bear it.

        Raises:
            SchemaUnfit: it is for newer code, or may not be migrated here.
        """
        if self.settings.migrate == "auto":
            await database.migrate("pre")
            if database.is_sqlite or not await database.read(list_live):
                await database.migrate("all")
        versions = await database.versions()
        problem = versions.problem()
        if problem is not None:
            raise SchemaUnfit(problem)
        if versions.pending():
            log.warning(
                "old replicas run; when they are gone: chatd migrate --phase post", action="migration_pending"
            )

    async def _model_sources(self) -> list[ModelSource]:
        sources = sources_from_settings(self.settings)
        if sources and self.settings.rehearsal == "auto":
            return sources
        path = self.settings.rehearsal_scenario
        scenario = await asyncio.to_thread(load_scenario, path) if path else None
        # Loaded where it is used: its eyes need numpy.
        from chatd.rehearsal import RehearsalServer  # noqa: PLC0415

        server = RehearsalServer()
        base_url = await server.start(scenario=scenario)
        self._cleanup.push_async_callback(server.stop)
        return sources + rehearsal_sources(base_url, settings=self.settings)

    async def _listen(self) -> health.Readiness:
        app = make_web_app(self.services)
        self._readiness = readiness = app[health.READINESS]
        self._cleanup.push_async_callback(readiness.close)
        self.bounds = app[bounds.BOUNDS]
        self.services.metrics.watch_bounds(self.bounds)
        runner = bounds.BoundedRunner(app, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        self._cleanup.push_async_callback(runner.cleanup)
        self._tls = tls = None if self.settings.tls is None else self.settings.tls.context()
        site: web.BaseSite = web.TCPSite(
            runner, self.settings.host, self.settings.port, backlog=bounds.BACKLOG, ssl_context=tls
        )
        if self._listener is not None:
            site = web.SockSite(runner, self._listener, backlog=bounds.BACKLOG, ssl_context=tls)
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
        return readiness

    def reload_certificate(self) -> None:
        """Read the certificate again, for connections from now on; one that can't be used changes nothing."""
        if self._tls is None or self.settings.tls is None:
            return
        try:
            self.settings.tls.load(self._tls)
        except TlsUnusable as exc:
            log.error("the certificate stays as it was", action="tls_kept", reason=str(exc))  # noqa: TRY400
        else:
            log.info("certificate read again", action="tls_reloaded")

    async def issue_local_tokens(self, agent_name: str) -> LocalTokens:
        """Tokens for this machine's user and its workspace *agent_name*; those of earlier runs end."""
        store = self.services.store
        ended = None if self.services.together is None else self._footprint.ended_hashes
        tokens = await store.write(_issue_tokens, agent_name, now=store.now(), ended=ended)
        if self.services.together is not None:
            self._footprint.note_tokens(
                tuple(accounts.token_hash(one).hex() for one in (tokens.login, tokens.api, tokens.agent))
            )
        return tokens

    async def reload(self, settings: ChatdSettings) -> Reload:
        """Take up what *settings* changed, as far as a running control plane can."""
        self.reload_certificate()
        return await reload_settings(self.services, settings)

    def status(self) -> str:
        """One line for people: where it is, and how much goes on."""
        parts = self.services
        agents, watchers = parts.directory.connected, parts.hub.chat_subscribers
        return f"{self.url}; workspaces connected: {agents}, watchers of chats: {watchers}"

    async def stop(self) -> None:
        """Stop everything, newest first; chats at work stay runnable for the next start."""
        if self._readiness is not None:
            self._readiness.is_stopping = True
        await self._cleanup.aclose()


def _load_sealer(settings: ChatdSettings) -> Sealer:
    return load_sealer([key.get_secret_value() for key in settings.secret_keys], settings.data_dir)


def _spend_policy(settings: ChatdSettings) -> SpendPolicy:
    return SpendPolicy(limit_micros=settings.usage_limit_micros, period=settings.usage_period)


def _what_is_wrong(database: Database, exc: sa.exc.DatabaseError) -> str:
    """One line: what was tried, what came of it, and what to do."""
    # psycopg tells of a connection in several lines.
    reason = " ".join(str(exc.orig).split())
    if database.is_sqlite:
        advice = "move it away, or choose another place with --data DIR"
        return f"{database} is no database of ours: {reason}; {advice}"
    if isinstance(exc, sa.exc.OperationalError):
        return f"{database} can't be reached: {reason} Is it running, and may this user use it?"
    return f"{database} is no database of ours: {reason}; name another with --database URL"


async def _stop_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _issue_tokens(
    connection: sa.Connection, agent_name: str, *, now: datetime, ended: tuple[bytes, ...] | None
) -> LocalTokens:
    """New tokens; those *ended* are of our forerunner, and None ends all of the user's: nobody else runs."""
    user_id = user_rows.ensure_operator(connection, getpass.getuser(), now=now)
    agent_id = accounts.ensure_agent(connection, user_id, agent_name, now=now)
    if ended is not None:
        accounts.end_tokens(connection, ended, now=now)
    for kind in RENEWED_KINDS if ended is None else ():
        accounts.revoke_tokens(connection, kind, user_id, now=now)
    return LocalTokens(
        login=accounts.issue_token(connection, "login", user_id, now=now),
        api=accounts.issue_token(connection, "api", user_id, now=now),
        agent=accounts.issue_token(connection, "agent", user_id, now=now, agent_id=agent_id),
    )


def load_scenario(path: Path) -> "Scenario":
    """
    The rehearsal model's scenario in a file.

    Raises:
        ScenarioUnusable: it can't be read or makes no sense.
    """
    from chatd.rehearsal import Scenario  # noqa: PLC0415

    try:
        return Scenario.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise ScenarioUnusable(f"can't read the scenario {path}: {exc.strerror}") from exc
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ScenarioUnusable(f"scenario {path}: {where}: {first['msg']}") from exc
