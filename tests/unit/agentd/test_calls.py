"""The call table: one call id, at most one run."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentd import calls as module
from agentd.calls import CallTable
from agentd.errors import CallCancelled, OutcomeUnknown, ShuttingDown
from agentd.wire.content import TextContent, ToolResult
from agentd.wire.link import ToolCallParams

# Seconds for anything that might hang.
LIMIT_S = 5


@dataclass
class Job:
    """Work that counts its starts and ends when it may."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    starts: int = 0
    cancelled: int = 0
    problem: Exception | None = None

    async def __call__(self) -> ToolResult:
        """Run once more than it should, if the table is wrong."""
        self.starts += 1
        self.started.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.problem is not None:
            raise self.problem
        return ToolResult(content=(TextContent(text=f"run {self.starts}"),))


def _call(call_id: str = "a", *, boot_id: str | None = None, timeout_s: float = 60) -> ToolCallParams:
    return ToolCallParams(call_id=call_id, name="job", boot_id=boot_id, timeout_s=timeout_s)


async def test_repeat_attaches_to_the_run_in_progress() -> None:
    """Invariant: whoever asks how often."""
    table, job = CallTable("boot"), Job()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        askers = [group.create_task(table.run(_call(), job)) for _ in range(3)]
        await job.started.wait()
        job.gate.set()
    await table.close()

    assert job.starts == 1
    assert len({id(asker.result()) for asker in askers}) == 1


async def test_repeat_gets_the_stored_answer() -> None:
    """Ours: also after the run has ended."""
    table, job = CallTable("boot"), Job()
    job.gate.set()
    first = await table.run(_call(), job)
    second = await table.run(_call(boot_id="boot"), job)
    await table.close()

    assert second is first
    assert job.starts == 1


async def test_repeat_of_a_failed_run_fails_the_same_way() -> None:
    """Ours: a failure is an answer too; it is not tried again behind the asker's back."""
    table, job = CallTable("boot"), Job(problem=ZeroDivisionError())
    job.gate.set()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await table.run(_call(), job)
    await table.close()

    assert job.starts == 1


async def test_call_of_another_boot_is_never_run() -> None:
    """Ours: it may have run there, so its outcome is unknown here."""
    table, job = CallTable("boot"), Job()
    with pytest.raises(OutcomeUnknown) as caught:
        await table.run(_call(boot_id="an earlier one"), job)

    assert caught.value.code == "outcome_unknown"
    assert job.starts == 0


async def test_asker_that_leaves_does_not_stop_the_run() -> None:
    """Cancellation: the run goes on; a repeat attaches to it."""
    table, job = CallTable("boot"), Job()
    async with asyncio.timeout(LIMIT_S):
        asker = asyncio.create_task(table.run(_call(), job))
        await job.started.wait()
        asker.cancel()
        await asyncio.wait({asker})
        job.gate.set()
        await table.run(_call(), job)
    await table.close()

    assert asker.cancelled()
    assert (job.starts, job.cancelled) == (1, 0)


async def test_cancel_stops_the_run_and_its_repeats() -> None:
    """Ours: a cancelled call stays cancelled."""
    table, job = CallTable("boot"), Job()
    async with asyncio.timeout(LIMIT_S):
        asker = asyncio.create_task(table.run(_call(), job))
        await job.started.wait()
        await table.cancel("a")

        assert job.cancelled == 1
        for again in (asker, table.run(_call(), job)):
            with pytest.raises(CallCancelled):
                await again
    assert job.starts == 1


async def test_cancel_of_what_does_not_run_does_nothing() -> None:
    """Ours: late cancellations are ordinary."""
    table, job = CallTable("boot"), Job()
    job.gate.set()
    await table.cancel("a")
    first = await table.run(_call(), job)
    await table.cancel("a")

    assert await table.run(_call(), job) is first
    await table.close()


async def test_run_ends_at_its_limit_and_stays_ended() -> None:
    """Ours: the run is stopped, not only the wait."""
    table, job = CallTable("boot"), Job()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await table.run(_call(timeout_s=0.01), job)

    assert (job.starts, job.cancelled) == (1, 1)


async def test_oldest_answers_make_room_and_running_calls_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: bounded memory; what runs is never forgotten."""
    monkeypatch.setattr(module, "MAX_STORED_ANSWERS", 3)
    table, slow, quick = CallTable("boot"), Job(), Job()
    quick.gate.set()
    async with asyncio.timeout(LIMIT_S):
        asker = asyncio.create_task(table.run(_call("slow"), slow))
        await slow.started.wait()
        for number in range(10):
            await table.run(_call(f"quick {number}"), quick)
        stored = list(table._runs)
        slow.gate.set()
        await asker
    await table.close()

    assert stored == ["slow", "quick 8", "quick 9"]
    assert slow.starts == 1


async def test_close_stops_what_runs_and_refuses_what_comes() -> None:
    """Ours: nothing is left running."""
    table, job = CallTable("boot"), Job()
    asker = asyncio.create_task(table.run(_call(), job))
    async with asyncio.timeout(LIMIT_S):
        await job.started.wait()
        await table.close()
        with pytest.raises(CallCancelled):
            await asker
        with pytest.raises(ShuttingDown):
            await table.run(_call("b"), job)
        await table.close()

    assert (job.starts, job.cancelled) == (1, 1)


class CallTableMachine(RuleBasedStateMachine):
    """Any order of asking, leaving, finishing, cancelling, evicting and closing."""

    ids = st.sampled_from(["a", "b", "c"])
    boots = st.sampled_from([None, "boot", "other"])

    @initialize()
    def begin(self) -> None:
        """A fresh table with its own loop."""
        self.runner = asyncio.Runner()
        self.table = CallTable("boot")
        self.jobs: dict[str, Job] = {name: Job() for name in ("a", "b", "c")}
        self.askers: list[tuple[str, asyncio.Task[ToolResult]]] = []
        self.closed = False
        self._settle()

    def _settle(self) -> None:
        async def turns() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        self.runner.run(turns())

    @rule(name=ids, boot=boots)
    def ask(self, name: str, boot: str | None) -> None:
        """Ask, as a new or a repeated request."""

        async def begin() -> asyncio.Task[ToolResult]:
            return asyncio.create_task(self.table.run(_call(name, boot_id=boot), self.jobs[name]))

        starts = self.jobs[name].starts
        self.askers.append((name, self.runner.run(begin())))
        self._settle()
        if boot == "other" or self.closed:
            assert self.jobs[name].starts == starts

    @rule(index=st.integers(0, 5))
    def leave(self, index: int) -> None:
        """An asker goes away: its link dropped."""
        if index < len(self.askers):
            self.askers[index][1].cancel()
            self._settle()

    @rule(name=ids)
    def finish(self, name: str) -> None:
        """The work ends."""
        self.jobs[name].gate.set()
        self._settle()

    @rule(name=ids)
    def cancel(self, name: str) -> None:
        """Somebody stops it."""
        self.runner.run(self.table.cancel(name))

    @rule()
    def close(self) -> None:
        """The daemon ends."""
        self.runner.run(self.table.close())
        self.closed = True

    @invariant()
    def at_most_one_run_each(self) -> None:
        """The table's invariant."""
        for job in getattr(self, "jobs", {}).values():
            assert job.starts <= 1

    def teardown(self) -> None:
        """Every asker has an end once the table is closed."""
        if hasattr(self, "runner"):
            self.close()
            self._settle()
            assert all(task.done() for _, task in self.askers)
            for _, task in self.askers:
                if not task.cancelled():
                    task.exception()
            self.runner.close()


TestCallTableMachine = CallTableMachine.TestCase
TestCallTableMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
