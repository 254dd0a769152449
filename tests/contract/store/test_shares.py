"""Links that share a desktop: signed, expiring, revocable, counted."""

import uuid
from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from itsdangerous import URLSafeSerializer

from chatd.errors import NotFound, QueueFull
from chatd.place_wire import DesktopShare
from chatd.sealing import Sealer, new_key
from chatd.store import accounts, schema, shares
from tests.contract.store.bench import START, Bench

HOUR = timedelta(hours=1)
SEALER = Sealer([new_key()])


async def make_chat(bench: Bench) -> tuple[UUID, UUID]:
    """A chat with a workspace, and that workspace."""
    agent_id = await bench.store.write(accounts.ensure_agent, bench.user_id, "box", now=START)
    chat = await bench.create("hi")

    def give(connection: sa.Connection) -> None:
        table = schema.chats
        connection.execute(table.update().where(table.c.id == chat.id).values(agent_id=agent_id))

    await bench.store.write(give)
    return chat.id, agent_id


async def share(bench: Bench, chat_id: UUID, lifetime: timedelta = HOUR) -> tuple[DesktopShare, str]:
    """A link that was made at the start."""
    return await bench.store.write(
        shares.create_share, chat_id, bench.user_id, lifetime=lifetime, sealer=SEALER, now=START
    )


async def is_open(bench: Bench, token: str, after: timedelta = timedelta()) -> bool:
    """Whether the link shows anything."""
    try:
        await bench.store.read(shares.open_share, token, sealer=SEALER, now=START + after)
    except NotFound:
        return False
    return True


async def test_a_link_shows_its_chat_s_desktop_until_it_ends(bench: Bench) -> None:
    """The issue: signed, expiring."""
    chat_id, agent_id = await make_chat(bench)
    made, token = await share(bench, chat_id)
    shown = await bench.store.read(shares.open_share, token, sealer=SEALER, now=START)

    assert (shown.share_id, shown.agent_id, shown.root_chat_id) == (made.id, agent_id, chat_id)
    assert await is_open(bench, token, HOUR - timedelta(seconds=1))
    assert not await is_open(bench, token, HOUR)


async def test_a_revoked_link_shows_nothing_and_the_others_go_on(bench: Bench) -> None:
    """The issue: revocable, each by itself and once."""
    chat_id, _ = await make_chat(bench)
    (first, token), (second, other) = await share(bench, chat_id), await share(bench, chat_id)
    await bench.store.write(shares.revoke_share, chat_id, first.id, now=START)

    assert not await is_open(bench, token)
    assert await is_open(bench, other)
    assert [row.id for row in await bench.store.read(shares.list_shares, chat_id, now=START)] == [second.id]
    for wrong_chat, share_id in ((chat_id, first.id), (uuid.uuid4(), second.id)):
        with pytest.raises(NotFound):
            await bench.store.write(shares.revoke_share, wrong_chat, share_id, now=START)


@pytest.mark.parametrize("change", ["cut", "longer", "other key", "nothing", "surrogates"])
async def test_a_forged_link_shows_nothing(bench: Bench, change: str) -> None:
    """The issue: signed; an end that was moved is noticed before the database is asked."""
    chat_id, _ = await make_chat(bench)
    made, token = await share(bench, chat_id)
    later = int((START + 100 * HOUR).timestamp())
    forged = {
        "cut": token[:-1],
        "longer": token + "A",
        "other key": str(URLSafeSerializer(b"x", salt="desktop-shares").dumps([made.id.hex, later])),
        "nothing": "",
        "surrogates": "\udcff",
    }[change]

    assert not await is_open(bench, forged)


async def test_nothing_is_open_before_the_first_link(bench: Bench) -> None:
    """Ours: the key is made with the first link."""
    assert not await is_open(bench, "abc")


async def test_openings_are_counted(bench: Bench) -> None:
    """The issue: access is logged; the owner sees how often."""
    chat_id, _ = await make_chat(bench)
    made, _ = await share(bench, chat_id)
    for minutes in (1, 2):
        await bench.store.write(shares.note_view, made.id, now=START + timedelta(minutes=minutes))
    (row,) = await bench.store.read(shares.list_shares, chat_id, now=START)

    assert (row.views, row.last_viewed_at) == (2, START + timedelta(minutes=2))
    assert row.url is None


async def test_links_are_limited_and_end_with_the_workspace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: bounded; a chat without a workspace shows nothing."""
    monkeypatch.setattr(shares, "MAX_SHARES", 2)
    chat = await bench.create("no workspace")
    _, token = await share(bench, chat.id)
    await share(bench, chat.id)

    assert not await is_open(bench, token)
    with pytest.raises(QueueFull):
        await share(bench, chat.id)
