"""Who lives, who is gone, and who gets in."""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

import aiohttp
import pytest
from cryptography.fernet import Fernet

from agentd.wire.version import VERSION
from chatd.administration import administer
from chatd.replicas.dialling import PREFIX
from chatd.replicas.footprint import Footprint
from chatd.replicas.together import Together
from chatd.sealing import KeyUnusable
from chatd.settings import ChatdSettings
from chatd.store import queries, replicas
from chatd.store.store import NewChat
from chatd.wire import TextPart
from tests.integration.chatd.http.site import API, LIMIT_S, UPGRADE, Site, bearer
from tests.integration.chatd.replicas.conftest import NewReplica


def together(site: Site) -> Together:
    """The replica's part among the others."""
    found = site.plane.services.together
    assert found is not None
    return found


async def until_true(check: Callable[[], bool]) -> None:
    """Wait until *check()* holds."""
    async with asyncio.timeout(LIMIT_S):
        while not check():  # noqa: ASYNC110 -- of no event
            await asyncio.sleep(0.02)


async def test_replicas_know_each_other_and_one_that_leaves_is_forgotten(new_replica: NewReplica) -> None:
    """Issue: a registry with heartbeat and advertised address."""
    first, second = await new_replica(), await new_replica()
    known = [dict(together(site).membership.addresses) for site in (first, second)]
    ids = [together(site).membership.replica_id for site in (first, second)]
    await together(second).registry.leave()
    await together(first).registry.beat()

    assert known == [{ids[1]: second.plane.url}, {ids[0]: first.plane.url}]
    assert together(first).membership.addresses == {}


async def test_one_that_falls_silent_loses_its_chats_and_starts_anew(new_replica: NewReplica) -> None:
    """Ours: dead is whose beats stand still; when it wakes up it takes another id."""
    first = await new_replica(replica_interval_s=3600)
    second = await new_replica()
    first_id = together(first).membership.replica_id
    store = second.store

    def own(tx: object) -> None:
        tx.acquire(worker_id=first_id, runner_id=UUID(int=7))  # type: ignore[attr-defined]

    new = NewChat(
        owner_id=second.ids["me"],
        model_config_id=second.plane.services.catalog.default_id,
        content=(TextPart(text="say hello"),),
        title="t",
    )
    claim, store.claim = store.claim, None
    chat = await store.create_chat(new)
    await store.transition(chat.id, own)
    store.claim = claim
    await second.until(str(chat.id), "waiting")
    await together(first).registry.beat()
    fresh = together(first).membership.replica_id

    assert fresh != first_id
    assert {one.id for one in await store.read(replicas.list_live)} == {
        fresh,
        together(second).membership.replica_id,
    }


async def test_a_living_owner_keeps_its_chat(new_replica: NewReplica) -> None:
    """Ours: what is owned is judged under the chat's lock, by every way to own it."""
    first, second = await new_replica(), await new_replica()
    chat_id = UUID(await first.quiet_chat())
    worker_id = together(first).membership.replica_id

    def own(tx: object) -> None:
        tx.send((TextPart(text="more"),), created_by=first.ids["me"])  # type: ignore[attr-defined]
        tx.acquire(worker_id=worker_id, runner_id=UUID(int=7))  # type: ignore[attr-defined]

    await first.store.transition(chat_id, own)
    second.plane.services.hub.on_runnable(chat_id)
    found = await second.store.read(
        queries.runnable_chats,
        now=second.store.now(),
        lease=second.plane.settings.lease,
        limit=10,
    )
    await asyncio.sleep(0.5)

    assert found == []
    assert (await second.store.read(queries.read_row, chat_id))["runner_id"] == UUID(int=7)


async def test_the_next_process_in_a_directory_takes_over_at_once(new_replica: NewReplica) -> None:
    """Ours: it holds the directory's lock, so the one before is dead for certain."""
    first = await new_replica(replica_timeout_s=3600)
    plane = first.plane
    before = together(first).membership.replica_id
    plane._footprint.note_replica(before)
    left = Footprint(plane.settings.data_dir)

    assert left.before.replica_id == before
    await first.store.write(replicas.mark_gone, before)
    assert await first.store.read(replicas.list_live) == []


async def test_only_replicas_get_in(new_replica: NewReplica) -> None:
    """Issue: routes for replicas only; users' and agents' tokens, guesses and the gone are refused alike."""
    first, second = await new_replica(), await new_replica()
    good = together(second).membership.headers
    stranger = {"Authorization": f"Replica {UUID(int=1)}.x"}
    other_id = together(first).membership.replica_id
    stolen = {"Authorization": f"Replica {other_id}.{together(second).membership.credential}"}
    paths = ["/whoami", "/calls", "/parts", "/streams/x", "/nowhere"]
    for path in paths:
        for headers in ({}, bearer(first.tokens["me"]), bearer(first.tokens["agent"]), stranger, stolen):
            assert await first.status("GET", PREFIX + path, headers | UPGRADE) == 401
    inside = [await first.status("GET", PREFIX + path, good) for path in ("/whoami", "/calls", "/parts")]
    elsewhere = await first.status("GET", f"{API}/me", good)
    await together(second).registry.leave()

    assert (inside, elsewhere) == ([200, 400, 400], 401)
    assert await first.status("GET", PREFIX + "/whoami", good) == 401


async def test_a_clock_that_is_set_wrong_changes_nothing(
    new_replica: NewReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: clock steps; the store's time is the database's, carried on by the steady clock."""
    site = await new_replica()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    there = await site.store.read(replicas.database_now)

    assert abs((site.store.now() - there).total_seconds()) < 30


async def test_a_replica_can_t_be_dialled_where_another_answers(new_replica: NewReplica) -> None:
    """Ours: a credential is good for the live row alone, whichever replica is asked."""
    first = await new_replica()
    headers = together(first).membership.headers
    async with (
        aiohttp.ClientSession(first.plane.url) as http,
        http.get(PREFIX + "/whoami", headers=headers) as answer,
    ):
        said = await answer.json()

    assert said["replica_id"] == str(together(first).membership.replica_id)


async def test_all_replicas_seal_with_the_same_key(new_replica: NewReplica) -> None:
    """Ours: one that could not open what others sealed does not start; alone, its key counts."""
    first = await new_replica(replica_interval_s=3600)
    with pytest.raises(KeyUnusable, match="CHATD_SECRET_KEYS"):
        await new_replica(secret_keys=(Fernet.generate_key().decode(),))
    await together(first).registry.leave()
    third = await new_replica(secret_keys=(Fernet.generate_key().decode(),))

    assert third.plane.port


async def test_the_registry_is_listed_for_people(new_replica: NewReplica, database_url: str) -> None:
    """DESIGN 3: who is there, how long silent, with how many workspaces; those that are gone when asked."""
    first, second = await new_replica(), await new_replica()
    socket = await first.http.ws_connect("/api/agent/link", headers=bearer(first.tokens["agent"]))
    hello = {"protocol_version": 1, "name": "box", "version": "0", "boot_id": "boot-1"}
    await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": hello})
    settings = ChatdSettings(data_dir=first.plane.settings.data_dir, database=database_url)
    async with socket, administer(settings) as admin, asyncio.timeout(LIMIT_S):
        links: dict[str, int] = {}
        while not sum(links.values()):
            links = {one.address: one.links for one in await admin.list_replicas(and_gone=False)}
        await together(second).registry.leave()
        left = await admin.list_replicas(and_gone=False)
        known = await admin.list_replicas(and_gone=True)

    ours, other = first.plane.url, second.plane.url
    assert links == {ours: 1, other: 0}
    assert [(one.address, one.version, one.gone_at) for one in left] == [(ours, VERSION, None)]
    assert 0 <= left[0].silent_s < LIMIT_S
    assert {one.address: one.gone_at is None for one in known} == {ours: True, other: False}
