"""Reads, each one a named statement with a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import sqlalchemy as sa

from chatd.constants import CHATS_PAGE
from chatd.errors import NotFound
from chatd.store import schema
from chatd.store.access import may_read, readable_roots
from chatd.store.columns import Json, escape_text
from chatd.store.leases import owned
from chatd.store.rows import chat_from_row, is_clients, message_from_row, open_calls, queued_from_row
from chatd.wire import Chat, Message, QueuedMessage, TextPart, ToolCallPart

__all__ = [
    "ChatFilter",
    "MessagePage",
    "Snapshot",
    "StoredFile",
    "Wanted",
    "descendants",
    "file_sizes",
    "files_by_id",
    "get_chat",
    "get_file",
    "last_answer",
    "latest_by_agent",
    "list_chats",
    "list_messages",
    "list_prompts",
    "list_queued",
    "lock_wanting",
    "prompt_messages",
    "read_row",
    "recently_used",
    "runnable_chats",
    "snapshot_since",
    "snapshot_versions",
    "wanting_chats",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Messages by id, and whether more follow."""

    messages: list[Message]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a stream needs, read in one transaction."""

    row: sa.RowMapping
    messages: list[Message]
    queued: list[QueuedMessage]
    # Messages that the watcher may show were deleted: *messages* is the whole history, not what is new.
    is_reset: bool = False
    # Calls that wait for the chat's client.
    pending: list[ToolCallPart] = field(default_factory=list)


def read_row(connection: sa.Connection, chat_id: UUID) -> sa.RowMapping:
    """
    The chat's row.

    Raises:
        NotFound: there is none.
    """
    statement = sa.select(schema.chats).where(schema.chats.c.id == chat_id)
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFound("no such chat")
    return row


def get_chat(connection: sa.Connection, chat_id: UUID, *, user_id: UUID) -> Chat:
    """
    A chat that *user_id* owns or was given to read, with its children.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    table = schema.chats
    row = connection.execute(_chats().where(table.c.id == chat_id)).mappings().one_or_none()
    if row is None or (row["owner_id"] != user_id and not may_read(connection, chat_id, user_id)):
        raise NotFound("no such chat")
    return _with_children(connection, [row])[0]


def latest_by_agent(
    connection: sa.Connection, agent_ids: Sequence[UUID], *, owner_id: UUID
) -> dict[UUID, Chat]:
    """The owner's most recently used root chat of each workspace, archived ones left out."""
    table = schema.chats
    ranked = (
        sa.select(
            table.c.id,
            sa.func.row_number()
            .over(partition_by=table.c.agent_id, order_by=[table.c.updated_at.desc(), table.c.id.desc()])
            .label("rank"),
        )
        .where(
            table.c.owner_id == owner_id,
            table.c.agent_id.in_(agent_ids),
            table.c.archived.is_(False),
            table.c.parent_chat_id.is_(None),
        )
        .subquery()
    )
    newest = _chats().where(table.c.id.in_(sa.select(ranked.c.id).where(ranked.c.rank == 1)))
    found = _with_children(connection, connection.execute(newest).mappings().all())
    return {chat.agent_id: chat for chat in found if chat.agent_id is not None}


def _chats() -> sa.Select[tuple[object, ...]]:
    """Chats, each with whether an answer came that its owner has not seen."""
    chats, messages = schema.chats, schema.messages
    unread = (
        sa.select(messages.c.id)
        .where(
            messages.c.chat_id == chats.c.id,
            messages.c.id > chats.c.last_read_message_id,
            messages.c.role == "assistant",
            messages.c.visibility != "model",
            messages.c.deleted.is_(False),
        )
        .exists()
    )
    root = sa.func.coalesce(chats.c.root_chat_id, chats.c.id)
    users, groups = (
        sa.select(pairs.c.chat_id).where(pairs.c.chat_id == root).exists()
        for pairs in (schema.chat_readers, schema.chat_reader_groups)
    )
    return sa.select(*chats.c, unread.label("has_unread"), sa.or_(users, groups).label("is_shared"))


def _with_children(connection: sa.Connection, rows: Sequence[sa.RowMapping]) -> list[Chat]:
    table = schema.chats
    statement = (
        _chats()
        .where(table.c.parent_chat_id.in_([row["id"] for row in rows]))
        .order_by(table.c.created_at, table.c.id)
    )
    children: dict[UUID, list[Chat]] = {}
    for child in connection.execute(statement).mappings():
        chat = chat_from_row(child, has_unread=child["has_unread"], is_shared=child["is_shared"])
        children.setdefault(child["parent_chat_id"], []).append(chat)
    return [
        chat_from_row(
            row,
            children=tuple(children.get(row["id"], ())),
            has_unread=row["has_unread"],
            is_shared=row["is_shared"],
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFilter:
    """Which root chats are listed: all of these must hold; ``None`` asks for nothing."""

    archived: bool | None = False
    title: str | None = None
    unread: bool | None = None
    # Chats that others shared, in place of one's own.
    shared_with_me: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    after_id: UUID | None = None
    offset: int = 0
    limit: int = CHATS_PAGE


def list_chats(connection: sa.Connection, *, owner_id: UUID, wanted: ChatFilter | None = None) -> list[Chat]:
    """
    Root chats of *owner_id*, each with its children: pinned ones first, then the most recently used.

    Raises:
        NotFound: *after_id* is no chat of theirs.
    """
    wanted = wanted or ChatFilter()
    after = None if wanted.after_id is None else _position(connection, wanted.after_id, owner_id)
    chats, table = _filtered(wanted, owner_id), schema.chats
    # Apart, so that each is read in the order of an index; there are few pinned ones.
    pinned = chats.where(table.c.pin_order > 0).order_by(table.c.pin_order, *_NEWEST_FIRST)
    others = chats.where(table.c.pin_order == 0).order_by(*_NEWEST_FIRST)
    if after is not None:
        older = sa.tuple_(table.c.updated_at, table.c.id) < sa.tuple_(after.updated_at, after.id)
        behind = sa.or_(
            table.c.pin_order > after.pin_order, sa.and_(table.c.pin_order == after.pin_order, older)
        )
        pinned = pinned.where(behind if after.pin_order else sa.false())
        others = others if after.pin_order else others.where(older)
    found = connection.execute(pinned).mappings().all()
    rows = list(found[wanted.offset : wanted.offset + wanted.limit])
    if len(rows) < wanted.limit:
        skipped = max(0, wanted.offset - len(found))
        rest = others.offset(skipped).limit(wanted.limit - len(rows))
        rows += connection.execute(rest).mappings().all()
    return _with_children(connection, rows)


_NEWEST_FIRST = (schema.chats.c.updated_at.desc(), schema.chats.c.id.desc())


def _filtered(wanted: ChatFilter, owner_id: UUID) -> sa.Select[tuple[object, ...]]:
    """Root chats that *wanted* asks for, in no order."""
    table, chats = schema.chats, _chats()
    statement = chats.where(_mine(owner_id, shared=wanted.shared_with_me), table.c.parent_chat_id.is_(None))
    if wanted.archived is not None:
        statement = statement.where(table.c.archived.is_(wanted.archived))
    if wanted.title is not None:
        statement = statement.where(table.c.title.icontains(escape_text(wanted.title), autoescape=True))
    if wanted.unread is not None:
        (unread,) = (column for column in chats.selected_columns if column.name == "has_unread")
        statement = statement.where(unread if wanted.unread else sa.not_(unread))
    for key, value in wanted.labels.items():
        stored = sa.type_coerce(table.c.labels, Json.impl)[escape_text(key)].as_string()
        statement = statement.where(stored == escape_text(value))
    return statement


def _mine(user_id: UUID, *, shared: bool) -> sa.ColumnElement[bool]:
    if shared:
        return schema.chats.c.id.in_(readable_roots(user_id)) & (schema.chats.c.owner_id != user_id)
    return schema.chats.c.owner_id == user_id


@dataclass(frozen=True, slots=True)
class _Position:
    pin_order: int
    updated_at: datetime
    id: UUID


def _position(connection: sa.Connection, chat_id: UUID, user_id: UUID) -> _Position:
    """Where a chat is in the list (a keyset: nothing is skipped when chats move)."""
    row = read_row(connection, chat_id)
    if row["owner_id"] != user_id and not may_read(connection, chat_id, user_id):
        raise NotFound("no such chat")
    return _Position(row["pin_order"], row["updated_at"], chat_id)


def descendants(connection: sa.Connection, root_id: UUID) -> list[UUID]:
    """All chats below *root_id*, by id."""
    table = schema.chats
    below = sa.select(table.c.id).where(table.c.parent_chat_id == root_id).cte("below", recursive=True)
    child = table.alias("child")
    below = below.union(sa.select(child.c.id).where(child.c.parent_chat_id == below.c.id))
    return list(connection.execute(sa.select(below.c.id).order_by(below.c.id)).scalars())


def list_messages(
    connection: sa.Connection, chat_id: UUID, *, after_id: int = 0, before_id: int | None = None, limit: int
) -> MessagePage:
    """
    Messages that people see, between *after_id* and *before_id*, both excluded.

    By ascending id; with *before_id* the newest first.
    """
    statement = _visible(chat_id, ("user", "both"), after_id)
    if before_id is not None:
        newest_first = schema.messages.c.id.desc()
        statement = statement.where(schema.messages.c.id < before_id).order_by(None).order_by(newest_first)
    rows = connection.execute(statement.limit(limit + 1)).mappings().all()
    return MessagePage(messages=[message_from_row(row) for row in rows[:limit]], has_more=len(rows) > limit)


def prompt_messages(connection: sa.Connection, chat_id: UUID, *, after_id: int = 0) -> list[Message]:
    """
    Messages that the model sees, in order; with *after_id* those behind it.

    Behind a boundary only it and what is newer: the newest compressed row that is the
    model's alone. System rows always.
    """
    table = schema.messages
    statement = _visible(chat_id, ("model", "both"), after_id)
    boundary = (
        sa.select(sa.func.max(table.c.id))
        .where(
            table.c.chat_id == chat_id,
            table.c.deleted.is_(False),
            table.c.compressed.is_(True),
            table.c.visibility == "model",
        )
        .scalar_subquery()
    )
    newest = sa.func.coalesce(boundary, 0)
    statement = statement.where(
        sa.or_(
            table.c.id == newest,
            sa.and_(table.c.compressed.is_(False), sa.or_(table.c.role == "system", table.c.id > newest)),
        )
    )
    return [message_from_row(row) for row in connection.execute(statement).mappings()]


def last_answer(connection: sa.Connection, chat_id: UUID) -> str:
    """The newest text that the model said, before a summary too, and notices behind it; empty for none."""
    table = schema.messages
    answers = _visible(chat_id, ("user", "both"), 0).where(table.c.role == "assistant")
    notices: list[str] = []
    for row in connection.execute(answers.order_by(None).order_by(table.c.id.desc())).mappings():
        text = "\n".join(p.text for p in message_from_row(row).content if isinstance(p, TextPart)).strip()
        if text and row["visibility"] == "user":
            notices.insert(0, f"[{text}]")
        elif text:
            return "\n\n".join([text, *notices])
    return "\n\n".join(notices)


def list_prompts(connection: sa.Connection, chat_id: UUID, *, limit: int) -> list[str]:
    """What the user asked, as text, newest first; blanks are left out."""
    table = schema.messages
    statement = (
        _visible(chat_id, ("user", "both"), 0)
        .where(table.c.role == "user")
        .order_by(None)
        .order_by(table.c.id.desc())
        .limit(limit)
    )
    texts = [
        "\n".join(part.text for part in message_from_row(row).content if isinstance(part, TextPart)).strip()
        for row in connection.execute(statement).mappings()
    ]
    return [text for text in texts if text]


def _visible(chat_id: UUID, visibilities: Sequence[str], after_id: int) -> sa.Select[tuple[object, ...]]:
    table = schema.messages
    return (
        sa.select(*table.c)
        .where(
            table.c.chat_id == chat_id,
            table.c.deleted.is_(False),
            table.c.visibility.in_(visibilities),
            table.c.id > after_id,
        )
        .order_by(table.c.id)
    )


def list_queued(connection: sa.Connection, chat_id: UUID) -> list[QueuedMessage]:
    """Waiting messages, head first."""
    table = schema.queued_messages
    statement = sa.select(table).where(table.c.chat_id == chat_id).order_by(table.c.position, table.c.id)
    return [queued_from_row(row) for row in connection.execute(statement).mappings()]


def snapshot_since(
    connection: sa.Connection, chat_id: UUID, history_version: int, *, after_id: int = 0
) -> Snapshot:
    """
    The row, the visible messages revised after *history_version*, and the queue.

    If a message that the watcher may show was deleted since, the whole history: later any,
    at its first look (*history_version* 0) one up to *after_id*.
    """
    table = schema.messages
    row = read_row(connection, chat_id)
    deleted = sa.select(table.c.id).where(
        table.c.chat_id == chat_id,
        table.c.deleted.is_(True),
        table.c.visibility != "model",
        table.c.revision > history_version,
    )
    if history_version == 0:
        deleted = deleted.where(table.c.id <= after_id, table.c.id > _newest_kept(chat_id, after_id))
    is_reset = connection.execute(deleted.limit(1)).first() is not None
    statement = _visible(chat_id, ("user", "both"), 0)
    if not is_reset:
        statement = statement.where(table.c.revision > history_version)
    return Snapshot(
        row=row,
        messages=[message_from_row(message) for message in connection.execute(statement).mappings()],
        queued=list_queued(connection, chat_id),
        is_reset=is_reset,
        pending=_pending_calls(connection, row),
    )


def _newest_kept(chat_id: UUID, after_id: int) -> sa.ColumnElement[int]:
    """
    The newest visible message up to *after_id*, or 0.

    What is deleted goes with everything behind it, so whoever shows this one was told of
    earlier deletions before it came.
    """
    kept = _visible(chat_id, ("user", "both"), 0).order_by(None).where(schema.messages.c.id <= after_id)
    return kept.with_only_columns(sa.func.coalesce(sa.func.max(schema.messages.c.id), 0)).scalar_subquery()


def pending_calls(connection: sa.Connection, chat_id: UUID) -> list[ToolCallPart]:
    """Calls that wait for the chat's client, in order."""
    return _pending_calls(connection, read_row(connection, chat_id))


def _pending_calls(connection: sa.Connection, row: sa.RowMapping) -> list[ToolCallPart]:
    if row["status"] != "requires_action":
        return []
    names = {tool["name"] for tool in row["dynamic_tools"] or ()}
    calls = open_calls(prompt_messages(connection, row["id"]))
    return [call for call in calls if is_clients(call, names)]


def runnable_chats(
    connection: sa.Connection,
    *,
    now: datetime,
    lease: timedelta,
    limit: int,
    roots: bool = True,
    children: bool = True,
) -> list[UUID]:
    """``wanting_chats``, by the fields of ``Wanted``."""
    wanted = Wanted(now=now, lease=lease, limit=limit, roots=roots, children=children)
    return wanting_chats(connection, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    Which chats a worker looks for: those that nobody owned within *lease*, *limit* at most.

    Without *roots* or *children* there is no room for such, but to be stopped.
    """

    now: datetime
    lease: timedelta
    limit: int
    roots: bool = True
    children: bool = True


def wanting_chats(connection: sa.Connection, wanted: Wanted) -> list[UUID]:
    """Chats that want a runner and have none alive: interrupting first, then the oldest."""
    return [row.id for row in connection.execute(_wanting(wanted))]


def lock_wanting(connection: sa.Connection, wanted: Wanted) -> list[UUID]:
    """
    ``wanting_chats``, locked; those that another transaction holds are left to it.

    Transaction: joined; what is true of them is to be judged again, by what is committed now.
    """
    statement = _wanting(wanted).with_for_update(skip_locked=True, key_share=True, of=schema.chats)
    return [row.id for row in connection.execute(statement)]


def _wanting(wanted: Wanted) -> sa.Select[tuple[UUID]]:
    chats = schema.chats
    statement: sa.Select[tuple[UUID]] = (
        sa.select(chats.c.id)
        .where(
            chats.c.archived.is_(False),
            sa.or_(
                chats.c.status.in_(("running", "interrupting")),
                # One that waits for its client wants a runner only when the time is over.
                sa.and_(
                    chats.c.status == "requires_action", chats.c.requires_action_deadline_at <= wanted.now
                ),
            ),
            ~owned(wanted.now, wanted.lease),
            sa.or_(
                chats.c.status == "interrupting",
                chats.c.parent_chat_id.is_(None) if wanted.roots else sa.false(),
                chats.c.parent_chat_id.is_not(None) if wanted.children else sa.false(),
            ),
        )
        .order_by(_urgency(), chats.c.updated_at, chats.c.id)
        .limit(wanted.limit)
    )
    return statement


def snapshot_versions(connection: sa.Connection, chat_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How far each of the given chats is; those that are deleted are left out."""
    table = schema.chats
    statement = sa.select(table.c.id, table.c.snapshot_version).where(table.c.id.in_(chat_ids))
    return {row.id: row.snapshot_version for row in connection.execute(statement)}


def recently_used(
    connection: sa.Connection, owner_ids: Sequence[UUID], *, since: datetime
) -> list[tuple[UUID, UUID]]:
    """Owners' root chats that were used after *since*: owner and chat."""
    table = schema.chats
    recent = table.c.owner_id.in_(owner_ids) & table.c.parent_chat_id.is_(None) & (table.c.updated_at > since)
    # As the index of the list has them.
    recent &= table.c.pin_order >= 0
    return [
        (row.owner_id, row.id)
        for row in connection.execute(sa.select(table.c.owner_id, table.c.id).where(recent))
    ]


def _urgency() -> sa.Case[int]:
    """Interrupting before requires_action before running."""
    return sa.case({"interrupting": 0, "requires_action": 1}, value=schema.chats.c.status, else_=2)


def get_file(connection: sa.Connection, file_id: UUID, *, user_id: UUID) -> sa.RowMapping:
    """
    A stored file that the user owns, or whose chat they may read.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    table = schema.files
    row = connection.execute(sa.select(table).where(table.c.id == file_id)).mappings().one_or_none()
    if row is not None and row["owner_id"] == user_id:
        return row
    if row is None or row["chat_id"] is None or not may_read(connection, row["chat_id"], user_id):
        raise NotFound("no such file")
    return row


class StoredFile(NamedTuple):
    """A file's type and bytes."""

    media_type: str
    data: bytes


def files_by_id(connection: sa.Connection, file_ids: Sequence[UUID]) -> dict[UUID, StoredFile]:
    """The given files; unknown ids are left out."""
    table = schema.files
    statement = sa.select(table.c.id, table.c.media_type, table.c.bytes).where(table.c.id.in_(file_ids))
    return {row.id: StoredFile(row.media_type, row.bytes) for row in connection.execute(statement)}


def file_sizes(connection: sa.Connection, file_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Bytes of the given files, without reading them; unknown ids are left out."""
    table = schema.files
    size = sa.func.length(table.c.bytes)
    statement = sa.select(table.c.id, size.label("size")).where(table.c.id.in_(file_ids))
    return {row.id: row.size for row in connection.execute(statement)}
