"""
What the database keeps sealed: where it is, our own signing keys, and sealing all of it anew.

Keys of before they were sealed are taken as they are, and sealed by the next rotation or start.
"""

import secrets
from datetime import datetime

import sqlalchemy as sa

from chatd.errors import Misuse
from chatd.sealing import KeyUnusable, SealBroken, Sealer
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = ["SEALED", "known_key", "make_key", "reseal_all", "seal_bare_keys", "share_key"]

# Every column that holds something sealed, with its table's key.
SEALED = (
    (schema.mcp_servers.c.id, schema.mcp_servers.c.sealed_headers),
    (schema.secrets.c.name, schema.secrets.c.value),
)
# Bytes of a signing key; also how one that was never sealed is known: a sealed one is longer.
KEY_BYTES = 32
_SECRETS = schema.secrets
# The name of a key that signs nothing: who can open it seals as the other replicas do.
SHARED_KEY = "replicas"


def known_key(connection: sa.Connection, name: str, sealer: Sealer) -> bytes | None:
    """
    The signing key *name*, if there is one.

    Raises:
        SealBroken: it was sealed with another key.
    """
    known = sa.select(_SECRETS.c.value).where(_SECRETS.c.name == name)
    stored: bytes | None = connection.execute(known).scalar_one_or_none()
    if stored is None or len(stored) == KEY_BYTES:
        return stored
    return bytes.fromhex(sealer.open(stored))


def make_key(connection: sa.Connection, name: str, sealer: Sealer, *, now: datetime) -> bytes:
    """
    The signing key *name*, made at first use.

    Raises:
        SealBroken: it was sealed with another key.
    """
    key = known_key(connection, name, sealer)
    if key is not None:
        return key
    fresh = secrets.token_bytes(KEY_BYTES)
    values = {"name": name, "value": sealer.seal(fresh.hex()), "created_at": now}
    if insert_new(connection, _SECRETS, values):
        return fresh
    # Another transaction was first.
    made = known_key(connection, name, sealer)
    if made is None:
        raise Misuse(f"the key {name} exists and was not found")
    return made


def share_key(connection: sa.Connection, sealer: Sealer, *, is_alone: bool, now: datetime) -> None:
    """
    See that all replicas seal with the same key; *is_alone*: there are no others, ours counts from now on.

    Raises:
        KeyUnusable: the others' key is another one.
    """
    try:
        make_key(connection, SHARED_KEY, sealer, now=now)
    except SealBroken as exc:
        if not is_alone:
            text = "other replicas seal secrets with another key; give all the same CHATD_SECRET_KEYS"
            raise KeyUnusable(text) from exc
        connection.execute(_SECRETS.delete().where(_SECRETS.c.name == SHARED_KEY))
        make_key(connection, SHARED_KEY, sealer, now=now)


def seal_bare_keys(connection: sa.Connection, sealer: Sealer) -> int:
    """Seal signing keys that an earlier version kept as they are; how many."""
    bare = [
        (row.name, row.value)
        for row in connection.execute(sa.select(_SECRETS).with_for_update())
        if len(row.value) == KEY_BYTES
    ]
    for name, value in bare:
        sealed = sealer.seal(value.hex())
        connection.execute(_SECRETS.update().where(_SECRETS.c.name == name).values(value=sealed))
    return len(bare)


def reseal_all(connection: sa.Connection, sealer: Sealer) -> int:
    """
    Seal every secret with the first key, and read each back; how many.

    Raises:
        SealBroken: one can't be opened; nothing is changed.

    Transaction: joined; rows are locked, so that none is sealed with an older key meanwhile.
    """
    seal_bare_keys(connection, sealer)
    count = 0
    for key, column in SEALED:
        rows = connection.execute(sa.select(key, column).where(column.is_not(None)).with_for_update()).all()
        for name, sealed in rows:
            fresh = sealer.reseal(sealed)
            connection.execute(column.table.update().where(key == name).values({column.name: fresh}))
        for sealed in connection.execute(sa.select(column).where(column.is_not(None))).scalars():
            sealer.open(sealed)
            count += 1
    return count
