"""Commands about users, tokens and the audit log; they work on the database itself."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, NoReturn, TypeVar
from uuid import UUID

import cyclopts
from cyclopts import Parameter
from pydantic import BaseModel, ValidationError

from chatd.account_wire import AuditLine, Token, User
from chatd.administration import Administration, administer
from chatd.audit import AuditAction, plain
from chatd.errors import BadRequest, ChatdError
from chatd.loading import OURS, load_settings
from chatd.routes.tokens import CreateToken
from chatd.scopes import Role, Scope
from chatd.settings import ChatdSettings
from chatd.store.accounts import TokenWish

__all__ = [
    "FAILED",
    "HERE",
    "USAGE",
    "AsJson",
    "Where",
    "audit_log",
    "fail",
    "print_json",
    "print_table",
    "read_settings",
    "run_there",
    "secrets_app",
    "time_text",
    "tokens_app",
    "users_app",
]

FAILED = 1
USAGE = 2
# Entries of the audit log that are held in memory at once.
MOST_ENTRIES = 100_000
T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which database."""

    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None
    database: Annotated[str | None, Parameter(help="PostgreSQL URL (CHATD_DATABASE).")] = None


HERE = Where()
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
UserName = Annotated[str, Parameter(help="The user's name.")]

users_app = cyclopts.App(name="users", help="Users and their roles.")
secrets_app = cyclopts.App(name="secrets", help="The key that stored secrets are sealed with.")
tokens_app = cyclopts.App(name="tokens", help="Tokens of programs, workspaces and browsers.")


def fail(message: str, exit_code: int) -> NoReturn:
    """End the program with one line."""
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(exit_code)


def read_settings(**given: object) -> ChatdSettings:
    """The settings with what was given on the command line; a bad one ends the program."""
    try:
        return load_settings(**given)
    except ChatdError as exc:
        fail(str(exc), USAGE)


def run_there(where: Where, work: Callable[[Administration], Awaitable[T]]) -> T:
    """What comes of *work* on the database; what goes wrong ends the program."""
    settings = read_settings(data_dir=where.data, database=where.database)

    async def run() -> T:
        async with administer(settings) as administration:
            return await work(administration)

    try:
        return asyncio.run(run())
    except ChatdError as exc:
        fail(str(exc), FAILED)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def print_json(value: BaseModel | Sequence[BaseModel]) -> None:
    """One object, or a list of them, on one line."""
    if isinstance(value, BaseModel):
        sys.stdout.write(value.model_dump_json(exclude_none=True) + "\n")
        return
    shown = [one.model_dump(mode="json", exclude_none=True) for one in value]
    sys.stdout.write(json.dumps(shown) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Whole lines, however long: they are read by programs too."""
    table = [tuple(columns), *(tuple(plain(cell) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")


def time_text(at: datetime | None) -> str:
    """To the second, UTC; nothing for never."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _print_users(users: Sequence[User]) -> None:
    rows = [
        (user.name, user.role.value, "disabled" if user.disabled_at else "", time_text(user.last_seen_at))
        for user in users
    ]
    print_table(("NAME", "ROLE", "", "LAST SEEN"), rows)


@users_app.command(name="list")
def list_users(*, where: Where = HERE, as_json: AsJson = False) -> None:
    """
    List every user.

    For example:
      chatd users list --data /var/lib/chatd
      chatd users list --json | jq '.[] | select(.role == "admin") | .name'
    """
    found = run_there(where, lambda admin: admin.list_users())
    print_json(found) if as_json else _print_users(found)


@users_app.command
def add(
    name: UserName,
    *,
    role: Annotated[Role, Parameter(help="admin or member.")] = Role.MEMBER,
    where: Where = HERE,
    as_json: AsJson = False,
) -> None:
    """
    Make a user; `chatd users login-url` then lets them in.

    For example:
      chatd users add ann --role admin --data /var/lib/chatd
    """
    _tell(run_there(where, lambda admin: admin.add_user(name, role)), as_json=as_json)


@users_app.command
def role(
    name: UserName,
    role: Annotated[Role, Parameter(help="admin or member.")],
    *,
    where: Where = HERE,
    as_json: AsJson = False,
) -> None:
    """
    Give a user another role; it counts with their next request.

    For example:
      chatd users role ann member --data /var/lib/chatd
    """
    _tell(run_there(where, lambda admin: admin.set_role(name, role)), as_json=as_json)


@users_app.command
def disable(name: UserName, *, where: Where = HERE, as_json: AsJson = False) -> None:
    """
    Shut a user out: every token and session of theirs, and of their workspaces, ends for good.

    For example:
      chatd users disable ann --data /var/lib/chatd
    """
    _tell(run_there(where, lambda admin: admin.disable(name)), as_json=as_json)


@users_app.command
def enable(name: UserName, *, where: Where = HERE, as_json: AsJson = False) -> None:
    """
    Let a user in again; they need new tokens.

    For example:
      chatd users enable ann --data /var/lib/chatd
    """
    _tell(run_there(where, lambda admin: admin.enable(name)), as_json=as_json)


@users_app.command
def untie(name: UserName, *, where: Where = HERE) -> None:
    """
    Forget who a user is at the OpenID provider: their next login there is like their first.

    For example:
      chatd users untie ann --data /var/lib/chatd
    """
    count = run_there(where, lambda admin: admin.untie(name))
    sys.stdout.write(f"{plain(name)}: {count} forgotten\n")


@users_app.command(name="login-url")
def login_url(
    name: UserName,
    *,
    url: Annotated[str, Parameter(help="Where people reach this chatd.")] = "http://127.0.0.1:7080",
    where: Where = HERE,
) -> None:
    """
    Print a URL that logs a browser in as the user: once, within 15 minutes.

    For example:
      chatd users login-url ann --url https://chats.example.com
    """
    token = run_there(where, lambda admin: admin.login_token(name))
    sys.stdout.write(f"{url.rstrip('/')}/login?token={token}\n")


def _tell(user: User, *, as_json: bool) -> None:
    print_json(user) if as_json else _print_users([user])


@tokens_app.command(name="list")
def list_tokens(
    *,
    user: Annotated[str | None, Parameter(help="Of this user only.")] = None,
    where: Where = HERE,
    as_json: AsJson = False,
) -> None:
    """
    List tokens and sessions that are good, without their secrets.

    For example:
      chatd tokens list --user ann --data /var/lib/chatd
    """
    found = run_there(where, lambda admin: admin.list_tokens(user))
    if as_json:
        shown = [{"user": name, **token.model_dump(mode="json", exclude_none=True)} for name, token in found]
        sys.stdout.write(json.dumps(shown) + "\n")
        return
    columns = ("ID", "USER", "KIND", "NAME", "SCOPES", "EXPIRES", "LAST USED")
    print_table(columns, [_token_row(name, token) for name, token in found])


def _token_row(user: str, token: Token) -> tuple[str, ...]:
    scopes = f"workspace {token.workspace}" if token.workspace else " ".join(token.scopes or ["all"])
    expires = time_text(token.expires_at) or "never"
    return str(token.id), user, token.kind, token.name or "", scopes, expires, time_text(token.used_at)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a token opens, and how long."""

    kind: Annotated[
        Literal["api", "agent"], Parameter(help="api: for programs; agent: for a workspace's daemon.")
    ] = "api"
    workspace: Annotated[str | None, Parameter(help="Of an agent token; made if there is none.")] = None
    scope: Annotated[
        tuple[Scope, ...],
        Parameter(help="What it may; none: all that its user may.", consume_multiple=True, negative=()),
    ] = ()
    expires_days: Annotated[
        float | None, Parameter(help="Days it lives; 0: until revoked; none: 90, agent 365.")
    ] = None


API_TOKEN = Kind()


@tokens_app.command(name="create")
def create_token(
    name: Annotated[str, Parameter(help="What the token is for.")],
    *,
    user: Annotated[str, Parameter(help="Whose it is.")],
    what: Kind = API_TOKEN,
    where: Where = HERE,
    as_json: AsJson = False,
) -> None:
    """
    Make a token and print it, this once.

    For example:
      chatd tokens create dashboard --user ann --scope read metrics --expires-days 30
      chatd tokens create builder-7 --user ann --kind agent --workspace builder-7
    """
    wish = _read_wish(name, what)
    asked = TokenWish(name=wish.name, scopes=what.scope or None, lifetime=wish.lifetime)
    made = run_there(where, lambda admin: admin.create_token(user, what.kind, asked, what.workspace))
    if as_json:
        print_json(made)
    else:
        sys.stdout.write(made.token + "\n")


def _read_wish(name: str, what: Kind) -> CreateToken:
    seconds = None
    if what.expires_days is not None:
        seconds = int(timedelta(days=what.expires_days).total_seconds())
    scopes = list(what.scope) or None
    try:
        wish = CreateToken(
            name=name, kind=what.kind, workspace=what.workspace, scopes=scopes, expires_in_s=seconds
        )
        wish.check()
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        fail(f"{'.'.join(str(step) for step in first['loc'])}: {first['msg'].removeprefix(OURS)}", USAGE)
    except BadRequest as exc:
        fail(str(exc), USAGE)
    return wish


@tokens_app.command(name="revoke")
def revoke_token(
    token_id: Annotated[UUID, Parameter(help="Its id, as `chatd tokens list` shows it.")],
    *,
    where: Where = HERE,
) -> None:
    """
    End a token or a session for good; what it opened ends within seconds.

    For example:
      chatd tokens revoke 7b0c1a52-8d3e-4a55-9a63-0d2a9f3a7a11
    """
    run_there(where, lambda admin: admin.revoke_token(token_id))


@secrets_app.command
def rotate(
    *,
    drop_old: Annotated[
        bool, Parameter(help="Forget the older keys of the file; backups of before can't be opened then.")
    ] = False,
    where: Where = HERE,
    as_json: AsJson = False,
) -> None:
    """
    Seal every stored secret with a new key, beside a running chatd.

    Where keys are in CHATD_SECRET_KEYS: put the new one first, keep the old one behind it,
    restart every chatd, rotate, then take the old one away.

    For example:
      chatd secrets rotate --data /var/lib/chatd
      chatd secrets rotate --data /var/lib/chatd --drop-old
    """
    settings = read_settings(data_dir=where.data, database=where.database)
    count, kept = run_there(where, lambda admin: admin.rotate_secrets(settings, drop_old=drop_old))
    if as_json:
        sys.stdout.write(json.dumps({"secrets": count, "older_keys": kept}) + "\n")
        return
    sys.stdout.write(f"{count} secrets are sealed with the newest key; {kept} older keys are kept\n")


def audit_log(
    *,
    follow: Annotated[bool, Parameter(help="Go on, entry by entry, until Ctrl-C.")] = False,
    action: Annotated[AuditAction | None, Parameter(help="Only of this kind.")] = None,
    actor: Annotated[str | None, Parameter(help="Only of this user.")] = None,
    limit: Annotated[int, Parameter(help="How many of the newest, 1 or more.")] = 100,
    where: Where = HERE,
    as_json: Annotated[bool, Parameter(name="--json", help="One JSON object a line.")] = False,
) -> None:
    """
    Show what mattered for security: who did what to what, from where.

    For example:
      chatd audit --data /var/lib/chatd
      chatd audit --follow --json | jq 'select(.action == "login_failed")'
    """
    if not 1 <= limit <= MOST_ENTRIES:
        fail(f"--limit is 1 to {MOST_ENTRIES}", USAGE)

    async def work(admin: Administration) -> None:
        for line in await admin.entries(action=action, actor=actor, limit=limit):
            _print_line(line, as_json=as_json)
        if follow:
            async for line in admin.follow(action=action, actor=actor):
                _print_line(line, as_json=as_json)

    run_there(where, work)


def _print_line(line: AuditLine, *, as_json: bool) -> None:
    if as_json:
        text = line.model_dump_json(exclude_none=True)
    else:
        # Neutralised when it was written; once more, for rows of whoever writes to the database himself.
        details = " ".join(f"{name}={value}" for name, value in sorted(line.details.items()))
        parts = (time_text(line.at), line.actor, line.action, line.target or "-", line.remote or "-", details)
        text = "  ".join(plain(part) for part in parts).rstrip()
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
