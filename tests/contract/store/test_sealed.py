"""What the database keeps sealed: signing keys, rotation, nothing in the clear."""

import uuid

import pytest
import sqlalchemy as sa

from chatd.sealing import SealBroken, Sealer, new_key
from chatd.store import schema, sealed
from chatd.store.push_subscriptions import read_key
from tests.contract.store.bench import START, Bench

BARE = b"k" * 32


def add_server(connection: sa.Connection, box: bytes) -> None:
    """A server whose headers are sealed."""
    values = {column.name: "" for column in schema.mcp_servers.c}
    values |= {name: [] for name in ("header_names", "tool_allow_list", "tool_deny_list")}
    values |= dict.fromkeys(("created_at", "updated_at"), START)
    values |= {"enabled": True, "allow_in_plan_mode": True, "call_timeout_s": 1.0}
    connection.execute(
        schema.mcp_servers.insert().values(values | {"id": uuid.uuid4(), "sealed_headers": box})
    )


def boxes(connection: sa.Connection) -> list[bytes]:
    """All that is sealed."""
    return [
        value
        for _, column in sealed.SEALED
        for value in connection.execute(sa.select(column).where(column.is_not(None))).scalars()
    ]


async def test_rotation_seals_every_secret_with_the_first_key(bench: Bench) -> None:
    """Ours: afterwards the old key opens nothing and the new one everything, signing keys unchanged."""
    store, old, new = bench.store, new_key(), new_key()
    signing = await store.write(sealed.make_key, "links", Sealer([old]), now=START)
    await store.write(read_key, Sealer([old]), now=START)
    await store.write(add_server, Sealer([old]).seal("{}"))
    count = await store.write(sealed.reseal_all, Sealer([new, old]))
    again = await store.read(sealed.known_key, "links", Sealer([new]))

    assert (count, again) == (3, signing)
    for box in await store.read(boxes):
        Sealer([new]).open(box)
        with pytest.raises(SealBroken):
            Sealer([old]).open(box)


async def test_a_rotation_that_can_t_open_all_changes_nothing(bench: Bench) -> None:
    """Ours: a secret of an unknown key ends it before anything is written."""
    store, known, lost = bench.store, new_key(), new_key()
    await store.write(sealed.make_key, "links", Sealer([known]), now=START)
    await store.write(add_server, Sealer([lost]).seal("{}"))
    before = await store.read(boxes)
    with pytest.raises(SealBroken):
        await store.write(sealed.reseal_all, Sealer([new_key(), known]))

    assert await store.read(boxes) == before


@pytest.mark.attack
async def test_signing_keys_of_before_are_sealed_and_stay_the_same(bench: Bench) -> None:
    """Ours: links that were handed out go on; who reads the database can't sign any."""
    store, sealer = bench.store, Sealer([new_key()])
    row = {"name": "links", "value": BARE, "created_at": START}
    await store.write(lambda connection: connection.execute(schema.secrets.insert().values(row)))
    assert await store.read(sealed.known_key, "links", sealer) == BARE
    assert await store.write(sealed.seal_bare_keys, sealer) == 1
    (box,) = await store.read(boxes)

    assert BARE not in box
    assert await store.write(sealed.make_key, "links", sealer, now=START) == BARE
    assert await store.write(sealed.seal_bare_keys, sealer) == 0


def test_every_column_of_bytes_is_a_hash_a_file_or_sealed() -> None:
    """Ours: a new one has to be put somewhere."""
    found = {
        f"{table.name}.{column.name}"
        for table in schema.metadata.tables.values()
        for column in table.c
        if isinstance(column.type, sa.LargeBinary)
    }
    told = {f"{column.table.name}.{column.name}" for _, column in sealed.SEALED}

    assert found - told == {
        *("api_tokens.hash", "replicas.credential_hash", "chat_files.bytes", "chat_requests.fingerprint"),
        *("agent_context_snapshots.aggregate_hash", "agent_context_resources.content_hash"),
        *("context_pins.aggregate_hash", "context_pin_resources.content_hash"),
        "chats.context_aggregate_hash",
    }
