"""Hourly work, spending, uploads: what they do to rows on both databases."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from chatd.errors import Refused, UsageLimitReached
from chatd.store import metadata, queries, requests, spending, uploads
from chatd.store.machine import ChatTx
from chatd.store.queries import ChatFilter
from chatd.store.rows import NewMessage
from chatd.store.spending import Period, SpendPolicy, period_bounds
from chatd.store.store import Store
from chatd.wire import Usage
from chatd.worker.housekeeping import archive_idle, idle_limit
from tests.contract.store.bench import START, Bench, text

NOON = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)


def paid(micros: int | None) -> NewMessage:
    """An answer that cost *micros*."""
    return NewMessage(role="assistant", content=text("x"), usage=Usage(total_tokens=5), cost_micros=micros)


async def resting(bench: Bench, **fields: object) -> uuid.UUID:
    """A chat at rest."""
    chat = await bench.create(**fields)
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    return chat.id


async def test_idle_families_are_archived_and_no_others(bench: Bench) -> None:
    """Spec 3: unpinned roots at rest whose newest family message is older than the limit."""
    idle, pinned, lively = await resting(bench), await resting(bench), await resting(bench)
    busy = (await bench.create()).id
    child = await resting(bench, parent=await bench.store.read(queries.get_chat, idle, user_id=bench.user_id))
    await bench.store.change(pinned, metadata.set_pin, 1)
    limit = bench.now()
    await bench.send(lively, "again")
    await bench.store.transition(lively, lambda tx: tx.finish_turn())
    count = await archive_idle(bench.store, before=limit)

    archived = {
        chat_id: (await bench.row(chat_id))["archived"] for chat_id in (idle, child, pinned, lively, busy)
    }
    assert count == 1
    assert archived == {idle: True, child: True, pinned: False, lively: False, busy: False}
    assert await archive_idle(bench.store, before=limit) == 0


def test_the_limit_is_a_day_s_start() -> None:
    """Spec 3: start of the UTC day minus N days."""
    assert idle_limit(NOON, 3) == datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [("day", (3, 5), (3, 6)), ("week", (3, 2), (3, 9)), ("month", (3, 1), (4, 1))],
)
def test_periods_are_utc(period: Period, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Spec 3: day, ISO week from Monday, month."""
    bounds = period_bounds(period, NOON)

    assert bounds == (datetime(2026, *start, tzinfo=UTC), datetime(2026, *end, tzinfo=UTC))
    assert period_bounds("month", datetime(2026, 12, 31, tzinfo=UTC))[1] == datetime(2027, 1, 1, tzinfo=UTC)


async def test_spending_counts_what_was_deleted_and_ends_at_the_limit(bench: Bench) -> None:
    """Spec 2.2, 3: sums include deleted rows; a user's own limit beats the installation's; blocked at >=."""
    chat = await bench.create()
    await bench.commit(chat.id, paid(600), paid(None), paid(400))
    (first, *_) = await bench.messages(chat.id)
    await bench.store.transition(chat.id, lambda tx: tx.edit(first.id, text("anew")))

    async def check(limit: int | None) -> bool:
        policy = SpendPolicy(limit_micros=limit, period="month")
        try:
            await bench.store.read(policy.check, bench.user_id, now=bench.time)
        except UsageLimitReached:
            return False
        return True

    with pytest.raises(UsageLimitReached) as caught:
        await bench.store.read(SpendPolicy(limit_micros=1).check, bench.user_id, now=bench.time)
    assert (caught.value.spent_micros, caught.value.resets_at) == (1000, "2026-02-01T00:00:00+00:00")
    assert [await check(limit) for limit in (None, 1001, 1000, 0)] == [True, True, False, False]
    await bench.store.write(spending.set_limit, bench.user_id, 2000)
    assert await check(0)
    later = SpendPolicy(limit_micros=1, period="month")
    await bench.store.write(spending.set_limit, bench.user_id, None)
    await bench.store.read(later.check, bench.user_id, now=START + timedelta(days=40))
    cost = await bench.store.read(spending.chat_cost, chat.id)
    assert (cost["total_cost_micros"], cost["priced_messages"], cost["unpriced_messages"]) == (1000, 2, 1)


async def test_a_spawn_is_refused_at_the_limit_and_makes_nothing(bench: Bench) -> None:
    """Spec 3: checked inside the transaction on every create."""
    policy = SpendPolicy(limit_micros=0)
    store = Store(bench.database, publish=bench.notices.append, clock=bench.now, spending=policy)
    bench.store, usual = store, bench.store
    with pytest.raises(UsageLimitReached):
        await bench.create()
    listed = await usual.read(queries.list_chats, owner_id=bench.user_id, wanted=ChatFilter(archived=None))

    assert (listed, bench.notices) == ([], [])


async def test_a_promotion_is_not_checked(bench: Bench) -> None:
    """Spec 3: a queued message was admitted already; also a read cursor moves without a version."""
    chat = await bench.create()
    await bench.send(chat.id, "next")
    await bench.store.write(spending.set_limit, bench.user_id, 0)
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    before = await bench.row(chat.id)
    was_read = await bench.store.read(metadata.is_read, chat.id)
    await bench.store.change(chat.id, metadata.mark_read)
    after = await bench.row(chat.id)

    assert await bench.texts(chat.id) == ["user:hello", "user:next"]
    assert {name for name in after if after[name] != before[name]} == {"last_read_message_id"}
    assert (was_read, await bench.store.read(metadata.is_read, chat.id)) == (False, True)


@pytest.mark.parametrize(("labels", "moves"), [({"a": "b"}, True), (None, False)])
@pytest.mark.past_bug(20)
async def test_only_labels_move_a_chat_in_the_list(
    bench: Bench, labels: dict[str, str] | None, *, moves: bool
) -> None:
    """Spec 2.1: updated_at is bumped by labels, not by a title or a pin."""
    chat_id = await resting(bench)
    before = await bench.row(chat_id)
    if labels is None:
        await bench.store.change(chat_id, metadata.set_title, "new")
        await bench.store.change(chat_id, metadata.set_pin, 1)
    else:
        await bench.store.change(chat_id, metadata.set_labels, labels, now=bench.now())
    after = await bench.row(chat_id)

    assert (after["updated_at"] > before["updated_at"]) == moves
    assert after["snapshot_version"] == before["snapshot_version"]


async def test_forgotten_uploads_and_old_answers_go(bench: Bench) -> None:
    """Ours: what no message names, and what no repetition will ask for."""
    kept = {"owner_id": bench.user_id, "media_type": "text/plain", "data": b"x", "name": None}
    old = await bench.store.write(uploads.save_upload, **kept, now=START)
    new = await bench.store.write(uploads.save_upload, **kept, now=START + timedelta(hours=2))
    asked = requests.fingerprint("a")
    await bench.store.write(
        requests.save_answer, bench.user_id, "k", asked=asked, answer={"x": "\x00"}, now=START
    )
    before = START + timedelta(hours=1)

    assert await bench.store.read(requests.earlier_answer, bench.user_id, "k", asked) == {"x": "\x00"}
    assert await bench.store.write(uploads.delete_unlinked, before=before) == 1
    assert await bench.store.write(requests.delete_answers, before=before) == 1
    assert await bench.store.read(queries.files_by_id, [old, new]) == {new: ("text/plain", b"x")}


async def test_a_family_change_that_is_refused_halfway_leaves_no_trace(bench: Bench) -> None:
    """Ours: judged again under the locks, all or nothing."""
    root = await resting(bench)

    def refuse(tx: ChatTx) -> None:
        tx.archive()
        raise Refused("used again")

    with pytest.raises(Refused):
        await bench.store.transition_family(root, refuse)

    assert not (await bench.row(root))["archived"]
