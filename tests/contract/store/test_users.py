"""Users, their roles, and their tokens as rows, on both databases."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from chatd.audit import AuditAction, AuditEntry
from chatd.errors import BadRequest, Forbidden, LastAdmin, NotFound, QueueFull, Unauthorised
from chatd.scopes import Role, Scope
from chatd.store import accounts, audit, schema, tokens, users
from chatd.store.accounts import Identity, TokenWish
from tests.contract.store.bench import START, Bench

KINDS = frozenset({"api", "session"})


async def identify(bench: Bench, token: str, *, after: timedelta = timedelta()) -> Identity:
    """Who the token belongs to."""
    return await bench.store.read(accounts.authenticate, token, KINDS, now=START + after)


async def test_a_user_is_made_once_and_has_a_role(bench: Bench) -> None:
    """Ours: the token tells of it with the next request."""
    store = bench.store
    made = await store.write(users.create_user, "ann", Role.MEMBER, now=START)
    with pytest.raises(BadRequest, match="already"):
        await store.write(users.create_user, "ann", Role.ADMIN, now=START)
    token = await store.write(accounts.issue_token, "api", made["id"], now=START)
    before = await identify(bench, token)
    await store.write(users.set_role, "ann", Role.ADMIN)
    after = await identify(bench, token)

    assert (before.role, after.role) == (Role.MEMBER, Role.ADMIN)
    assert [row["name"] for row in await store.read(users.list_users)] == ["ann", "me"]
    with pytest.raises(NotFound):
        await store.write(users.set_role, "nobody", Role.ADMIN)


@pytest.mark.attack
@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", " a", "x" * 101, "\u202ea", "\x00"])
async def test_a_name_that_could_deceive_is_refused(bench: Bench, name: str) -> None:
    """Ours: nothing that can't be seen, nothing that another line could be made of."""
    with pytest.raises(BadRequest, match="name"):
        await bench.store.write(users.create_user, name, Role.MEMBER, now=START)


async def test_somebody_always_administers(bench: Bench) -> None:
    """Ours: the last administrator is neither demoted nor disabled; a disabled one does not count."""
    store = bench.store
    await store.write(users.ensure_operator, "root", now=START)
    for change in (
        lambda connection: users.set_role(connection, "root", Role.MEMBER),
        lambda connection: users.disable_user(connection, "root", now=START),
    ):
        with pytest.raises(LastAdmin):
            await store.write(change)
    await store.write(users.set_role, "me", Role.ADMIN)
    await store.write(users.disable_user, "me", now=START)
    with pytest.raises(LastAdmin):
        await store.write(users.set_role, "root", Role.MEMBER)
    await store.write(users.enable_user, "me")
    await store.write(users.set_role, "root", Role.MEMBER)

    assert (await store.read(users.find_user, "root"))["role"] == "member"


@pytest.mark.attack
async def test_two_administrators_can_t_demote_each_other_at_once(bench: Bench) -> None:
    """Ours: one of the two is refused, in whatever order they come."""
    store = bench.store
    for name in ("ann", "ben"):
        await store.write(users.create_user, name, Role.ADMIN, now=START)
    results = await asyncio.gather(
        *(store.write(users.set_role, name, Role.MEMBER) for name in ("ann", "ben")), return_exceptions=True
    )

    assert sorted(isinstance(result, LastAdmin) for result in results) == [False, True]


async def test_who_runs_it_is_let_in_and_stays_what_others_made_of_him(bench: Bench) -> None:
    """Ours: administrator when new, or when there is no other; enabled again at each start."""
    store = bench.store
    await store.write(users.ensure_operator, "me", now=START)
    first = (await store.read(users.find_user, "me"))["role"]
    await store.write(users.create_user, "ann", Role.ADMIN, now=START)
    await store.write(users.set_role, "me", Role.MEMBER)
    await store.write(users.disable_user, "me", now=START)
    await store.write(users.ensure_operator, "me", now=START)
    row = await store.read(users.find_user, "me")

    assert (first, row["role"], row["disabled_at"]) == ("admin", "member", None)


@pytest.mark.attack
async def test_disabling_ends_every_token_for_good(bench: Bench) -> None:
    """Ours: also after the user was let in again; none is made meanwhile."""
    store = bench.store
    await store.write(users.create_user, "root", Role.ADMIN, now=START)
    issued = [
        await store.write(accounts.issue_token, kind, bench.user_id, now=START) for kind in ("api", "session")
    ]
    login = await store.write(accounts.issue_token, "login", bench.user_id, now=START)
    await store.write(users.disable_user, "me", now=START)
    late = await store.write(accounts.issue_token, "api", bench.user_id, now=START)
    with pytest.raises(Unauthorised):
        await identify(bench, late)
    with pytest.raises(Forbidden):
        await store.write(tokens.create_token, "api", bench.user_id, TokenWish(name="x"), now=START)
    await store.write(users.enable_user, "me")

    for token in issued:
        with pytest.raises(Unauthorised):
            await identify(bench, token)
    with pytest.raises(Unauthorised):
        await store.write(accounts.login, login, now=START)


async def test_a_token_is_listed_without_its_secret_and_revoked_by_its_owner(bench: Bench) -> None:
    """Ours: with name, scopes, end and workspace."""
    store = bench.store
    agent_id = await store.write(accounts.ensure_agent, bench.user_id, "box", now=START)
    wishes = {
        "api": TokenWish(name="ci", scopes=(Scope.READ,), lifetime=timedelta(days=1)),
        "agent": TokenWish(name="box", agent_id=agent_id, lifetime=timedelta.max),
    }
    made = {
        kind: await store.write(tokens.create_token, kind, bench.user_id, wish, now=START)  # type: ignore[arg-type]
        for kind, wish in wishes.items()
    }
    listed = await store.read(tokens.list_tokens, bench.user_id, tokens.KEY_KINDS, now=START)
    (row, token), other = made["api"], uuid4()
    who = await identify(bench, token)

    assert {item["name"]: item["workspace"] for item in listed} == {"ci": None, "box": "box"}
    assert all("hash" not in item for item in listed)
    assert (who.scopes, who.has(Scope.READ), who.has(Scope.WRITE)) == (frozenset({Scope.READ}), True, False)
    with pytest.raises(NotFound):
        await store.write(tokens.revoke_token, other, row["id"], tokens.KEY_KINDS, now=START)
    with pytest.raises(NotFound):
        await store.write(tokens.revoke_token, bench.user_id, row["id"], {"session"}, now=START)
    await store.write(tokens.revoke_token, bench.user_id, row["id"], tokens.KEY_KINDS, now=START)
    with pytest.raises(Unauthorised):
        await identify(bench, token)
    assert made["agent"][0]["expires_at"] is None


async def test_tokens_have_a_limit_in_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: those that ended don't count."""
    monkeypatch.setattr(tokens, "MAX_TOKENS", 2)
    store, wish = bench.store, TokenWish(name="x", lifetime=timedelta(minutes=1))
    for _ in range(2):
        await store.write(tokens.create_token, "api", bench.user_id, wish, now=START)
    with pytest.raises(QueueFull):
        await store.write(tokens.create_token, "api", bench.user_id, wish, now=START)
    later = START + timedelta(minutes=2)
    await store.write(tokens.create_token, "api", bench.user_id, wish, now=later)

    assert await store.write(tokens.delete_dead, before=later) == 2


@pytest.mark.attack
@pytest.mark.parametrize(
    ("own", "asked", "is_allowed"),
    [
        (None, None, True),
        (None, (Scope.READ,), True),
        ((Scope.ACCOUNT, Scope.READ), (Scope.READ,), True),
        ((Scope.ACCOUNT, Scope.READ), (Scope.READ, Scope.WRITE), False),
        ((Scope.ACCOUNT,), None, False),
    ],
)
def test_a_token_makes_none_that_may_more(
    own: tuple[Scope, ...] | None, asked: tuple[Scope, ...] | None, *, is_allowed: bool
) -> None:
    """Ours: and none that lives longer than itself."""
    who = Identity(
        kind="api",
        token_id=uuid4(),
        user_id=uuid4(),
        user_name="me",
        scopes=None if own is None else frozenset(own),
        expires_at=START + timedelta(hours=1),
    )
    wish = TokenWish(name="x", scopes=asked, lifetime=timedelta.max)
    if not is_allowed:
        with pytest.raises(Forbidden):
            tokens.within_own(who, wish, now=START)
        return

    assert tokens.within_own(who, wish, now=START).lifetime == timedelta(hours=1)


async def test_a_use_is_noted_once_a_minute(bench: Bench) -> None:
    """Ours: whatever number of requests, one write."""
    store = bench.store
    token = await store.write(accounts.issue_token, "api", bench.user_id, now=START)
    token_id = (await identify(bench, token)).token_id
    seen = []
    for seconds in (0, 59, 60, 61):
        await store.write(tokens.touch, token_id, now=START + timedelta(seconds=seconds))
        used = (await identify(bench, token)).used_at
        assert used is not None
        seen.append((used - START).total_seconds())

    assert seen == [0, 0, 60, 60]
    assert (await store.read(users.list_users))[0]["last_seen_at"] == START + timedelta(seconds=60)


ENTRY = AuditEntry(action=AuditAction.LOGIN, actor="me\n", remote="127.0.0.1", details={"a": "b"})


async def test_an_entry_is_there_if_and_only_if_it_was_done(bench: Bench) -> None:
    """Ours: in the transaction of what it tells of."""
    store = bench.store
    run = audit.audited(users.create_user, ENTRY, at=START)
    await store.write(run, "ann", Role.MEMBER, now=START)
    with pytest.raises(BadRequest):
        await store.write(run, "ann", Role.MEMBER, now=START)
    (row,) = await store.read(audit.list_entries)

    assert (row["actor"], row["at"], row["details"]) == ("me\\x0a", START, {"a": "b"})


@pytest.mark.attack
@pytest.mark.parametrize("attempt", ["update", "delete", "truncate"])
async def test_the_audit_log_is_only_added_to(bench: Bench, attempt: str) -> None:
    """Ours: not even by SQL; only what is older than 90 days can be removed."""
    store, now = bench.store, datetime.now(UTC)
    await store.write(audit.note, ENTRY, now=now)
    await store.write(audit.note, ENTRY, now=now - timedelta(days=91))
    table = schema.audit_log
    statements = {
        "update": table.update().values(actor="nobody"),
        "delete": table.delete(),
        "truncate": sa.text(
            "TRUNCATE audit_log" if bench.database.url.startswith("postgres") else "DELETE FROM audit_log"
        ),
    }
    with pytest.raises(sa.exc.DatabaseError, match="only added to"):
        await store.write(lambda connection: connection.execute(statements[attempt]))
    assert await store.write(audit.delete_entries, before=now - timedelta(days=90)) == 1

    assert len(await store.read(audit.list_entries)) == 1


async def test_entries_are_paged_both_ways_and_filtered(bench: Bench) -> None:
    """Ours: newest first; behind an id, oldest first."""
    store = bench.store
    for action in (AuditAction.LOGIN, AuditAction.LOGOUT, AuditAction.LOGIN):
        await store.write(audit.note, AuditEntry(action=action, actor="me"), now=START)
    ids = [row["id"] for row in await store.read(audit.list_entries)]
    older = await store.read(audit.list_entries, before_id=ids[0], limit=1)
    newer = await store.read(audit.list_entries, after_id=ids[2])
    logins = await store.read(audit.list_entries, action="login")

    assert ids == sorted(ids, reverse=True)
    assert [row["id"] for row in older] == [ids[1]]
    assert [row["id"] for row in newer] == [ids[1], ids[0]]
    assert [row["id"] for row in logins] == [ids[0], ids[2]]
    assert await store.read(audit.newest_id) == ids[0]
    assert await store.read(audit.list_entries, actor="x") == []
