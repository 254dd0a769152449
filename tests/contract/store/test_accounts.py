"""Users, agents and tokens; the ledger; models as rows."""

import re
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from chatd.errors import Unauthorised
from chatd.model_wire import ModelConfig
from chatd.store import accounts, catalog_rows, ledger, schema
from chatd.store.accounts import LIFETIMES, TokenKind
from tests.contract.store.bench import START, Bench

KINDS: tuple[TokenKind, ...] = ("api", "session", "login", "agent")


async def issue(bench: Bench, kind: TokenKind) -> str:
    """A new token of the bench's user."""
    return await bench.store.write(accounts.issue_token, kind, bench.user_id, now=START)


async def is_valid(bench: Bench, token: str, *kinds: TokenKind, after: timedelta = timedelta()) -> bool:
    """Whether the token identifies the bench's user as one of *kinds*."""
    try:
        identity = await bench.store.read(accounts.authenticate, token, frozenset(kinds), now=START + after)
    except Unauthorised:
        return False
    assert (identity.user_id, identity.user_name) == (bench.user_id, "me")
    return True


@pytest.mark.parametrize("kind", KINDS)
async def test_a_token_is_good_for_its_own_kind_only(bench: Bench, kind: TokenKind) -> None:
    """Ours: an agent token opens the link, nothing else; and so on."""
    token = await issue(bench, kind)

    assert await is_valid(bench, token, kind)
    assert await is_valid(bench, token, *KINDS)
    assert not await is_valid(bench, token, *(other for other in KINDS if other != kind))
    assert not await is_valid(bench, token)


@pytest.mark.parametrize("token", ["", "x", "api_", "\x00", "\udcff\ud800", "é" * 300, "api_" + "A" * 43])
async def test_what_was_never_issued_is_not_valid(bench: Bench, token: str) -> None:
    """Ours: also what is no text at all, as a header or a query may bring it."""
    await issue(bench, "api")

    assert not await is_valid(bench, token, *KINDS)
    with pytest.raises(Unauthorised):
        await bench.store.write(accounts.login, token, now=START)


@pytest.mark.parametrize("kind", KINDS)
async def test_tokens_expire_when_they_should(bench: Bench, kind: TokenKind) -> None:
    """Ours: login links live minutes, sessions days, the others until revoked."""
    token, lifetime = await issue(bench, kind), LIFETIMES[kind]

    if lifetime is None:
        assert await is_valid(bench, token, kind, after=timedelta(days=9999))
    else:
        assert await is_valid(bench, token, kind, after=lifetime - timedelta(seconds=1))
        assert not await is_valid(bench, token, kind, after=lifetime)


async def test_revoking_ends_one_kind_of_one_user(bench: Bench) -> None:
    """Ours: a new run ends the tokens of earlier ones, and nobody else's."""
    mine = [await issue(bench, kind) for kind in ("api", "api", "session")]
    other_id = await bench.store.write(accounts.ensure_user, "other", now=START)
    other = await bench.store.write(accounts.issue_token, "api", other_id, now=START)
    await bench.store.write(accounts.revoke_tokens, "api", bench.user_id, now=START)
    identity = await bench.store.read(accounts.authenticate, other, frozenset({"api"}), now=START)

    assert [await is_valid(bench, token, *KINDS) for token in mine] == [False, False, True]
    assert identity.user_name == "other"


async def test_a_login_token_works_once(bench: Bench) -> None:
    """Ours: the second use is refused, the session of the first lives on."""
    token = await issue(bench, "login")
    session = (await bench.store.write(accounts.login, token, now=START)).token
    with pytest.raises(Unauthorised):
        await bench.store.write(accounts.login, token, now=START)

    assert await is_valid(bench, session, "session")
    assert not await is_valid(bench, token, "login")


async def test_only_a_live_login_token_logs_in(bench: Bench) -> None:
    """Ours: expired, revoked or of another kind: no session is made."""
    expired, revoked, api = (
        await issue(bench, "login"),
        await issue(bench, "login"),
        await issue(bench, "api"),
    )
    late = START + timedelta(hours=1)
    with pytest.raises(Unauthorised):
        await bench.store.write(accounts.login, expired, now=late)
    await bench.store.write(accounts.revoke_tokens, "login", bench.user_id, now=START)
    for token in (revoked, api):
        with pytest.raises(Unauthorised):
            await bench.store.write(accounts.login, token, now=START)
    kinds = await bench.store.read(lambda c: set(c.execute(sa.select(schema.api_tokens.c.kind)).scalars()))

    assert kinds == {"login", "api"}


def everything(connection: sa.Connection) -> list[bytes]:
    """All that is stored: the bytes of a file, or every row of every table."""
    if connection.dialect.name == "sqlite":
        path = Path(str(connection.engine.url.database))
        return [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
    tables = schema.metadata.sorted_tables
    return [repr(row).encode() for table in tables for row in connection.execute(sa.select(table))]


async def test_no_token_is_in_the_database(bench: Bench) -> None:
    """Ours: only hashes are stored, in no file of the database."""
    tokens = [await issue(bench, kind) for kind in KINDS]
    tokens.append((await bench.store.write(accounts.login, tokens[2], now=START)).token)
    await bench.create("find me")
    files = await bench.store.read(everything)

    assert any(b"find me" in content for content in files)
    for token in tokens:
        secret = token.partition("_")[2]
        assert re.fullmatch(r"[\w-]{43}", secret)
        assert not any(secret.encode() in content for content in files)


async def test_users_and_agents_are_made_once(bench: Bench) -> None:
    """Ours: by name; the first agent is the oldest."""
    store = bench.store
    assert await store.read(accounts.first_agent, bench.user_id) is None
    old = await store.write(accounts.ensure_agent, bench.user_id, "old", now=START)
    await store.write(accounts.ensure_agent, bench.user_id, "new", now=START + timedelta(days=1))
    other_id = await store.write(accounts.ensure_user, "other", now=START)
    foreign = await store.write(accounts.ensure_agent, other_id, "old", now=START)

    assert await store.write(accounts.ensure_user, "me", now=START) == bench.user_id
    assert await store.write(accounts.ensure_agent, bench.user_id, "old", now=START) == old != foreign
    assert await store.read(accounts.first_agent, bench.user_id) == old


async def test_a_call_belongs_to_the_boot_that_got_it_first(bench: Bench) -> None:
    """Ours: another boot learns who had it, so that the call is never run twice."""
    first, second = await bench.create(), await bench.create()
    claims = [(first, "k", "boot1"), (first, "k", "boot2"), (second, "k", "boot2"), (first, "j", "boot2")]
    owners = [
        await bench.store.write(ledger.claim_call, chat.id, key, boot_id=boot, now=START)
        for chat, key, boot in claims
    ]

    assert owners == ["boot1", "boot1", "boot2", "boot2"]


async def test_models_are_refreshed_and_never_deleted(bench: Bench) -> None:
    """Ours: chats point at models whose key may be gone."""
    config = ModelConfig(
        id=bench.config_id, provider="openai", model="m2", display_name="New", rehearsal=True
    )
    added = ModelConfig(id=uuid.uuid4(), provider="anthropic", model="c", display_name="C")
    await bench.store.write(catalog_rows.save_configs, [config], now=START)
    await bench.store.write(catalog_rows.save_configs, [added], now=START)
    table = schema.model_configs
    rows = await bench.store.read(lambda c: {row.id: row.model for row in c.execute(sa.select(table))})

    assert rows == {bench.config_id: "m2", added.id: "c"}
