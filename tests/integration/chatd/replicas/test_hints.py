"""LISTEN and NOTIFY as lossy hints: cut, and made up for."""

import asyncio
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from cryptography.fernet import Fernet

from chatd.replicas.hints import CHANNEL
from chatd.replicas.poller import Poller
from chatd.store import metadata
from chatd.store.database import Database
from tests.integration.chatd.http.site import LIMIT_S
from tests.integration.chatd.replicas.conftest import NewReplica
from tests.integration.chatd.replicas.test_registry import together
from tests.support.cluster.proxy import CutProxy

OURS = " FROM pg_stat_activity WHERE application_name = 'chatd hints' AND datname = current_database()"
CONNECTED = f"SELECT count(*){OURS}"
CUT = f"SELECT count(pg_terminate_backend(pid)){OURS}"


async def test_a_change_on_one_replica_wakes_a_listener_on_another(new_replica: NewReplica) -> None:
    """Issue: hints."""
    first, second = await new_replica(), await new_replica()
    await together(second).hints.listening.wait()
    chat_id = UUID(await first.quiet_chat())
    hub = second.plane.services.hub
    with hub.watch_chat(chat_id) as chat, hub.watch_owner(first.ids["me"]) as owner:
        async with asyncio.timeout(LIMIT_S):
            await first.store.change(chat_id, metadata.replace_title, "say hello", "new")

            assert await chat.wait() == {chat_id}
            assert await owner.wait() == {chat_id}


async def test_cut_connections_are_made_again_and_what_was_missed_is_found(
    new_replica: NewReplica, database_url: str
) -> None:
    """Issue: reconnect, resubscribe, the poller as safety net; cut by pg_terminate_backend."""
    first, second = await new_replica(), await new_replica()
    chat_id = UUID(await first.quiet_chat())
    hub, hints = second.plane.services.hub, together(second).hints
    admin = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
    async with admin, asyncio.timeout(LIMIT_S):
        for _ in range(3):
            await hints.listening.wait()
            # Those of the round before may not have come back yet, and they are not noticed at once.
            while (await (await admin.execute(CONNECTED)).fetchone() or (0,))[0] < 2:  # noqa: ASYNC110 -- only the server knows
                await asyncio.sleep(0.02)
            with hub.watch_chat(chat_id) as chat:
                await together(second).poller.look_once()
                cut = await admin.execute(CUT)
                row = await cut.fetchone()
                # Nobody listens at this moment, and nobody could say it.
                await first.store.transition(chat_id, lambda tx: tx.archive())
                await first.store.transition(chat_id, lambda tx: tx.unarchive())

                assert row is not None
                assert row[0] >= 2
                assert await chat.wait() == {chat_id}


@pytest.mark.timeout(180)
async def test_a_connection_that_goes_deaf_is_given_up_and_what_it_missed_is_found(
    new_replica: NewReplica, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Bugs 65: half-open LISTEN; nobody ends the connection, only our own signs no longer come.

    The regular look is out of the way: what is found is found by the look behind the new LISTEN.
    """
    monkeypatch.setattr("chatd.replicas.hints.HINT_PROBE_S", 0.1)
    monkeypatch.setattr("chatd.replicas.hints.HINT_SILENCE_S", 1.0)
    monkeypatch.setitem(Poller.__init__.__kwdefaults__, "interval_s", 10 * LIMIT_S)
    folder = psycopg.conninfo.conninfo_to_dict(database_url)["host"]
    proxy = CutProxy(Path(str(folder), ".s.PGSQL.5432"))
    await proxy.start()
    first = await new_replica()
    connect_options = Database.connect_options
    monkeypatch.setattr(
        Database,
        "connect_options",
        lambda self: connect_options(self) | {"host": "127.0.0.1", "port": proxy.port},
    )
    second = await new_replica()
    chat_id = UUID(await first.quiet_chat())
    hub, hints = second.plane.services.hub, together(second).hints
    try:
        async with asyncio.timeout(LIMIT_S):
            await hints.listening.wait()
            with hub.watch_chat(chat_id) as chat:
                await together(second).poller.look_once()
                await chat.wait()
                proxy.hole()
                await first.store.transition(chat_id, lambda tx: tx.archive())
                while hints.listening.is_set():  # noqa: ASYNC110 -- nothing tells of it
                    await asyncio.sleep(0.02)
                # Of what was said into the hole nothing comes out any more.
                proxy.mend()
                await hints.listening.wait()

                assert await chat.wait() == {chat_id}
                await first.store.transition(chat_id, lambda tx: tx.unarchive())
                assert await chat.wait() == {chat_id}
    finally:
        await proxy.close()


async def test_a_replica_knows_when_it_hears_nothing(
    new_replica: NewReplica, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 7: who waits for a chat of another replica's looks more often then."""
    monkeypatch.setattr("chatd.replicas.hints.RECONNECT_S", 10 * LIMIT_S)
    site = await new_replica()
    hub = site.plane.services.hub
    await together(site).hints.listening.wait()
    heard = hub.hears_others
    admin = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
    async with admin, asyncio.timeout(LIMIT_S):
        await admin.execute(CUT)
        while hub.hears_others:  # noqa: ASYNC110 -- what it knows is the point
            await asyncio.sleep(0.01)

    assert heard


async def test_more_hints_than_are_kept_become_one(new_replica: NewReplica) -> None:
    """Ours: a queue with a bound; the others look at everything."""
    first, second = await new_replica(), await new_replica()
    await together(second).hints.listening.wait()
    chat_id = UUID(await first.quiet_chat())
    with second.plane.services.hub.watch_chat(chat_id) as chat:
        for number in range(5_000):
            together(first).hints.tell_link(UUID(int=number))
        async with asyncio.timeout(LIMIT_S):
            assert await chat.wait() == {chat_id}


async def test_nonsense_on_the_channel_harms_nobody(new_replica: NewReplica, database_url: str) -> None:
    """Ours: whoever may notify may wake us, nothing else."""
    site = await new_replica()
    await together(site).hints.listening.wait()
    chat_id = UUID(await site.quiet_chat())
    with site.plane.services.hub.watch_chat(chat_id) as chat:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as admin:
            await admin.execute(f"NOTIFY {CHANNEL}, '[1,'".encode())
        async with asyncio.timeout(LIMIT_S):
            assert await chat.wait() == {chat_id}


async def test_a_deny_list_written_on_one_replica_holds_on_another_at_once(
    new_replica: NewReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: what is kept in memory is read again at the hint, not at the next look."""
    monkeypatch.setattr("chatd.mcp_host.LOOK_S", 10 * LIMIT_S)
    settings = {"secret_keys": (Fernet.generate_key().decode(),), "admins": ("me",)}
    first, second = await new_replica(**settings), await new_replica(**settings)
    await together(second).hints.listening.wait()
    body = {"slug": "far", "url": "http://127.0.0.1:9/mcp", "availability": "default_on"}
    made = await first.ask("POST", "/mcp-servers", status=201, json=body)
    host = second.plane.services.mcp
    async with asyncio.timeout(LIMIT_S):
        while not (host._is_fresh and host._rows):  # noqa: ASYNC110 -- what it keeps is the point
            await asyncio.sleep(0.01)
        await first.ask("PATCH", f"/mcp-servers/{made['id']}", json={"tool_deny_list": ["echo"]})
        while host._rows[0].allows("echo"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    assert host._rows[0].tool_deny_list == ("echo",)
