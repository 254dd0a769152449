"""
What must hold of chats and of model requests whatever died, failed or was stopped.

Every function returns problems as sentences; an empty list is the proof. Two views: the
rows (``row_problems``) and the requests that a model server received
(``request_problems``), in the shape of any of the vendors.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.state import ChatState, classify
from chatd.store import queries, schema
from chatd.store.rows import local_calls, message_from_row
from chatd.wire import Message, TextPart, ToolResultPart

__all__ = ["request_problems", "row_problems"]


def row_problems(
    connection: sa.Connection,
    sent: Mapping[UUID, Sequence[str]] | None = None,
    *,
    are_over: bool = True,
    asks_for_summaries: bool = False,
) -> list[str]:
    """
    What is wrong with the chats of a database.

    Args:
        connection: a transaction that reads.
        sent: texts of the messages that were acknowledged, by chat: each must be there once.
        are_over: every chat must have come to rest.
        asks_for_summaries: a summary asked for in vain counts the history's version up and leaves no message.
    """
    problems: list[str] = []
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalar_one()
        problems += [] if found == "ok" else [f"the file is damaged: {found}"]
    known = set()
    for row in connection.execute(sa.select(schema.chats)).mappings():
        known.add(row["id"])
        mine = [
            *_row(connection, row, are_over=are_over),
            *_history(connection, row, may_lag=asks_for_summaries),
        ]
        mine += _lost(connection, row["id"], (sent or {}).get(row["id"], ()))
        problems += [f"chat {row['id']}: {problem}" for problem in mine]
    problems += [f"chat {chat_id} is lost" for chat_id in (sent or {}) if chat_id not in known]
    return problems


def _row(connection: sa.Connection, row: sa.RowMapping, *, are_over: bool) -> Iterator[str]:
    queue = queries.list_queued(connection, row["id"])
    state = classify(row["status"], archived=row["archived"], has_queue=bool(queue))
    if state is ChatState.INVALID:
        yield f"no valid state: {row['status']}, archived {row['archived']}, {len(queue)} queued"
    if are_over and (row["status"] not in {"waiting", "error"} or row["runner_id"] is not None):
        yield f"it is not over: {row['status']}, runner {row['runner_id']}"
    for name in ("history_version", "queue_version", "retry_state_version"):
        if row[name] > row["snapshot_version"]:
            yield f"{name} {row[name]} is newer than the snapshot {row['snapshot_version']}"


def _history(connection: sa.Connection, row: sa.RowMapping, *, may_lag: bool) -> Iterator[str]:
    """Ids, versions, calls and their results, answers that came twice."""
    table = schema.messages
    statement = sa.select(table).where(table.c.chat_id == row["id"]).order_by(table.c.id)
    rows = connection.execute(statement).mappings().all()
    newest = max((message["revision"] for message in rows), default=0)
    if newest > row["history_version"] or (newest < row["history_version"] and not may_lag):
        yield "the history's version is not that of its newest message"
    kept = [message for message in rows if not message["deleted"]]
    mended = {message_id for message in kept for message_id in _mended_by(message)}
    for before, after in pairwise(message for message in kept if message["id"] not in mended):
        if before["revision"] > after["revision"]:
            yield f"message {after['id']} was committed before {before['id']}"
    live = [
        message_from_row(message) for message in kept if not message["compressed"] and not _mended_by(message)
    ]
    yield from _calls([message for message in live if message.visibility != "user"])
    yield from _doubled(live)


def _mended_by(row: sa.RowMapping) -> list[int]:
    """Messages that were written anew in their place, since a vendor refused them, if *row* tells so."""
    content = row["content"] if row["visibility"] == "user" and row["role"] == "assistant" else ()
    notes = [(part.get("provider_metadata") or {}).get("set_aside") or {} for part in content or ()]
    return [int(message_id) for note in notes for message_id in note]


def _calls(messages: Sequence[Message]) -> Iterator[str]:
    """Each call is answered once, right behind its message, in the order of the calls."""
    wanted: list[str] = []
    for message in messages:
        if message.role == "tool":
            for part in message.content:
                if isinstance(part, ToolResultPart):
                    expected = wanted.pop(0) if wanted else None
                    if part.tool_call_id != expected:
                        yield f"message {message.id} answers {part.tool_call_id}, expected was {expected}"
            continue
        if wanted:
            yield f"before message {message.id} these calls have no answer: {wanted}"
        wanted = [call.tool_call_id for call in local_calls(message.content)]
    if wanted:
        yield f"at the end these calls have no answer: {wanted}"


def _doubled(messages: Sequence[Message]) -> Iterator[str]:
    """An answer behind an answer, or calls that another message made already."""
    for before, after in pairwise(messages):
        if before.role == after.role == "assistant":
            yield f"messages {before.id} and {after.id} answer the same"
    answers = [message for message in messages if message.role == "assistant"]
    made = Counter(tuple(call.tool_call_id for call in local_calls(message.content)) for message in answers)
    yield from (f"calls {ids} were made {count} times" for ids, count in made.items() if ids and count > 1)


def _lost(connection: sa.Connection, chat_id: UUID, sent: Iterable[str]) -> Iterator[str]:
    """Messages that were acknowledged and are nowhere, or that are there twice."""
    table = schema.messages
    # A summary repeats, for the model alone, what nobody has answered yet.
    seen = table.c.visibility != "model"
    statement = sa.select(table).where(table.c.chat_id == chat_id, table.c.role == "user", seen)
    said = [message_from_row(row).content for row in connection.execute(statement).mappings()]
    said += [queued.content for queued in queries.list_queued(connection, chat_id)]
    found = Counter(part.text for content in said for part in content if isinstance(part, TextPart))
    for text in sent:
        if found[text] != 1:
            yield f"the user's message {text!r} is there {found[text]} times"


def request_problems(body: Mapping[str, Any]) -> list[str]:
    """What is wrong with a model request: orphaned calls and results, answers behind answers."""
    problems: list[str] = []
    wanted: list[str] = []
    last = ""
    for kind, ids in _steps(body):
        if kind == "results":
            problems += [f"result {call_id} has no call" for call_id in ids if call_id not in wanted]
            wanted = [call_id for call_id in wanted if call_id not in ids]
        else:
            if wanted and not (kind == "assistant" and last == "assistant" and not _is_chat(body)):
                problems.append(f"calls without a result: {wanted}")
                wanted = []
            if kind == last == "assistant" and _is_chat(body):
                problems.append("an assistant's message follows another")
            wanted = [*wanted, *ids] if kind == "assistant" else []
        last = kind
    if wanted or last == "assistant":
        problems.append(f"it ends with an assistant's message, open calls: {wanted}")
    return problems


def _is_chat(body: Mapping[str, Any]) -> bool:
    """Whether one item is one message; else (OpenAI Responses) each call is an item of its own."""
    return "messages" in body


def _steps(body: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Role, or ``results``, of each message, with the ids of its calls or of what it answers."""
    for item in body.get("messages", body.get("input", ())):
        blocks = item.get("content") if isinstance(item.get("content"), list) else []
        if str(item.get("type", "")).endswith("_call_output"):
            yield "results", [item["call_id"]]
        elif str(item.get("type", "")).endswith("_call"):
            yield "assistant", [item["call_id"]]
        elif item.get("role") == "tool":
            yield "results", [item["tool_call_id"]]
        elif results := [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]:
            yield "results", results
        elif item.get("role") in {"user", "assistant"}:
            called = [call["id"] for call in item.get("tool_calls") or ()]
            called += [block["id"] for block in blocks if block.get("type") == "tool_use"]
            yield item["role"], called
