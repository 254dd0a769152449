"""Limits and groups through the API: who may set them, and what a refused request is told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatd.client import ApiError, ChatClient
from tests.integration.chatd.http.site import Site, serving, text


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane with ``me`` as its administrator."""
    async with serving(tmp_path / "data", admins=("me",), usage_limit_micros=5) as site:
        yield site


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[ChatClient]:
    """The administrator's client."""
    async with ChatClient(site.plane.url, site.tokens["me"]) as client:
        yield client


async def test_a_group_s_limit_stops_its_members(site: Site, admin: ChatClient) -> None:
    """Requirement: the 409 keeps message, spent_micros, limit_micros, resets_at."""
    await admin.save_group("a team", ["other"])
    await admin.set_group_limit("a team", 0)
    status = await site.ask("GET", "/chats/usage-limits/status", who="other")
    refused = await site.ask("POST", "/chats", who="other", status=409, json=text("say hello"))
    limits = await admin.usage_limits()
    await admin.set_user_limit("other", 7)
    own = await site.ask("GET", "/chats/usage-limits/status", who="other")
    await admin.set_user_limit("other", None)
    await admin.set_usage_limits(enabled=False)
    off = await site.ask("GET", "/chats/usage-limits/status", who="other")
    await site.ask("POST", "/chats", who="other", status=201, json=text("say hello"))

    assert (status["spent_micros"], status["limit_micros"], status["period"]) == (0, 0, "month")
    assert {name: refused[name] for name in ("spent_micros", "limit_micros", "resets_at")} == {
        "spent_micros": 0, "limit_micros": 0, "resets_at": status["resets_at"].replace("Z", "+00:00"),
    }  # fmt: skip
    assert (limits.default_limit_micros, limits.groups, limits.users) == (5, {"a team": 0}, {})
    assert own["limit_micros"] == 7
    assert "limit_micros" not in off


async def test_only_an_administrator_sees_and_sets_limits_and_groups(site: Site, admin: ChatClient) -> None:
    """Ours: else a limit would be a wish."""
    async with ChatClient(site.plane.url, site.tokens["other"]) as other:
        for attempt in (
            other.usage_limits(),
            other.set_usage_limits(enabled=False),
            other.set_user_limit("other", 1),
            other.set_user_limit("other", None),
            other.set_group_limit("x", 1),
            other.set_group_limit("x", None),
            other.save_group("x", []),
            other.delete_group("x"),
        ):
            with pytest.raises(ApiError) as caught:
                await attempt
            assert caught.value.status == 403
    with pytest.raises(ApiError) as missing:
        await admin.set_user_limit("nobody", 1)

    assert missing.value.status == 404


async def test_a_chat_is_shared_with_a_group(site: Site, admin: ChatClient) -> None:
    """Spec 3, acl: groups beside users; a name that is none is refused."""
    chat_id = await site.quiet_chat()
    await admin.save_group("team/1", ["other"])
    await site.ask("PATCH", f"/chats/{chat_id}/acl", status=400, json={"groups": {"nobody": "read"}})
    await site.ask("PATCH", f"/chats/{chat_id}/acl", status=400, json={})
    chat = await admin.get_chat((await admin.list_chats())[0].id)
    await admin.share(chat.id, groups={"team/1": "read"})

    assert [reader.name for reader in (await admin.acl(chat.id)).groups] == ["team/1"]
    assert [group.members for group in await admin.groups()] == [["other"]]
    assert (await site.ask("GET", f"/chats/{chat_id}", who="other"))["shared"] is True
    await admin.delete_group("team/1")
    await site.ask("GET", f"/chats/{chat_id}", who="other", status=404)
