"""What people set for the deployment: what new chats are told, and what is deleted after a while."""

from datetime import timedelta

import sqlalchemy as sa

from chatd.store import deployment, queries, schema
from chatd.store.idle import delete_archived
from tests.contract.store.bench import START, Bench
from tests.contract.store.test_house import resting


async def told(bench: Bench, **fields: object) -> list[str]:
    """Roles and texts of what the model of a new chat reads."""
    chat = await bench.create(**fields)
    messages = await bench.store.read(queries.prompt_messages, chat.id)
    return [f"{message.role}:{getattr(message.content[0], 'text', '')}" for message in messages]


async def test_a_new_chat_is_told_what_was_set(bench: Bench) -> None:
    """Spec 4.1: by the deployment, by its user and for itself, in one row that people don't see."""
    assert await told(bench) == ["user:hello"]
    await bench.store.write(deployment.save_setting, "system-prompt", "Be\x00 kind.", now=START)
    await bench.store.write(deployment.save_user_prompt, bench.user_id, "Be brief.")
    chat = await bench.create(system_prompt="Be red.")

    assert await told(bench, system_prompt="Be red.") == [
        "system:Be\x00 kind.\n\nBe brief.\n\nBe red.",
        "user:hello",
    ]
    assert await told(bench, mode="computer_use") == ["user:hello"]
    page = await bench.store.read(queries.list_messages, chat.id, limit=10)
    assert [message.role for message in page.messages] == ["user"]
    await bench.store.write(deployment.save_setting, "system-prompt", None, now=START)
    await bench.store.write(deployment.save_user_prompt, bench.user_id, "")
    assert await told(bench) == ["user:hello"]
    assert await bench.store.read(deployment.read_setting, "system-prompt") is None


async def test_settings_are_replaced(bench: Bench) -> None:
    """Ours: the last one counts; zero is a value, not nothing."""
    for days in (3, 0):
        await bench.store.write(deployment.save_setting, "auto-archive-days", days, now=START)
        assert await bench.store.read(deployment.read_setting, "auto-archive-days") == days


async def test_old_archived_families_are_deleted_with_all_that_is_theirs(bench: Bench) -> None:
    """Spec 3, retention-days: whole families, and nobody else's rows."""
    old, kept, late = await resting(bench), await resting(bench), await resting(bench)
    parent = await bench.store.read(queries.get_chat, old, user_id=bench.user_id)
    child = await resting(bench, parent=parent)
    for root in (old, child):
        await bench.store.transition(root, lambda tx: tx.archive())
    before = bench.now()
    await bench.store.transition(late, lambda tx: tx.archive())
    deleted = await bench.store.write(delete_archived, before=before)
    again = await bench.store.write(delete_archived, before=before + timedelta(days=0))

    def left(connection: sa.Connection) -> set[object]:
        return set(connection.execute(sa.select(schema.messages.c.chat_id)).scalars())

    assert (deleted, again) == (1, 0)
    assert await bench.store.read(left) == {kept, late}
    assert len(await bench.store.read(queries.descendants, old)) == 0
