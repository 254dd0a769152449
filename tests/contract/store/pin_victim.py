"""A process that pushes, refreshes and rebinds until it is killed; one line for each thing done."""

import asyncio
import random
import sys
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.store.database import Database
from chatd.store.pinning import Pins
from chatd.store.store import Store
from tests.contract.store.context import random_push


async def main(url: str, seed: int) -> None:
    """Work for ever."""
    rng = random.Random(seed)  # noqa: S311 -- a repeatable victim
    store = Store(Database(url), publish=lambda _: None)
    pins = Pins(store)

    def ids(connection: sa.Connection) -> tuple[list[UUID], list[UUID]]:
        chats, agents = sa.select(schema.chats.c.id), sa.select(schema.agents.c.id)
        return list(connection.execute(chats).scalars()), list(connection.execute(agents).scalars())

    chats, agents = await store.read(ids)
    version = 0

    async def work() -> None:
        nonlocal version
        while True:
            version += 1
            match rng.randrange(3):
                case 0:
                    push = random_push(rng, version, initial=True)
                    await pins.take_push(rng.choice(agents), push)
                case 1:
                    await pins.refresh(rng.choice(chats))
                case _:
                    await pins.rebind(rng.choice(chats), rng.choice([*agents, None]))
            print("done", flush=True)  # noqa: T201 -- the parent reads it

    await asyncio.gather(*(work() for _ in range(3)))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
