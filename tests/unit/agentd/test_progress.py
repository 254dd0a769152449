"""What calls tell of themselves."""

import asyncio

import pytest

from agentd import progress as module
from agentd.progress import Progress

LIMIT_S = 30


async def test_a_listener_hears_the_newest_word_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what a slow connection has no time for is left out; others' calls are not heard."""
    monkeypatch.setattr(module, "GAP_S", 0)
    progress, heard, may_go_on, came = Progress(), [], asyncio.Event(), asyncio.Event()

    async def send(text: str) -> None:
        heard.append(text)
        came.set()
        await may_go_on.wait()

    progress.tell("a", "to nobody")
    forwarding = asyncio.create_task(progress.forward("a", send))
    await asyncio.sleep(0)
    progress.tell("a", "1")
    async with asyncio.timeout(LIMIT_S):
        await came.wait()
        came.clear()
        for text in ("2", "3"):
            progress.tell("a", text)
        progress.tell("b", "another call")
        may_go_on.set()
        await came.wait()
    forwarding.cancel()
    await asyncio.gather(forwarding, return_exceptions=True)

    assert heard == ["1", "3"]
    assert progress._listeners == {}
