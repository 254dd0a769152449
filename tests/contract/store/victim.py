"""
Does transitions for ever, as fast as it can, until it is killed.

Run as ``python -m tests.contract.store.victim URL SEED``. After each commit it
prints ``chat snapshot``: what it printed must survive whatever happens to it.
"""

import asyncio
import random
import sys
from uuid import UUID

from chatd.errors import Refused
from chatd.store import queries
from chatd.store.database import Database
from chatd.store.machine import ChatTx
from tests.contract.store.bench import Bench, answer, apply, result

MOVES = (
    "send",
    "send",
    "send_interrupt",
    "interrupt",
    "record_attempt",
    "record_retry",
    "commit_step",
    "finish_turn",
    "finish_turn",
    "finish_error",
    "finish_interruption",
    "tools",
)


async def crash(url: str, seed: int) -> None:
    """Never returns."""
    rng = random.Random(seed)  # noqa: S311 -- a schedule, no secret
    bench = Bench(Database(url))
    await bench.prepare()
    chats = await bench.store.read(queries.list_chats, owner_id=bench.user_id)
    ids = [chat.id for chat in chats] or [(await bench.create()).id for _ in range(3)]
    while True:
        await move(bench, rng.choice(ids), rng.choice(MOVES))
        if bench.notices:
            notice = bench.notices.pop()
            sys.stdout.write(f"{notice.chat_id} {notice.snapshot_version}\n")
            sys.stdout.flush()


async def move(bench: Bench, chat_id: UUID, name: str) -> None:
    """One transaction; often one that is refused."""

    def run(tx: ChatTx) -> None:
        if name == "tools":
            tx.commit_step([answer("calls", "a", "b"), result("b"), result("a")])
            tx.finish_turn()
        else:
            apply(tx, name, bench.user_id)

    try:
        await bench.store.transition(chat_id, run)
    except Refused:
        return


if __name__ == "__main__":
    asyncio.run(crash(sys.argv[1], int(sys.argv[2])))
