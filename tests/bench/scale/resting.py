"""What chats cost that nobody touches: measured with thousands of them beside an idle replica."""

import asyncio
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from tests.bench.scale.__main__ import Bench

__all__ = ["measure_rest"]

# A chat as often as wanted: the row alone, its history is measured by turns.
COPY = """
    INSERT INTO chats
    SELECT (jsonb_populate_record(one, jsonb_build_object(
        'id', ids.id, 'root_chat_id', CASE WHEN one.root_chat_id IS NULL THEN NULL ELSE ids.id END
    ))).* FROM chats AS one, (SELECT gen_random_uuid() AS id FROM generate_series(1, %s)) AS ids
    WHERE one.id = %s
"""


async def measure_rest(bench: "Bench", chat_id: str, count: int, seconds: float) -> dict[str, float]:
    """Constants of a chat at rest; *chat_id* is one, copied *count* times."""
    without = await bench.over(asyncio.sleep(seconds))

    def copy() -> None:
        with psycopg.connect(bench.postgres.primary.url("chatd"), autocommit=True) as connection:
            connection.execute(COPY, (count, chat_id))
            # What PostgreSQL does once about so many new rows is no cost of rest.
            connection.execute("VACUUM ANALYZE chats")
            connection.execute("CHECKPOINT")

    copied = await bench.over(asyncio.to_thread(copy))
    beside = await bench.over(asyncio.sleep(seconds))
    more = {name: max(0.0, beside[name] - without[name]) / count for name in beside}
    return {
        "rest_chats": float(count),
        "rest_rss_kb": max(0.0, beside["first_rss"] + copied["first_rss"]) / count / 1e3,
        "rest_cpu_us_per_s": more["first_cpu_s"] / seconds * 1e6,
        "rest_postgres_cpu_us_per_s": more["postgres_cpu_s"] / seconds * 1e6,
        "rest_transactions_per_s": more["transactions"] / seconds,
        "rest_bytes": copied["database_bytes"] / count,
    }
