"""Turns that go wrong: vendors, silence, empty answers, lost leases."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from chatd.errors import ProviderFault
from chatd.faults import FaultKind, make_fault
from chatd.provider.protocol import Alive, Finished, PartDone, ReasoningDelta, TextDelta
from chatd.wire import ReasoningPart, TextPart, Usage
from chatd.worker import worker
from tests.integration.chatd.core.world import LIMIT_S, Gate, Item, World, say

OVERLOADED = make_fault(FaultKind.OVERLOADED, "scripted", retryable=True, status_code=529)
AUTH = make_fault(FaultKind.AUTH, "scripted", retryable=False, status_code=401)


class Noted(Gate):
    """Keeps the time at which the model comes by, and lets it go on."""

    def __init__(self, times: list[datetime]) -> None:
        super().__init__()
        self.times = times

    async def pass_through(self) -> None:
        """Note the time."""
        self.times.append(datetime.now(UTC))


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Retries wait for no time; what they asked for is kept."""
    asked: list[tuple[int, float]] = []

    def none(n: int, hint: float) -> float:
        asked.append((n, hint))
        return 0.0

    monkeypatch.setattr("chatd.worker.runner.effective_delay_s", none)
    return asked


async def test_a_retryable_fault_is_told_and_tried_again(
    world: World, delays: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 6.7: a retry event with the delay that is waited; then success, without a trace."""
    payloads: list[dict[str, Any]] = []

    async def look(chat_id: Any) -> None:
        retry = (await world.row(chat_id))["retry_state"]
        if retry is not None:
            payloads.append(retry)

    world.hooked.after = look
    chat = await world.chat([[TextDelta("lost"), OVERLOADED], [OVERLOADED], say("fine")])
    row = await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:fine"]
    assert [(p["attempt"], p["kind"], p["delay_ms"]) for p in payloads] == [
        (1, "overloaded", 0),
        (2, "overloaded", 0),
    ]
    assert delays == [(0, 0.0), (1, 0.0)]
    assert (row["retry_state"], row["generation_attempt"], row["last_error"]) == (None, 0, None)


async def test_a_vendor_s_hint_is_passed_on(world: World, delays: list[tuple[int, float]]) -> None:
    """Spec 6.7: the hint decides together with our own delay."""
    fault = ProviderFault("slow down", kind="rate_limit", retryable=True, retry_after_s=7.0)
    chat = await world.chat([[fault], say("fine")])
    await world.until_rest(chat.id)

    assert delays == [(0, 7.0)]


async def test_a_final_fault_ends_the_turn_with_its_words(world: World) -> None:
    """Spec 6.7: not retried; last_error is what clients see."""
    chat = await world.chat([[AUTH], say("after")])
    row = await world.until_rest(chat.id, "error")

    error = row["last_error"]
    assert (error["kind"], error["provider"], error["status_code"], error["retryable"]) == (
        "auth",
        "scripted",
        401,
        False,
    )
    assert error["message"] == AUTH.user_text
    await world.send(chat.id, "now")
    row = await world.until_rest(chat.id)
    assert (await world.texts(chat.id), row["last_error"]) == (
        ["user:hello", "user:now", "assistant:after"],
        None,
    )


async def test_retries_end(world: World, delays: list[tuple[int, float]]) -> None:
    """Spec 6.7: give up after max attempts."""
    await world.restart(max_attempts=3)
    chat = await world.chat([[OVERLOADED], [OVERLOADED], [OVERLOADED]])
    row = await world.until_rest(chat.id, "error")

    assert (row["last_error"]["kind"], row["last_error"]["retryable"]) == ("overloaded", True)
    assert len(delays) == 2
    assert row["generation_attempt"] == 3


@pytest.mark.parametrize(("chance", "delay_ms"), [(0.0, 124), (0.5, 136), (1.0, 149)])
async def test_one_delay_is_told_logged_and_waited(
    world: World, monkeypatch: pytest.MonkeyPatch, chance: float, delay_ms: int
) -> None:
    """
    Spec 5: the vendor's hint is a floor; event, log and timer have the same number, seen at the model.

    BUGS 25: chance adds up to a fifth, so that chats which failed together do not retry together.
    """
    await world.stop()
    world.services = replace(world.services, chance=lambda: chance)
    world.start()
    told: list[dict[str, Any]] = []
    asked: list[datetime] = []
    busy = make_fault(FaultKind.RATE_LIMIT, "scripted", retryable=True, retry_after_s=0.1234)

    async def look(chat_id: Any) -> None:
        row = await world.row(chat_id)
        if row["retry_state"] is not None:
            told.append(row["retry_state"])

    world.hooked.after = look
    monkeypatch.setattr("chatd.worker.runner.effective_delay_s", lambda _, hint: max(0.01, hint))
    with capture_logs() as logs:
        chat = await world.chat([[Noted(asked), busy], [Noted(asked), *say("fine")]])
        await world.until_rest(chat.id)
    logged = [entry["delay_ms"] for entry in logs if entry.get("action") == "retry"]

    assert ([retry["delay_ms"] for retry in told], logged) == ([delay_ms], [delay_ms])
    assert (asked[1] - asked[0]).total_seconds() >= delay_ms / 1000


async def test_a_runner_that_takes_over_waits_out_the_delay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a restart must not make a hint void; proved at the model."""
    asked: list[datetime] = []
    monkeypatch.setattr("chatd.worker.runner.effective_delay_s", lambda *_: 0.5)
    chat = await world.chat([[OVERLOADED], [Noted(asked), *say("fine")]])
    row = await world.until(chat.id, lambda row: row["retry_state"] is not None)
    await world.restart()
    await world.until_rest(chat.id)

    assert asked[0] >= datetime.fromisoformat(row["retry_state"]["retrying_at"])


async def test_a_stop_ends_the_wait_for_a_retry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 6.5: what came before the fault is kept; nothing announces a retry any more."""
    monkeypatch.setattr("chatd.worker.runner.effective_delay_s", lambda *_: 3600.0)
    chat = await world.chat([[TextDelta("before the cut"), OVERLOADED]])
    await world.until(chat.id, lambda row: row["retry_state"] is not None)
    await world.interrupt(chat.id)
    row = await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:before the cut"]
    assert row["retry_state"] is None


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([], "startup_timeout"),
        ([Alive()], "stream_silence_timeout"),
        ([TextDelta("half")], "stream_silence_timeout"),
    ],
    ids=["at once", "while it thinks", "in the middle"],
)
async def test_silence_is_a_failure(world: World, script: list[Item], kind: str) -> None:
    """Spec 1.4: two guards, each a retryable fault of its own kind."""
    await world.restart(startup_timeout_s=0.02, stream_silence_timeout_s=0.02, max_attempts=1)
    chat = await world.chat([[*script, Gate()]])
    row = await world.until_rest(chat.id, "error")

    assert (row["last_error"]["kind"], row["last_error"]["retryable"]) == (kind, True)
    assert await world.texts(chat.id) == ["user:hello"]


EMPTY: list[tuple[str, list[Item], str]] = [
    ("nothing", [Finished(reason="stop")], "generic"),
    ("blank", [PartDone(TextPart(text=" \n")), Finished(reason="stop")], "generic"),
    ("filtered", [Finished(reason="content-filter")], "content_filter"),
    (
        "only reasoning",
        [ReasoningDelta("hm"), PartDone(ReasoningPart(text="hm")), Finished(reason="length")],
        "generic",
    ),
    (
        "signed reasoning",
        [PartDone(ReasoningPart(text="", provider_metadata={"s": 1})), Finished(reason="content-filter")],
        "content_filter",
    ),
]


@pytest.mark.parametrize(("script", "kind"), [row[1:] for row in EMPTY], ids=[row[0] for row in EMPTY])
@pytest.mark.past_bug(21)
async def test_an_empty_answer_is_an_error(world: World, script: list[Item], kind: str) -> None:
    """Spec 9, complaint 21: no visible answer is a visible error, not a silent success."""
    chat = await world.chat([script])
    row = await world.until_rest(chat.id, "error")

    assert row["last_error"]["kind"] == kind
    assert await world.texts(chat.id) == ["user:hello"]


async def test_our_own_bug_ends_the_turn_without_its_text(world: World) -> None:
    """Spec 6.7: last_error is a trust boundary; only the exception's type is told."""
    chat = await world.chat([[RuntimeError("secret path")]])
    row = await world.until_rest(chat.id, "error")

    assert "secret" not in str(row["last_error"])
    assert row["last_error"]["detail"] == "RuntimeError"


async def test_tokens_of_the_answer_are_kept(world: World) -> None:
    """Spec 2.2: usage belongs to the assistant's row."""
    usage = Usage(input_tokens=10, output_tokens=2)
    chat = await world.chat([[PartDone(TextPart(text="x")), Finished(reason="stop", usage=usage)]])
    await world.until_rest(chat.id)

    assert (await world.messages(chat.id))[-1].usage == usage


async def test_a_runner_that_lost_its_lease_writes_nothing(world: World) -> None:
    """Spec 6.2: the fence; the old runner leaves silently."""
    gate = Gate()
    chat = await world.chat([[TextDelta("mine"), gate, *say("never")[1:]]])
    await gate.wait_reached()
    other = await world.acquire(chat.id)
    gate.opened.set()
    async with asyncio.timeout(LIMIT_S):
        while world.services.buffer.get(chat.id) is not None:  # noqa: ASYNC110 -- nothing tells of it
            await asyncio.sleep(0)
    row = await world.row(chat.id)

    assert (row["runner_id"], row["status"]) == (other, "running")
    assert await world.texts(chat.id) == ["user:hello"]


async def test_a_failing_heartbeat_does_not_stop_the_worker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: one locked or full database must not end every turn for ever."""
    failed, again = asyncio.Event(), asyncio.Event()
    record = worker._record_beats

    def fails(*args: Any, **kwargs: Any) -> None:
        if not failed.is_set():
            loop.call_soon_threadsafe(failed.set)
            raise sa.exc.OperationalError("beat", {}, Exception("database is locked"))
        record(*args, **kwargs)
        loop.call_soon_threadsafe(again.set)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(worker, "_record_beats", fails)
    await world.restart(heartbeat_interval_s=0.005)
    gate = Gate()
    chat = await world.chat([[gate, *say("alive")]])
    async with asyncio.timeout(LIMIT_S):
        await again.wait()
    gate.opened.set()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[-1] == "assistant:alive"
