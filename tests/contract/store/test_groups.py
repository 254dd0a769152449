"""Groups: who reads by them, and whose limit counts."""

import pytest

from chatd.errors import BadRequest, NotFound
from chatd.store import access, accounts, deployment, groups, queries, spending
from chatd.store.queries import ChatFilter
from chatd.store.spending import SpendPolicy
from tests.contract.store.bench import START, Bench
from tests.contract.store.test_house import paid


async def save(bench: Bench, name: str, *members: str) -> None:
    """Make a group."""
    await bench.store.write(groups.save_group, name, list(members), now=START)


async def test_members_read_what_was_shared_with_their_group(bench: Bench) -> None:
    """Spec 2.1, group_acl: with the root's family, while they are members, and never twice in a list."""
    friend = await bench.store.write(accounts.ensure_user, "friend", now=START)
    root = await bench.create()
    child = await bench.create(parent=root)
    await save(bench, "team", "friend", "me")
    wanted = {"users": {"friend": "read"}, "groups": {"team": "read"}}
    await bench.store.change(root.id, access.change_readers, wanted, now=START)
    shared = ChatFilter(shared_with_me=True)

    async def listed() -> list[bool]:
        found = await bench.store.read(queries.list_chats, owner_id=friend, wanted=shared)
        return [chat.shared for chat in found]

    assert await listed() == [True]
    assert await bench.store.read(queries.list_chats, owner_id=bench.user_id, wanted=shared) == []
    await bench.store.change(root.id, access.change_readers, {"users": {"friend": None}}, now=START)
    assert await listed() == [True]
    assert await bench.store.read(access.may_read, child.id, friend)
    await save(bench, "team", "me")
    assert (await listed(), await bench.store.read(access.may_read, child.id, friend)) == ([], False)
    await bench.store.write(groups.delete_group, "team")
    assert await bench.store.read(access.list_readers, root.id) == {"users": [], "groups": []}
    assert not (await bench.store.read(queries.get_chat, root.id, user_id=bench.user_id)).shared


async def test_a_group_of_nobody_is_refused_whole(bench: Bench) -> None:
    """Ours: a name that is no user's changes nothing."""
    await save(bench, "team", "me")
    with pytest.raises(BadRequest):
        await save(bench, "team", "me", "nobody")
    with pytest.raises(NotFound):
        await bench.store.write(groups.delete_group, "other")
    with pytest.raises(NotFound):
        await bench.store.write(spending.set_named_limit, "group", "other", 1)
    (group,) = await bench.store.read(groups.list_groups)

    assert group[1:] == ("team", ["me"])


async def test_the_nearest_limit_counts(bench: Bench) -> None:
    """Spec 3: the user's own, else the least of the groups', else everybody's; switched off nobody's."""
    policy = SpendPolicy(limit_micros=100)

    async def limit() -> tuple[int | None, str]:
        found = await bench.store.read(policy.limit_of, bench.user_id)
        return found.limit_micros, found.period

    async def save_limits(**fields: object) -> None:
        value = {"enabled": True, "default_limit_micros": None, "period": "day"} | fields
        await bench.store.write(deployment.save_setting, "usage-limits", value, now=START)

    seen = [await limit()]
    await save_limits()
    seen.append(await limit())
    for name, micros in (("a", 40), ("b", 30), ("c", None)):
        await save(bench, name, "me")
        await bench.store.write(spending.set_named_limit, "group", name, micros)
    seen.append(await limit())
    await bench.store.write(spending.set_named_limit, "user", "me", 0)
    seen.append(await limit())
    await save_limits(enabled=False, period="week")
    seen.append(await limit())

    assert seen == [(100, "month"), (None, "day"), (30, "day"), (0, "day"), (None, "week")]
    assert await bench.store.read(spending.list_limits, "group") == {"a": 40, "b": 30}


async def test_spending_is_told(bench: Bench) -> None:
    """Ours: what the period has cost so far, and when it is over."""
    chat = await bench.create()
    await bench.commit(chat.id, paid(600))
    policy = SpendPolicy(limit_micros=1000)
    found = await bench.store.read(policy.spending_of, bench.user_id, now=bench.time)

    assert (found.spent_micros, found.limit_micros, found.start, found.end.month) == (600, 1000, START, 2)
