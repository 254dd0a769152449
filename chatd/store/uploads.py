"""
Files that people upload: stored first, linked to a chat by the message that names them.

A file belongs to at most one chat. Past ``MAX_FILES`` of a chat the oldest links are
evicted, with their bytes, in the transaction that adds the newest.
"""

import uuid
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from chatd.constants import MAX_FILES
from chatd.errors import BadRequest
from chatd.store import schema
from chatd.store.locked import LockedChat
from chatd.wire import ChatFile, FilePart, Part

__all__ = ["delete_unlinked", "link_files", "list_files", "save_upload"]

_FILES = schema.files


def save_upload(
    connection: sa.Connection,
    *,
    owner_id: UUID,
    name: str | None,
    media_type: str,
    data: bytes,
    now: datetime,
) -> UUID:
    """Keep a file that no message names yet; returns its id."""
    file_id = uuid.uuid4()
    values = {"id": file_id, "owner_id": owner_id, "name": name, "media_type": media_type}
    connection.execute(_FILES.insert().values(**values, bytes=data, origin="upload", created_at=now))
    return file_id


def link_files(tx: LockedChat, content: tuple[Part, ...]) -> tuple[Part, ...]:
    """
    Link the files that *content* names to the chat; the parts with names and types filled in.

    Raises:
        BadRequest: a file is missing, expired, or belongs to another chat or user.

    Transaction: joined.
    """
    if not any(isinstance(part, FilePart) for part in content):
        return content
    linked = tuple(_link(tx, part) if isinstance(part, FilePart) else part for part in content)
    _evict(tx)
    return linked


def _link(tx: LockedChat, part: FilePart) -> FilePart:
    file_id = UUID(part.file_id)
    usable = (
        (_FILES.c.id == file_id)
        & (_FILES.c.owner_id == tx["owner_id"])
        & (_FILES.c.origin == "upload")
        & (_FILES.c.chat_id.is_(None) | (_FILES.c.chat_id == tx.chat_id))
    )
    statement = (
        _FILES.update()
        .where(usable)
        .values(
            chat_id=tx.chat_id, linked_at=sa.func.coalesce(_FILES.c.linked_at, sa.bindparam("now", tx.now))
        )
        .returning(_FILES.c.name, _FILES.c.media_type)
    )
    row = tx.connection.execute(statement).one_or_none()
    if row is None:
        raise BadRequest(f"there is no file {file_id} that this chat may use; upload it again")
    return FilePart(media_type=row.media_type, name=row.name, file_id=str(file_id))


def _evict(tx: LockedChat) -> None:
    newest = (
        sa.select(_FILES.c.id)
        .where(_FILES.c.chat_id == tx.chat_id, _FILES.c.origin == "upload")
        .order_by(_FILES.c.linked_at.desc(), _FILES.c.created_at.desc(), _FILES.c.id.desc())
        .limit(MAX_FILES)
    )
    kept = list(tx.connection.execute(newest).scalars())
    if len(kept) == MAX_FILES:
        mine = (_FILES.c.chat_id == tx.chat_id) & (_FILES.c.origin == "upload")
        gone = tx.connection.execute(_FILES.delete().where(mine, _FILES.c.id.not_in(kept))).rowcount
        if gone:
            what = "1 older file was" if gone == 1 else f"{gone} older files were"
            tx.warnings.append(f"{what} dropped: a chat keeps its newest {MAX_FILES}")


def list_files(connection: sa.Connection, chat_id: UUID) -> list[ChatFile]:
    """What people gave to a chat, the oldest first; ``MAX_FILES`` at most."""
    size = sa.func.length(_FILES.c.bytes).label("size_bytes")
    statement = (
        sa.select(_FILES.c.id, _FILES.c.name, _FILES.c.media_type, _FILES.c.created_at, size)
        .where(_FILES.c.chat_id == chat_id, _FILES.c.origin == "upload")
        .order_by(_FILES.c.linked_at, _FILES.c.created_at, _FILES.c.id)
    )
    return [ChatFile.model_validate(dict(row)) for row in connection.execute(statement).mappings()]


def delete_unlinked(connection: sa.Connection, *, before: datetime) -> int:
    """Delete uploads from before *before* that no message ever named; how many."""
    forgotten = _FILES.c.chat_id.is_(None) & (_FILES.c.created_at < before)
    return connection.execute(_FILES.delete().where(forgotten)).rowcount
