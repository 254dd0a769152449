"""What a daemon knows of the calls of its earlier boots."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentd import ledger as module
from agentd.calls import CallTable, Knows
from agentd.errors import DataDirUnusable, LedgerFailed, OutcomeUnknown
from agentd.ledger import Answered, DiskLedger, MayRun, Unknown
from agentd.wire.content import ImageContent, TextContent, ToolResult
from agentd.wire.link import ToolCallParams

RESULT = ToolResult(
    content=(TextContent(text="done"), ImageContent(data="aGVsbG8=", mime_type="image/png")),
    structured={"reports": []},
)


@pytest.fixture
async def first(tmp_path: Path) -> AsyncIterator[DiskLedger]:
    """The ledger of a first boot."""
    ledger = DiskLedger(tmp_path / "calls.db", "boot-1")
    await ledger.open()
    yield ledger
    await ledger.close()


async def _second(tmp_path: Path, first: DiskLedger, boot_id: str = "boot-2") -> DiskLedger:
    await first.close()
    ledger = DiskLedger(tmp_path / "calls.db", boot_id)
    await ledger.open()
    return ledger


async def test_answer_outlives_the_boot(tmp_path: Path, first: DiskLedger) -> None:
    """Ours: a repeat is told the same, picture included."""
    begun = await first.begin("a", None)
    await first.answer("a", RESULT)
    second = await _second(tmp_path, first)
    known = await second.begin("a", "boot-1")
    await second.close()

    assert begun == MayRun()
    assert known == Answered(RESULT)


async def test_call_that_was_begun_is_unknown_afterwards(tmp_path: Path, first: DiskLedger) -> None:
    """Ours: it may have been done."""
    await first.begin("a", None)
    second = await _second(tmp_path, first)
    known = [await second.begin("a", boot) for boot in ("boot-1", None, "boot-2")]
    await second.close()

    assert known == [Unknown()] * 3


async def test_call_that_a_known_boot_never_began_may_run_once(tmp_path: Path, first: DiskLedger) -> None:
    """Ours: the daemon died before it began, so nothing was done."""
    second = await _second(tmp_path, first)
    known = [await second.begin("a", "boot-1"), await second.begin("a", "boot-1")]
    await second.close()

    assert known == [MayRun(), Unknown()]


async def test_call_of_a_boot_that_is_not_in_the_ledger_is_unknown(first: DiskLedger) -> None:
    """Ours: its directory may have been another one."""
    assert await first.begin("a", "boot-0") == Unknown()


async def test_old_answers_go_and_their_calls_stay(
    tmp_path: Path, first: DiskLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: bounded; a call whose answer went is never run again."""
    monkeypatch.setattr(module, "MAX_ANSWERS", 2)
    monkeypatch.setattr(module, "TRIM_EVERY", 1)
    for name in "abcd":
        await first.begin(name, None)
        await first.answer(name, RESULT)
    known = [await first.begin(name, None) for name in "abcd"]

    assert known == [Unknown(), Unknown(), Answered(RESULT), Answered(RESULT)]


async def test_boot_whose_calls_are_not_all_here_is_forgotten(
    tmp_path: Path, first: DiskLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: what was dropped must not look as if it had never begun."""
    monkeypatch.setattr(module, "MAX_CALLS", 2)
    monkeypatch.setattr(module, "TRIM_EVERY", 1)
    await first.begin("a", None)
    second = await _second(tmp_path, first)
    for name in "bcd":
        await second.begin(name, None)
        await second.answer(name, RESULT)
    known = await second.begin("a", "boot-1")
    await second.close()

    assert known == Unknown()


async def test_ledger_has_one_owner(tmp_path: Path, first: DiskLedger) -> None:
    """Ours: two daemons would run each other's calls."""
    with pytest.raises(DataDirUnusable, match="another agentd"):
        await DiskLedger(tmp_path / "calls.db", "boot-2").open()


async def test_what_cannot_be_written_down_is_not_run(first: DiskLedger) -> None:
    """Ours: refused, with nothing done."""
    table, runs = CallTable("boot-1", first), []

    async def run() -> ToolResult:
        runs.append(1)
        return RESULT

    await first.close()
    with pytest.raises(LedgerFailed):
        await table.run(ToolCallParams(call_id="a", name="job"), run)

    assert runs == []


async def test_table_tells_over_a_restart(tmp_path: Path, first: DiskLedger) -> None:
    """Invariant: a call id starts at most one run."""
    runs = []

    async def run() -> ToolResult:
        runs.append(1)
        return RESULT

    call = ToolCallParams(call_id="a", name="job", boot_id="boot-1")
    await CallTable("boot-1", first).run(call, run)
    await first.begin("b", None)
    second = await _second(tmp_path, first)
    table = CallTable("boot-2", second)
    again = await table.run(call, run)
    with pytest.raises(OutcomeUnknown):
        await table.run(call.model_copy(update={"call_id": "b"}), run)
    await second.close()

    assert again == RESULT
    assert runs == [1]


async def test_a_call_that_only_reads_is_made_again_and_written_down_nowhere(
    tmp_path: Path, first: DiskLedger
) -> None:
    """Ours: nothing is lost by reading twice, so no disk is waited for; within a boot it runs once."""
    runs = []

    async def run() -> ToolResult:
        runs.append(1)
        return RESULT

    call = ToolCallParams(call_id="a", name="read_file", boot_id="boot-1")
    table = CallTable("boot-1", first)
    for _ in range(2):
        await table.run(call, run, knows=Knows.NOBODY)
    assert runs == [1]
    second = await _second(tmp_path, first)
    await CallTable("boot-2", second).run(call, run, knows=Knows.NOBODY)

    assert runs == [1, 1]
    assert await second.answered("a") is None
    await second.close()


async def test_a_tool_that_knows_its_calls_is_asked_unless_the_answer_is_known(
    tmp_path: Path, first: DiskLedger
) -> None:
    """Ours: the keeper of processes has the intent on its own disk; a second sync proves nothing more."""
    runs = []

    async def run() -> ToolResult:
        runs.append(1)
        return RESULT

    call = ToolCallParams(call_id="a", name="execute", boot_id="boot-1")
    await CallTable("boot-1", first).run(call, run, knows=Knows.TOOL)
    second = await _second(tmp_path, first)
    table = CallTable("boot-2", second)
    again = await table.run(call, run, knows=Knows.TOOL)
    await table.run(call.model_copy(update={"call_id": "b"}), run, knows=Knows.TOOL)
    await second.close()

    assert again == RESULT
    assert runs == [1, 1]
