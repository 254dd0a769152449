"""
Signed addresses of files, for programs that hold no token of ours; short-lived.

The signature holds the file and its end, so a forged or an old one is refused before the
database is asked for bytes.
"""

from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa
from itsdangerous import BadSignature, URLSafeSerializer

from chatd.errors import NotFound
from chatd.sealing import Sealer
from chatd.store import schema
from chatd.store.sealed import known_key, make_key

__all__ = ["open_download", "sign_download"]

KEY_NAME = "file-downloads"
ENDED = "this address has ended"


def sign_download(
    connection: sa.Connection, file_id: UUID, *, expires_at: datetime, sealer: Sealer, now: datetime
) -> str:
    """A token that gives the file's bytes until *expires_at*."""
    key = make_key(connection, KEY_NAME, sealer, now=now)
    return str(_signer(key).dumps([file_id.hex, int(expires_at.timestamp())]))


def open_download(connection: sa.Connection, token: str, *, sealer: Sealer, now: datetime) -> sa.RowMapping:
    """
    The file that *token* gives.

    Raises:
        NotFound: forged or expired, or the file is gone; which one is not told.
    """
    key = known_key(connection, KEY_NAME, sealer)
    if key is None:
        raise NotFound(ENDED)
    try:
        file_id, ends_at = _signer(key).loads(token)
    except (BadSignature, UnicodeError) as exc:
        raise NotFound(ENDED) from exc
    files = schema.files
    row = connection.execute(sa.select(files).where(files.c.id == UUID(file_id))).mappings().one_or_none()
    if row is None or datetime.fromtimestamp(ends_at, UTC) <= now:
        raise NotFound(ENDED)
    return row


def _signer(key: bytes) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=KEY_NAME)
