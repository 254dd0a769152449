"""What is set through the API while it runs, and who may."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from chatd.client import ApiError, ChatClient
from chatd.store import queries
from chatd.worker.housekeeping import clean_up
from tests.integration.chatd.http.site import Site, serving, text

SETTINGS: list[tuple[str, Any]] = [
    ("system_prompt", "Be kind."),
    ("plan_instructions", "Think twice."),
    ("auto_archive_days", 3),
    ("retention_days", 4),
]


async def test_an_administrator_sets_what_holds_for_everybody(tmp_path: Path) -> None:
    """Spec 3: config rows; GET 200, PUT 204; others read them and get 403."""
    async with serving(tmp_path / "data", admins=("me",), auto_archive_days=9) as site:
        mine = ChatClient(site.plane.url, site.tokens["me"])
        other = ChatClient(site.plane.url, site.tokens["other"])
        async with mine, other:
            before = [await getattr(other, name)() for name, _ in SETTINGS]
            for name, value in SETTINGS:
                with pytest.raises(ApiError) as caught:
                    await getattr(other, f"set_{name}")(value)
                assert caught.value.status == 403
                await getattr(mine, f"set_{name}")(value)
            after = [await getattr(other, name)() for name, _ in SETTINGS]
            await mine.set_user_prompt(" Be brief. ")

            assert before == ["", "", 9, 0]
            assert after == [value for _, value in SETTINGS]
            assert (await mine.user_prompt(), await other.user_prompt()) == ("Be brief.", "")
            await clean_up(site.plane.services)


async def test_a_prompt_has_a_size(site: Site) -> None:
    """Spec 8: 10,000 characters for a chat; it is kept with the chat, for its model alone."""
    too_long = text("say hello", system_prompt="x" * 10_001)
    await site.ask("POST", "/chats", status=400, json=too_long)
    body = text("say hello", system_prompt="Be red.")
    chat_id = (await site.ask("POST", "/chats", status=201, json=body))["id"]
    await site.until(chat_id, "waiting")
    first = (await site.store.read(queries.prompt_messages, UUID(chat_id)))[0]

    assert (first.role, first.visibility) == ("system", "model")
    assert [row["role"] for row in (await site.ask("GET", f"/chats/{chat_id}/messages"))["messages"]] == [
        "user", "assistant",
    ]  # fmt: skip


async def test_the_default_model_is_chosen_and_stays_so(tmp_path: Path) -> None:
    """Spec 2.3: one default; chats get it, rows tell it, and a restart keeps it; 400 for what is none."""
    async with (
        serving(tmp_path / "data", admins=("me",)) as site,
        ChatClient(site.plane.url, site.tokens["me"]) as me,
    ):
        first, *_, last = await me.models()
        with pytest.raises(ApiError) as unknown:
            await me.set_default_model(UUID(int=1))
        await me.set_default_model(last.id)
        marked = [model.id for model in await me.models() if model.is_default]
        chat = await me.create_chat("say hello")
        await site.until(str(chat.id), "waiting")
        await site.ask("PUT", "/chats/config/default-model", who="other", status=403, json={})
    async with (
        serving(tmp_path / "data", admins=("me",)) as site,
        ChatClient(site.plane.url, site.tokens["me"]) as me,
    ):
        kept = await me.default_model()
        await me.set_default_model(None)

        assert unknown.value.status == 400
        assert (marked, chat.last_model_config_id, kept) == ([last.id], last.id, last.id)
        assert await me.default_model() == first.id
