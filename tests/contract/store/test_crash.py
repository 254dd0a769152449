"""kill -9 at random moments: what was committed is there, what is there is whole."""

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.state import ChatState, classify
from chatd.store import queries, schema
from chatd.store.database import Database
from chatd.store.rows import message_from_row
from chatd.wire import ToolCallPart, ToolResultPart

ROUNDS = int(os.environ.get("CHATD_CRASH_ROUNDS", "2"))
ROOT = Path(__file__).parents[3]


async def run_and_kill(url: str, seed: int) -> dict[UUID, int]:
    """Let the victim commit a few times, kill it, and return the newest snapshot it told of each chat."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.contract.store.victim", url, str(seed)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            first = await process.stdout.readline()
            # Milliseconds that no test could choose better: the process is anywhere in a transaction.
            lines = [first, *[await process.stdout.readline() for _ in range(seed * 7 % 40)]]
    finally:
        process.kill()
        rest, _ = await process.communicate()
    told: dict[UUID, int] = {}
    for line in [*lines, *rest.splitlines(keepends=True)]:
        if line.endswith(b"\n"):
            chat_id, snapshot = line.decode().split()
            told[UUID(chat_id)] = int(snapshot)
    return told


def check(connection: sa.Connection, told: dict[UUID, int]) -> None:
    """Every invariant of the rows."""
    if connection.dialect.name == "sqlite":
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    for row in connection.execute(sa.select(schema.chats)).mappings():
        queue = queries.list_queued(connection, row["id"])
        table = schema.messages
        statement = sa.select(table).where(table.c.chat_id == row["id"]).order_by(table.c.id)
        messages = connection.execute(statement).mappings().all()
        revisions = [message["revision"] for message in messages]

        assert row["snapshot_version"] >= told.get(row["id"], 0)
        assert revisions == sorted(revisions)
        assert max(revisions) == row["history_version"] <= row["snapshot_version"]
        assert max(row["queue_version"], row["retry_state_version"]) <= row["snapshot_version"]
        state = classify(row["status"], archived=row["archived"], has_queue=bool(queue))
        assert state is not ChatState.INVALID
        check_steps(messages)


def check_steps(messages: Any) -> None:
    """A step is there with all its results or not at all."""
    contents = [message_from_row(row).content[-1] for row in messages]
    for index, part in enumerate(contents):
        if isinstance(part, ToolCallPart):
            following = contents[index + 1 : index + 3]
            assert [p.tool_call_id for p in following if isinstance(p, ToolResultPart)] == ["b", "a"]


@pytest.mark.slow
async def test_a_killed_writer_leaves_whole_transactions(database_url: str) -> None:
    """Ours: acknowledged transactions survive, unfinished ones leave nothing (on the same rows again)."""
    seed = random.randrange(1, 10_000)  # noqa: S311 -- a schedule, no secret
    total = 0
    for number in range(ROUNDS):
        told = await run_and_kill(database_url, seed + number)
        database = Database(database_url)
        try:
            await database.read(check, told)
        finally:
            await database.close()
        total += len(told)

    assert total > 0, f"nothing was committed with seed {seed}"
