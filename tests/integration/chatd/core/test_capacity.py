"""How many chats run at once."""

from chatd.store.rows import chat_from_row
from tests.integration.chatd.core.world import Gate, World, say


async def test_a_chat_waits_for_room_but_its_stop_and_its_kind_do_not(world: World) -> None:
    """Spec 8: roots and agents have room of their own, the rest wait, interrupts still pass."""
    await world.restart(max_running_chats=1)
    gate = Gate()
    first = await world.chat([[gate, *say("a")]], value="first")
    await gate.wait_reached()
    second = await world.chat([say("b")], value="second")
    third = await world.chat([say("c")], value="third")
    child = await world.chat([say("d")], value="child", parent=first)
    await world.until_rest(child.id)
    await world.interrupt(third.id)
    await world.until_rest(third.id)

    waiting = await world.row(second.id)
    assert waiting["worker_id"] is None
    assert chat_from_row(waiting).queued_for_capacity
    assert not chat_from_row(await world.row(first.id)).queued_for_capacity
    assert await world.texts(third.id) == ["user:third"]
    gate.opened.set()
    await world.until_rest(first.id)
    await world.until_rest(second.id)
    assert (await world.texts(second.id))[-1] == "assistant:b"


async def test_who_makes_a_chat_runnable_owns_it_in_the_same_commit(world: World) -> None:
    """Spec 9.5: no poll and no second transaction between a message and its runner."""
    gate = Gate()
    chat = await world.chat([[gate, *say("a")]])
    row = await world.row(chat.id)

    assert (row["worker_id"] is None, row["snapshot_version"]) == (False, 1)
    gate.opened.set()
    await world.until_rest(chat.id)
