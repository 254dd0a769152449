"""
Users as a provider knows them: tied at the first login, found by issuer and subject ever after.

A name is believed once, and only where nobody could lose anything by it: of a user who was added and never
came in, or of the one who is logged in here in the same browser. Administrators are tied by the second alone,
or because the provider itself says that they administer.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import BadRequest, LastAdmin, NotFound, SignInRefused
from chatd.scopes import Role
from chatd.store import schema, users
from chatd.store.accounts import Login, TokenWish, issue_token
from chatd.store.inserts import insert_new

__all__ = ["Person", "SignIn", "SignedIn", "sign_in", "untie"]

# Two first logins at once.
BUSY = "Somebody of that name is coming in at this moment; log in once more."

_IDENTITIES, _USERS, _TOKENS = schema.user_identities, schema.users, schema.api_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """
    Whom a provider says somebody is.

    Attributes:
        subject: never given to another there.
        name: as the user is to be called here; absent: the provider does not tell.
        is_admin: whether its groups make an administrator; None: no group does.
    """

    issuer: str
    subject: str
    name: str | None = None
    is_admin: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """
    One login.

    Attributes:
        login_id: of this one; a second with the same is refused.
        browser: what the browser calls itself.
        own_user_id: who is logged in already in the browser.
        admins: names that administer by the settings.
    """

    login_id: UUID
    browser: str | None = None
    own_user_id: UUID | None = None
    admins: Collection[str] = ()
    creates_users: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A new session, and what changed with it."""

    login: Login
    is_tied: bool = False
    is_made: bool = False
    new_role: Role | None = None


def sign_in(connection: sa.Connection, person: Person, wish: SignIn, *, now: datetime) -> SignedIn:
    """
    Begin a session of the user that *person* is.

    Transaction: joined; nothing is left of a login that was refused.

    Raises:
        SignInRefused: nobody here is that person, or may not come in, or the login was used.
    """
    user_id = _known_user(connection, person)
    is_tied = user_id is None
    is_made = False
    if user_id is None:
        user_id, is_made = _user_by_name(connection, person, wish, now=now)
        _tie(connection, person, user_id, now=now)
    user = _locked(connection, user_id)
    if user["disabled_at"] is not None:
        raise _refused(person, "disabled", f"{user['name']} is disabled here; an administrator lets them in.")
    # Behind the lock, so that of two at once the second sees the first.
    if connection.execute(sa.select(_TOKENS.c.id).where(_TOKENS.c.id == wish.login_id)).first():
        raise _refused(person, "used", "This login was used already; log in once more.")
    new_role = _follow_group(connection, person, user)
    wanted = TokenWish(name=wish.browser, token_id=wish.login_id)
    session = issue_token(connection, "session", user_id, now=now, wish=wanted)
    login = Login(token=session, user_id=user_id, user_name=user["name"])
    return SignedIn(login=login, is_tied=is_tied, is_made=is_made, new_role=new_role)


def untie(connection: sa.Connection, name: str) -> int:
    """
    Forget who a user is at providers: their next login there is a first one. How many were forgotten.

    Raises:
        NotFound: there is no such user.
    """
    user_id = users.find_user(connection, name)["id"]
    return connection.execute(_IDENTITIES.delete().where(_IDENTITIES.c.user_id == user_id)).rowcount


def _known_user(connection: sa.Connection, person: Person) -> UUID | None:
    statement = sa.select(_IDENTITIES.c.user_id).where(*_is(person))
    return connection.execute(statement).scalar_one_or_none()


def _is(person: Person) -> tuple[sa.ColumnElement[bool], ...]:
    return _IDENTITIES.c.issuer == person.issuer, _IDENTITIES.c.subject == person.subject


def _user_by_name(
    connection: sa.Connection, person: Person, wish: SignIn, *, now: datetime
) -> tuple[UUID, bool]:
    """The user that *person* is from now on, and whether they were made for it."""
    try:
        name = users.check_name(person.name or "")
    except BadRequest:
        text = "The provider tells no name that a user can have here; see CHATD_OIDC_NAME_CLAIM."
        raise _refused(person, "name", text) from None
    try:
        user = _locked(connection, users.find_user(connection, name)["id"])
    except NotFound:
        return _made(connection, person, name, wish, now=now), True
    _check_tie(connection, person, user, wish)
    return user["id"], False


def _made(connection: sa.Connection, person: Person, name: str, wish: SignIn, *, now: datetime) -> UUID:
    if not wish.creates_users:
        text = f"There is no user {name!r} here; an administrator adds you: chatd users add."
        raise _refused(person, "unknown", text)
    if name in wish.admins and not person.is_admin:
        raise _refused(person, "administrator", f"{name!r} administers; an administrator adds them first.")
    try:
        row = users.create_user(connection, name, Role.MEMBER, now=now)
    except BadRequest:
        raise _refused(person, "busy", BUSY) from None
    user_id: UUID = row["id"]
    return user_id


def _check_tie(connection: sa.Connection, person: Person, user: sa.RowMapping, wish: SignIn) -> None:
    """
    See that *person* may be *user* from now on.

    Raises:
        SignInRefused: they may not, or another is.
    """
    other = sa.select(_IDENTITIES.c.subject).where(
        _IDENTITIES.c.user_id == user["id"], _IDENTITIES.c.issuer == person.issuer
    )
    if connection.execute(other).first():
        text = (
            f"{user['name']!r} is somebody else at the provider; if that is you, an administrator has it "
            "forgotten: chatd users untie."
        )
        raise _refused(person, "taken", text)
    if wish.own_user_id == user["id"]:
        return
    administers = user["role"] == Role.ADMIN.value or user["name"] in wish.admins
    if (administers and not person.is_admin) or _was_here(connection, user["id"]):
        text = (
            f"{user['name']!r} was here before, or administers. If that is you, log this browser in by a "
            "one-time URL first (chatd users login-url), then log in here once more."
        )
        raise _refused(person, "unproven", text)


def _was_here(connection: sa.Connection, user_id: UUID) -> bool:
    """Whether a user has anything that somebody of the same name could take."""
    tokens = sa.select(_TOKENS.c.id).where(
        _TOKENS.c.user_id == user_id, (_TOKENS.c.kind != "login") | _TOKENS.c.used_at.is_not(None)
    )
    agents = sa.select(schema.agents.c.id).where(schema.agents.c.owner_id == user_id)
    chats = sa.select(schema.chats.c.id).where(schema.chats.c.owner_id == user_id)
    return any(connection.execute(found.limit(1)).first() for found in (tokens, agents, chats))


def _tie(connection: sa.Connection, person: Person, user_id: UUID, *, now: datetime) -> None:
    values = {
        "issuer": person.issuer,
        "subject": person.subject,
        "user_id": user_id,
        "is_admin_by_group": False,
        "created_at": now,
    }
    if not insert_new(connection, _IDENTITIES, values):
        raise _refused(person, "busy", BUSY)


def _follow_group(connection: sa.Connection, person: Person, user: sa.RowMapping) -> Role | None:
    """The role that the provider's group gives or takes; what was given here stays."""
    if person.is_admin is None:
        return None
    by_group = sa.select(_IDENTITIES.c.is_admin_by_group).where(*_is(person))
    if person.is_admin:
        if user["role"] == Role.ADMIN.value:
            return None
        wanted = Role.ADMIN
    elif connection.execute(by_group).scalar_one():
        wanted = Role.MEMBER
    else:
        return None
    try:
        users.set_role(connection, user["name"], wanted)
    except LastAdmin:
        # Somebody always administers; the next login asks again.
        return None
    is_given = wanted is Role.ADMIN
    connection.execute(_IDENTITIES.update().where(*_is(person)).values(is_admin_by_group=is_given))
    return wanted


def _locked(connection: sa.Connection, user_id: UUID) -> sa.RowMapping:
    """The user's row; it is not disabled, nor tied to another, meanwhile."""
    statement = sa.select(_USERS.c.id, _USERS.c.name, _USERS.c.role, _USERS.c.disabled_at)
    return connection.execute(statement.where(_USERS.c.id == user_id).with_for_update()).mappings().one()


def _refused(person: Person, reason: str, text: str) -> SignInRefused:
    return SignInRefused(text, reason=reason, subject=person.subject, name=person.name or "")
