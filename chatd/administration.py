"""
What the command line does to the database itself, whether a chatd runs on it or not.

Whoever can open the database may do all of it; each change leaves an entry in the audit log.
"""

import asyncio
import getpass
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sa

from chatd.account_wire import AuditLine, NewToken, ReplicaLine, Token, User
from chatd.audit import AuditAction, AuditEntry
from chatd.errors import NotFound, Unavailable
from chatd.model_wire import StoredModel
from chatd.scopes import Role
from chatd.sealing import KEY_FILE, KeyFile, Sealer, new_key
from chatd.settings import ChatdSettings
from chatd.store import accounts, audit, catalog_rows, identities, replicas, sealed, tokens, users
from chatd.store.accounts import TokenKind, TokenWish
from chatd.store.database import Database, sqlite_url
from chatd.store.store import utc_now

__all__ = ["Administration", "administer", "shell_user"]

# Seconds between looks for new entries.
FOLLOW_S = 1.0
# Seconds in which what a chatd had sealed before a rotation is written.
SETTLE_S = 2.0
# Ids behind the newest that are read again: entries of transactions that began earlier may come later.
OVERLAP = 200
ALL_KINDS: frozenset[TokenKind] = tokens.KEY_KINDS | {"session"}

T = TypeVar("T")
P = ParamSpec("P")


def shell_user() -> str:
    """Who uses the command line, as the audit log has it."""
    return f"shell:{getpass.getuser()}"


@asynccontextmanager
async def administer(settings: ChatdSettings) -> AsyncIterator["Administration"]:
    """
    Open the database.

    Raises:
        NotFound: there is none yet.
        Unavailable: it can't be read or written, or is of another version.
    """
    if settings.database is None and not settings.database_path.is_file():
        raise NotFound(
            f"there is no {settings.database_path}; start `chatd serve` once, or name it by --data"
        )
    database = Database(settings.database or sqlite_url(settings.database_path))
    try:
        yield Administration(database)
    except sa.exc.DatabaseError as exc:
        raise Unavailable(f"can't use {database}: {exc.orig}") from exc
    finally:
        await database.close()


class Administration:
    """An open database, and what is done to it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def list_users(self) -> list[User]:
        """Every user, by name."""
        return [User.model_validate(dict(row)) for row in await self.database.read(users.list_users)]

    async def add_user(self, name: str, role: Role) -> User:
        """
        Make a user.

        Raises:
            BadRequest: the name can't be used, or is taken.
        """
        entry = _entry(AuditAction.USER_MADE, name, role=role.value)
        return _user(await self.write(entry, users.create_user, name, role, now=utc_now()))

    async def set_role(self, name: str, role: Role) -> User:
        """
        Give a user another role.

        Raises:
            NotFound, LastAdmin: see ``users.set_role``.
        """
        entry = _entry(AuditAction.ROLE_CHANGED, name, role=role.value)
        with _advised(name):
            return _user(await self.write(entry, users.set_role, name, role))

    async def disable(self, name: str) -> User:
        """
        Shut a user out.

        Raises:
            NotFound, LastAdmin: see ``users.disable_user``.
        """
        entry = _entry(AuditAction.USER_DISABLED, name)
        with _advised(name):
            return _user(await self.write(entry, users.disable_user, name, now=utc_now()))

    async def enable(self, name: str) -> User:
        """
        Let a user in again.

        Raises:
            NotFound: there is none of that name.
        """
        with _advised(name):
            return _user(await self.write(_entry(AuditAction.USER_ENABLED, name), users.enable_user, name))

    async def untie(self, name: str) -> int:
        """
        Forget who a user is at the providers that people log in with; how many were forgotten.

        Raises:
            NotFound: there is none of that name.
        """
        with _advised(name):
            return await self.write(_entry(AuditAction.IDENTITY_UNTIED, name), identities.untie, name)

    async def login_token(self, name: str) -> str:
        """
        A one-time login token of a user's.

        Raises:
            NotFound: there is none of that name, or they are disabled.
        """
        user = await self._live_user(name)
        entry = _entry(AuditAction.LOGIN_URL, name)
        return await self.write(entry, accounts.issue_token, "login", user.id, now=utc_now())

    async def list_tokens(self, name: str | None) -> list[tuple[str, Token]]:
        """
        Tokens and sessions that are good, of one user or of all, with whose they are.

        Raises:
            NotFound: there is no user of that name.
        """
        rows: Sequence[sa.RowMapping]
        if name is None:
            rows = await self.database.read(users.list_users)
        else:
            with _advised(name):
                rows = [await self.database.read(users.find_user, name)]
        found: list[tuple[str, Token]] = []
        for user in rows:
            theirs = await self.database.read(tokens.list_tokens, user["id"], ALL_KINDS, now=utc_now())
            found += [(user["name"], Token.model_validate(dict(row))) for row in theirs]
        return found

    async def create_token(
        self, user_name: str, kind: TokenKind, wish: TokenWish, workspace: str | None
    ) -> NewToken:
        """
        A token of a user's; *workspace* is made if there is none.

        Raises:
            NotFound: there is no user of that name, or they are disabled.
            QueueFull: they have too many.
        """
        user, now = await self._live_user(user_name), utc_now()
        scopes = " ".join(wish.scopes) if wish.scopes else "all"
        entry = _entry(AuditAction.TOKEN_MADE, wish.name or "", kind=kind, user=user_name, scopes=scopes)

        def make(connection: sa.Connection) -> tuple[sa.RowMapping, str]:
            agent_id = None
            if workspace is not None:
                agent_id = accounts.ensure_agent(connection, user.id, workspace, now=now)
            given = TokenWish(name=wish.name, scopes=wish.scopes, lifetime=wish.lifetime, agent_id=agent_id)
            return tokens.create_token(connection, kind, user.id, given, now=now)

        row, token = await self.write(entry, make)
        return NewToken.model_validate({**row, "token": token})

    async def revoke_token(self, token_id: UUID) -> None:
        """
        End a token or session.

        Raises:
            NotFound: there is none of that id.
        """
        entry = _entry(AuditAction.TOKEN_REVOKED, str(token_id))
        await self.write(entry, tokens.revoke_any, token_id, ALL_KINDS, now=utc_now())

    async def list_models(self, *, and_gone: bool) -> list[StoredModel]:
        """Models that chats may use, the default first."""
        rows = await self.database.read(catalog_rows.list_configs, and_gone=and_gone)
        return [StoredModel.model_validate(dict(row)) for row in rows]

    async def list_replicas(self, *, and_gone: bool) -> list[ReplicaLine]:
        """The processes that share this database, the newest first."""
        rows = await self.database.read(replicas.list_known, and_gone=and_gone)
        return [ReplicaLine.model_validate(row) for row in rows]

    async def entries(self, *, action: str | None, actor: str | None, limit: int) -> list[AuditLine]:
        """The newest entries of the audit log, the oldest of them first."""
        rows = await self.database.read(audit.list_entries, action=action, actor=actor, limit=limit)
        return [AuditLine.model_validate(dict(row)) for row in reversed(rows)]

    async def follow(self, *, action: str | None, actor: str | None) -> AsyncIterator[AuditLine]:
        """Entries as they come, from now on, each once; for ever."""
        newest = await self.database.read(audit.newest_id)
        known = OrderedDict.fromkeys(range(max(0, newest - OVERLAP), newest + 1))
        while True:
            rows = await self.database.read(
                audit.list_entries,
                after_id=max(0, newest - OVERLAP),
                action=action,
                actor=actor,
                limit=OVERLAP * 5,
            )
            for row in rows:
                if row["id"] not in known:
                    known[row["id"]] = None
                    newest = max(newest, row["id"])
                    yield AuditLine.model_validate(dict(row))
            while len(known) > OVERLAP * 10:
                known.popitem(last=False)
            await asyncio.sleep(FOLLOW_S)

    async def rotate_secrets(self, settings: ChatdSettings, *, drop_old: bool) -> tuple[int, int]:
        """
        Seal every secret with a new key, or, where keys are settings, with the first of them.

        Args:
            settings: where the keys are.
            drop_old: forget the file's older keys afterwards.

        Returns:
            How many secrets there are, and how many older keys are still kept.

        Raises:
            SealBroken: a secret can't be opened; nothing was changed.
            KeyUnusable: the key file can't be used.
        """
        entry = AuditEntry(action=AuditAction.SECRETS_ROTATED, actor=shell_user())
        if settings.secret_keys:
            keys = [key.get_secret_value() for key in settings.secret_keys]
            return await self.write(entry, sealed.reseal_all, Sealer(keys)), len(keys) - 1
        file = KeyFile(settings.data_dir / KEY_FILE)
        old = file.keys()
        # Both first: whatever happens from here on, each row's key is in the file.
        file.write([new_key(), *old])
        sealer = Sealer(file)
        count = await self.write(entry, sealed.reseal_all, sealer)
        if drop_old:
            # A chatd may have sealed something just before, and written it just after.
            await asyncio.sleep(SETTLE_S)
            count = await self.database.write(sealed.reseal_all, sealer)
            file.write(file.keys()[:1])
        return count, len(file.keys()) - 1

    async def _live_user(self, name: str) -> User:
        with _advised(name):
            user = _user(await self.database.read(users.find_user, name))
        if user.disabled_at is not None:
            raise NotFound(f"{name} is disabled; `chatd users enable` lets them in again")
        return user

    async def write(
        self,
        entry: AuditEntry,
        run: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """*run* and its entry in one transaction."""
        return await self.database.write(audit.audited(run, entry, at=utc_now()), *args, **kwargs)


@contextmanager
def _advised(name: str) -> Iterator[None]:
    """Where there is no user called *name*, say what to do."""
    try:
        yield
    except NotFound as exc:
        text = f"{exc}: {name}; `chatd users list` shows who there is, `chatd users add {name}` makes one"
        raise NotFound(text) from exc


def _entry(action: AuditAction, target: str, **details: str) -> AuditEntry:
    return AuditEntry(action=action, actor=shell_user(), target=target, details=details)


def _user(row: sa.RowMapping) -> User:
    return User.model_validate(dict(row))
