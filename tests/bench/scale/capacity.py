"""
How many replicas, connections and PostgreSQLs so many chats and workspaces want, by measured constants.

Pure arithmetic and Erlang's formula. ``python -m tests.bench.scale.capacity`` prints the tables of
docs/concepts/scale.md from docs/concepts/scale.json, and with ``--write`` puts them there.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SIZES", "Demand", "Limits", "Workload", "demand", "first_wall", "render", "waiting_probability"]

CONSTANTS = Path(__file__).parents[3] / "docs" / "concepts" / "scale.json"
BEGIN, END = "<!-- tables -->", "<!-- /tables -->"
# Chats that there are, and workspaces that are linked.
SIZES = ((500, 30), (10_000, 1_000), (100_000, 10_000), (1_000_000, 100_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    What people do in the busiest hour; assumptions, none is measured.

    *in_use*: share of all chats that somebody works with; each of those has a turn every
    *turn_every_s* and *viewers* pages open. The share *desktops* of these shows the desktop, *frames_per_s*
    on the average, from a replica that the workspace is not linked to. A chat has *turns* turns in its life.
    A turn of an agent has *weight* times the steps of the measured one, two model calls and one tool.
    """

    in_use: float = 0.1
    turn_every_s: float = 300.0
    viewers: float = 1.0
    desktops: float = 0.2
    frames_per_s: float = 2.0
    turns: float = 20.0
    weight: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    How far one of each is loaded.

    A replica is one process and one core; it is planned for *replica_load* of it and *replica_gb*. One
    PostgreSQL is planned for *postgres_cores* at *postgres_load*, *postgres_transactions* a second (reads
    are most of them), *wal_mb* a second, *connections* and *storage_gb*.
    """

    replica_load: float = 0.6
    replica_gb: float = 4.0
    replica_hearing: float = 0.2
    postgres_cores: float = 32.0
    postgres_load: float = 0.6
    postgres_transactions: float = 10_000.0
    wal_mb: float = 100.0
    connections: float = 500.0
    storage_gb: float = 2_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a size wants; rates are per second."""

    chats: int
    agents: int
    turns: float
    replicas: int
    chatd_cores: float
    chatd_gb: float
    hearing: float
    postgres_cores: float
    transactions: float
    wal_mb: float
    connections: int
    storage_gb: float
    wait_ms: float


def waiting_probability(servers: int, offered: float) -> float:
    """
    Erlang C: the probability that all *servers* are busy when *offered* (arrivals times service) comes.

    1.0 when they can't keep up. Source: A. K. Erlang, 1917; by the recursion of Erlang B, which is stable.
    """
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def demand(
    chats: int,
    agents: int,
    costs: Mapping[str, float],
    workload: Workload = Workload(),
    limits: Limits = Limits(),
) -> Demand:
    """What *chats* and *agents* want, by *costs* as measured."""
    busy = chats * workload.in_use
    turns = busy / workload.turn_every_s
    viewers = busy * workload.viewers
    desktops = viewers * workload.desktops
    frames_us_per_s = workload.frames_per_s * costs["desktop_elsewhere_frame_cpu_us"]
    weight = workload.weight
    turn_s = costs["turn_cpu_ms"] * weight / 1e3
    watched = max(0.0, costs["watched_turn_second_cpu_ms"] / costs["viewers_per_watched_turn"]) * weight / 1e3
    cores = (
        turns * (turn_s + watched * workload.viewers)
        + agents * costs["agent_idle_cpu_us_per_s"] / 1e6
        + viewers * costs["viewer_idle_cpu_us_per_s"] / 1e6
        + desktops * (costs["desktop_idle_cpu_us_per_s"] + frames_us_per_s) / 1e6
    )
    memory_kb = (
        agents * costs["agent_rss_kb"] + viewers * costs["viewer_rss_kb"] + desktops * costs["desktop_rss_kb"]
    )
    memory_gb = memory_kb / 1e6
    room_gb = limits.replica_gb - costs["replica_rss_mb"] / 1e3
    # Every replica hears of every change, however many there are.
    hearing = turns * weight * costs["turn_heard_cpu_ms"] / 1e3
    # And each looks for work among all chats; PostgreSQL does so for all of them together.
    own = costs["replica_idle_cpu"] + hearing + chats * costs["rest_cpu_us_per_s"] / 1e6
    free = max(0.05, limits.replica_load - own)
    replicas = max(2, math.ceil(cores / free), math.ceil(memory_gb / room_gb))
    transactions = (
        turns * weight * costs["turn_transactions"]
        + viewers * costs["viewer_idle_transactions_per_s"]
        + desktops * costs["desktop_idle_transactions_per_s"]
        + chats * costs["rest_transactions_per_s"]
        + replicas * costs["replica_idle_transactions_per_s"]
    )
    offered = cores + replicas * own
    # A step's work is cut into some ten pieces that wait for the process each.
    piece_s = costs["turn_cpu_ms"] / 1e3 / 10
    load = offered / replicas
    wait_s = waiting_probability(1, load) * piece_s / max(1e-9, 1 - load) if load < 1 else math.inf
    return Demand(
        chats=chats,
        agents=agents,
        turns=turns,
        replicas=replicas,
        chatd_cores=offered,
        chatd_gb=memory_gb + replicas * costs["replica_rss_mb"] / 1e3,
        hearing=hearing,
        postgres_cores=(
            turns * weight * costs["turn_postgres_cpu_ms"] / 1e3
            + chats * costs["rest_postgres_cpu_us_per_s"] / 1e6
        ),
        transactions=transactions,
        wal_mb=turns * weight * costs["turn_wal_kb"] / 1e3,
        connections=math.ceil(replicas * costs["connections_per_replica"]),
        storage_gb=chats * (costs["rest_bytes"] + workload.turns * weight * costs["chat_bytes"]) / 1e9,
        wait_ms=wait_s * 1e3,
    )


def walls(found: Demand, limits: Limits = Limits()) -> dict[str, float]:
    """How much of each limit is used; above 1 it is a wall."""
    return {
        "PostgreSQL's connections": found.connections / limits.connections,
        "PostgreSQL's CPU": found.postgres_cores / limits.postgres_cores / limits.postgres_load,
        "PostgreSQL's transactions": found.transactions / limits.postgres_transactions,
        "PostgreSQL's log": found.wal_mb / limits.wal_mb,
        "PostgreSQL's storage": found.storage_gb / limits.storage_gb,
        "hints that everybody hears": found.hearing / limits.replica_hearing,
    }


def first_wall(name: str, costs: Mapping[str, float]) -> int | None:
    """Chats (with a workspace for each ten) at which *name* is a wall; None: beyond ten million."""
    low, high = 100, 10_000_000
    if walls(demand(high, high // 10, costs))[name] < 1:
        return None
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if walls(demand(middle, middle // 10, costs))[name] >= 1 else (middle, high)
    return high


def render(costs: Mapping[str, float]) -> str:
    """All tables as Markdown."""
    return "\n".join([*_costs(costs), "", *_sizes(costs), "", *_walls(costs)])


# What each costs, as text with the constants' names.
COSTS = (
    (
        "a replica that does nothing",
        (
            "{replica_idle_cpu:.1%} of a core, {replica_rss_mb:.0f} MB,"
            " {replica_idle_transactions_per_s:.1f} transactions/s"
        ),
    ),
    ("its connections, after work", "{connections_per_replica:.0f}"),
    (
        "a chat at rest",
        (
            "{rest_rss_kb:.3f} kB and {rest_cpu_us_per_s:.2f} µs/s of a replica,"
            " {rest_postgres_cpu_us_per_s:.2f} µs/s of PostgreSQL, {rest_transactions_per_s:.2g}"
            " transactions/s (beside {rest_chats:,.0f} of them); {rest_bytes:,.0f} bytes of the database, and"
            " {chat_bytes:,.0f} for each turn that it had"
        ),
    ),
    (
        "a turn (two model calls, one tool, 60 fragments)",
        (
            "{turn_cpu_ms:.0f} ms of the replica that drives it, {turn_postgres_cpu_ms:.0f} ms of PostgreSQL,"
            " {turn_transactions:.0f} transactions, {turn_rows_written:.0f} rows written,"
            " {turn_wal_kb:.1f} kB of log"
        ),
    ),
    ("the same turn at every other replica", "{turn_heard_cpu_ms:.2f} ms to hear its hints"),
    (
        "the same turn at another replica with viewers",
        "{watched_turn_second_cpu_ms:.0f} ms for {viewers_per_watched_turn:.0f} of them",
    ),
    (
        "a workspace that is linked",
        "{agent_rss_kb:.0f} kB, {agent_idle_cpu_us_per_s:.0f} µs/s, {agent_connect_cpu_ms:.1f} ms to connect",
    ),
    (
        "a viewer (subscriber) of a chat at rest",
        (
            "{viewer_rss_kb:.0f} kB, {viewer_idle_cpu_us_per_s:.0f} µs/s,"
            " {viewer_idle_transactions_per_s:.2f} transactions/s, {viewer_open_cpu_ms:.0f} ms to open"
        ),
    ),
    (
        "a viewer of a desktop, through a replica",
        (
            "{desktop_rss_kb:.0f} kB, {desktop_idle_cpu_us_per_s:.0f} µs/s,"
            " {desktop_idle_transactions_per_s:.2f} transactions/s, {desktop_open_cpu_ms:.0f} ms to open"
        ),
    ),
    (
        "a frame of 20 kB to it",
        (
            "{desktop_frame_cpu_us:.0f} µs where the workspace is linked,"
            " {desktop_elsewhere_frame_cpu_us:.0f} µs of both replicas where it is linked to another"
        ),
    ),
)


def _costs(costs: Mapping[str, float]) -> Iterator[str]:
    yield "| what | costs |"
    yield "|---|---|"
    yield from (f"| {name} | {text.format(**costs)} |" for name, text in COSTS)


def _sizes(costs: Mapping[str, float]) -> Iterator[str]:
    yield (
        "| chats | workspaces | turns/s | replicas | chatd cores | chatd GB | PostgreSQL cores |"
        " transactions/s | log MB/s | connections | storage GB | wait ms |"
    )
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for chats, agents in SIZES:
        found = demand(chats, agents, costs)
        cells = (
            f"{found.chats:,}",
            f"{found.agents:,}",
            f"{found.turns:.3g}",
            f"{found.replicas:,}",
            f"{found.chatd_cores:.3g}",
            f"{found.chatd_gb:.3g}",
            f"{found.postgres_cores:.3g}",
            f"{found.transactions:,.0f}",
            f"{found.wal_mb:.3g}",
            f"{found.connections:,}",
            f"{found.storage_gb:,.1f}",
            f"{found.wait_ms:.2g}",
        )
        yield "| " + " | ".join(cells) + " |"


def _walls(costs: Mapping[str, float]) -> Iterator[str]:
    yield "| wall | stands at, chats | used at 1,000,000 |"
    yield "|---|--:|--:|"
    used = walls(demand(*SIZES[-1], costs))
    found = [(first_wall(name, costs), name) for name in used]
    for at, name in sorted(found, key=lambda one: one[0] or math.inf):
        yield f"| {name} | {'beyond 10,000,000' if at is None else f'{_rounded(at):,}'} | {used[name]:.0%} |"


def _rounded(number: int) -> int:
    digits = 10 ** max(0, len(str(number)) - 2)
    return round(number / digits) * digits


def write() -> None:
    """Put the tables into the document."""
    path = CONSTANTS.with_suffix(".md")
    head, _, rest = path.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{render(json.loads(CONSTANTS.read_text()))}\n{END}{tail}")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        sys.stdout.write(render(json.loads(CONSTANTS.read_text())) + "\n")
