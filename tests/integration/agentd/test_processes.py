"""Commands that outlive the call and the daemon, through a real keeper."""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import BaseModel

from agentd.errors import CommandRefused, NotFound, OutcomeUnknown
from agentd.processes.client import KeeperClient
from agentd.processes.ledger import Ledger
from agentd.processes.messages import (
    LIST,
    OUTPUT,
    SIGNAL,
    START,
    ListParams,
    OutputParams,
    ProcessList,
    ProcessReport,
    SignalParams,
    Started,
    StartParams,
)
from agentd.processes.table import ProcessTable
from agentd.tools import processes
from agentd.tools.processes import Commands, process_tools
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from computer.session.process import ProcessWatch

CHAT = "chat"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A private directory with a short path."""
    with tempfile.TemporaryDirectory(prefix="keeper-") as name:
        yield Path(name)


@pytest.fixture
async def keeper(directory: Path) -> AsyncIterator[KeeperClient]:
    """A client; its keeper and all processes are gone afterwards."""
    client = KeeperClient(directory, dict(os.environ))
    yield client
    await client.close()
    _, alive = psutil.wait_procs(_of(directory), timeout=20)
    assert not alive


def _of(directory: Path) -> list[psutil.Process]:
    """Keepers that serve *directory*."""
    every = psutil.process_iter(["cmdline"])
    return [process for process in every if str(directory) in (process.info["cmdline"] or ())]


def _pid_pipe(directory: Path) -> Path:
    """A pipe for a command to write a pid to."""
    os.mkfifo(directory / "pid")
    return directory / "pid"


async def _watch(pipe: Path) -> ProcessWatch:
    """Watch the process whose number comes through *pipe*."""
    return ProcessWatch(int(await asyncio.to_thread(pipe.read_text)))


async def _signal(client: KeeperClient, process_id: str, chat: str = CHAT) -> ProcessReport:
    params = SignalParams(process_id=process_id, chat_id=chat, signal="kill")
    return await client.call(SIGNAL, params, ProcessReport)


async def _listed(client: KeeperClient, chat: str) -> list[str]:
    found = await client.call(LIST, ListParams(chat_id=chat), ProcessList)
    return [process.process_id for process in found.processes]


def _params(command: str, key: str = "1", chat: str = CHAT) -> StartParams:
    return StartParams(
        key=key, chat_id=chat, command=command, workdir="/", environment={"PATH": os.environ["PATH"]}
    )


async def _start(client: KeeperClient, command: str, key: str = "1") -> str:
    return (await client.call(START, _params(command, key), Started)).process_id


async def _report(
    client: KeeperClient, process_id: str, wait_s: float = 20, chat: str = CHAT
) -> ProcessReport:
    params = OutputParams(process_id=process_id, chat_id=chat, wait_s=wait_s)
    return await client.call(OUTPUT, params, ProcessReport, wait_s)


async def test_output_and_exit_code(keeper: KeeperClient) -> None:
    """Both streams in one, in order; nothing to read from; the code is the command's."""
    process_id = await _start(keeper, "echo out; echo err >&2; cat; exit 3")

    report = await _report(keeper, process_id)

    assert (report.output, report.exit_code, report.running) == ("out\nerr\n", 3, False)


async def test_signal_ends_the_whole_group(keeper: KeeperClient, directory: Path) -> None:
    """A shell's children go with it; the code tells which signal."""
    pipe = _pid_pipe(directory)
    process_id = await _start(keeper, f"sleep 600 & echo $! > {pipe}; wait")
    child = await _watch(pipe)

    await _signal(keeper, process_id)

    assert (await _report(keeper, process_id)).exit_code == 128 + signal.SIGKILL
    assert await child.wait_within(20)
    with pytest.raises(CommandRefused, match="ended already"):
        await _signal(keeper, process_id)


async def test_chats_do_not_see_each_other(keeper: KeeperClient) -> None:
    """Another chat's process is not there, whatever is asked of it."""
    process_id = await _start(keeper, "sleep 600")

    with pytest.raises(NotFound):
        await _report(keeper, process_id, 0, chat="other")
    with pytest.raises(NotFound):
        await _signal(keeper, process_id, chat="other")
    assert await _listed(keeper, "other") == []
    assert await _listed(keeper, CHAT) == [process_id]


async def test_a_key_runs_once(keeper: KeeperClient, directory: Path) -> None:
    """Fifty askers with one key, one run; another command for the key is refused."""
    command = f"echo x >> {directory}/count"

    answers = await asyncio.gather(*(keeper.call(START, _params(command), Started) for _ in range(50)))
    await _report(keeper, answers[0].process_id)

    assert len({answer.process_id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1
    assert (directory / "count").read_text() == "x\n"
    with pytest.raises(CommandRefused, match="another command"):
        await _start(keeper, "true")


async def test_next_daemon_finds_what_runs(keeper: KeeperClient, directory: Path) -> None:
    """A daemon that goes without a word leaves its commands to the next one."""
    first = KeeperClient(directory, dict(os.environ))
    gate = directory / "gate"
    os.mkfifo(gate)
    process_id = await _start(first, f"echo before; cat {gate}; echo after")
    await first.detach()

    again = await keeper.call(START, _params(f"echo before; cat {gate}; echo after"), Started)
    gate.write_text("between\n")

    assert (again.process_id, again.is_new) == (process_id, False)
    assert (await _report(keeper, process_id)).output == "before\nbetween\nafter\n"


async def test_killed_keeper_never_runs_a_key_again(keeper: KeeperClient, directory: Path) -> None:
    """What ran in a keeper that was killed has an unknown outcome; other keys go on in a new keeper."""
    await _report(keeper, await _start(keeper, f"echo x >> {directory}/count"))
    [old] = _of(directory)
    old.kill()
    await asyncio.to_thread(old.wait, 20)

    with pytest.raises(OutcomeUnknown):
        await _start(keeper, f"echo x >> {directory}/count")
    await _report(keeper, await _start(keeper, f"echo y >> {directory}/count", key="2"))

    assert (directory / "count").read_text() == "x\ny\n"


@pytest.mark.parametrize("end", ["killed", "closed"])
async def test_a_process_of_an_earlier_keeper_has_an_unknown_outcome(directory: Path, end: str) -> None:
    """Issue: a restart keeps a process reachable or says "unknown", never that there was none."""
    first = KeeperClient(directory, dict(os.environ))
    process_id = await _start(first, "exit 3")
    await _report(first, process_id)
    if end == "killed":
        [old] = _of(directory)
        old.kill()
        await asyncio.to_thread(old.wait, 20)
        await first.detach()
    else:
        await first.close()
    second = KeeperClient(directory, dict(os.environ))
    try:
        with pytest.raises(OutcomeUnknown, match="restarted"):
            await _report(second, process_id, 0)
        with pytest.raises(OutcomeUnknown):
            await _signal(second, process_id)
        with pytest.raises(NotFound):
            await _report(second, process_id, 0, chat="other")
        with pytest.raises(NotFound):
            await _report(second, "0" * 32, 0)
    finally:
        await second.close()


async def test_close_ends_what_left_its_group(keeper: KeeperClient, directory: Path) -> None:
    """A daemonised grandchild is found by its mark."""
    pipe = _pid_pipe(directory)
    await _start(keeper, f"setsid sh -c 'echo $$ > {pipe}; exec sleep 600' >/dev/null 2>&1 &")
    grandchild = await _watch(pipe)

    await keeper.close()

    assert not grandchild.is_alive


class SlowLedger(Ledger):
    """A disk that takes its time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked, self.may_write = threading.Event(), threading.Event()

    def record(self, key: str, process_id: str, chat_id: str | None) -> None:
        """Wait at the gate."""
        self.asked.set()
        assert self.may_write.wait(30)
        super().record(key, process_id, chat_id)


async def test_what_begins_for_a_daemon_that_goes_meanwhile_is_found_by_the_next(directory: Path) -> None:
    """Found by killing daemons at random: a connection that ended took the start with it, half done."""
    ledger = SlowLedger(directory / "keeper.jsonl")
    table = ProcessTable(ledger)
    params = _params(f"echo x >> {directory}/count")
    starting = asyncio.create_task(table.start(params))
    assert await asyncio.to_thread(ledger.asked.wait, 30)
    starting.cancel()
    ledger.may_write.set()
    await asyncio.gather(starting, return_exceptions=True)
    again = await table.start(params)
    report = await table.output(OutputParams(process_id=again.process_id, chat_id=CHAT, wait_s=30))
    await table.close()

    assert starting.cancelled()
    assert (again.is_new, report.running) == (False, False)
    assert (directory / "count").read_text() == "x\n"


async def test_endless_output_is_bounded(keeper: KeeperClient) -> None:
    """A flood keeps its head and its tail, and what is left out is counted."""
    process_id = await _start(keeper, "yes 0123456789 | head -c 20000000; printf end")

    report = await _report(keeper, process_id)

    assert report.output.startswith("0123456789\n")
    assert report.output.endswith("end")
    assert len(report.output) < 40_000
    assert report.original_bytes == 20_000_003
    assert report.omitted_bytes == 20_000_003 - 32 * 1024


async def _run(client: KeeperClient, name: str, call_id: str = "1", **arguments: Any) -> ToolResult:
    commands = Commands(client, environment=lambda: dict(os.environ), workdir=None)
    tools = {tool.definition.name: tool for tool in process_tools(commands)}
    return await tools[name].run(
        ToolCallParams(call_id=call_id, name=name, arguments=arguments, chat_id=CHAT)
    )


async def test_execute_answers_with_data(keeper: KeeperClient) -> None:
    """Output, code, duration; variables keep programs from asking."""
    result = await _run(
        keeper, "execute", command="echo $TERM $AGENTD_CHAT_ID $GIT_TERMINAL_PROMPT; pwd", workdir="/tmp"
    )

    assert result.structured is not None
    assert result.structured["success"] is True
    assert result.structured["output"] == "dumb chat 0\n/tmp\n"
    assert result.structured["exit_code"] == 0


@pytest.mark.parametrize("tool", ["execute", "process_output"])
async def test_what_was_printed_so_far_is_told(
    keeper: KeeperClient, directory: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """The issue: progress for long ones; only what is new, and nothing once it has ended."""
    monkeypatch.setattr(processes, "TELL_S", 0.02)
    os.mkfifo(directory / "gate")
    told: list[tuple[str, str]] = []
    came = asyncio.Event()

    def tell(call_id: str, text: str) -> None:
        told.append((call_id, text))
        came.set()

    commands = Commands(keeper, environment=lambda: dict(os.environ), workdir=None, tell=tell)
    command = f"echo on; cat {directory}/gate"
    arguments: dict[str, Any] = {"command": command, "timeout": "60s"}
    if tool == "process_output":
        begun = await _run(keeper, "execute", command=command, run_in_background=True)
        process_id = (begun.structured or {})["background_process_id"]
        arguments = {"process_id": process_id, "wait_timeout": "60s"}
    run = next(one for one in process_tools(commands) if one.definition.name == tool).run
    running = asyncio.create_task(
        run(ToolCallParams(call_id="c", name=tool, arguments=arguments, chat_id=CHAT))
    )
    async with asyncio.timeout(30):
        await came.wait()
    await asyncio.to_thread((directory / "gate").write_text, "off\n")
    result = await running
    count = len(told)
    await asyncio.sleep(0.1)

    assert told[0] == ("c", "on\n")
    assert set(told) <= {("c", "on\n"), ("c", "on\noff\n")}
    assert len(told) == count <= 2
    assert (result.structured or {})["output"] == "on\noff\n"


async def test_execute_that_takes_too_long_goes_on(keeper: KeeperClient, directory: Path) -> None:
    """The answer has the id; the process can be read, listed and ended."""
    os.mkfifo(directory / "gate")
    result = await _run(keeper, "execute", command=f"echo on; cat {directory}/gate", timeout="100ms")

    assert result.structured is not None
    process_id = result.structured["background_process_id"]
    assert (result.structured["success"], result.structured["exit_code"]) == (False, -1)
    listed = await _run(keeper, "process_list")
    assert listed.structured is not None
    assert [p["process_id"] for p in listed.structured["processes"]] == [process_id]
    (directory / "gate").write_text("off\n")
    ended = await _run(keeper, "process_output", process_id=process_id)
    assert ended.structured is not None
    assert (ended.structured["output"], ended.structured["exit_code"]) == ("on\noff\n", 0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"command": " "}, "empty"),
        ({"command": "true", "timeout": 0}, "more than 0"),
        ({"command": "true", "timeout": "soon"}, "no duration"),
        ({"command": "true", "workdir": "tmp"}, "workdir"),
        ({"command": "true", "workdir": "/no/such"}, "workdir"),
        ({"command": "true", "colour": "red"}, "colour"),
    ],
)
async def test_bad_arguments_start_nothing(
    keeper: KeeperClient, arguments: dict[str, Any], text: str
) -> None:
    """A result to read, and no process."""
    result = await _run(keeper, "execute", **arguments)

    assert result.is_error
    assert text in str(result.content)


async def test_cancelled_execute_ends_its_command(keeper: KeeperClient, directory: Path) -> None:
    """A person's stop reaches the process."""
    pipe = _pid_pipe(directory)
    task = asyncio.create_task(_run(keeper, "execute", command=f"echo $$ > {pipe}; exec sleep 600"))
    process = await _watch(pipe)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert not process.is_alive


class SlowToTell(KeeperClient):
    """Knows an answer some time before it tells it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, dict(os.environ))
        self.knows = asyncio.Event()
        self.may_tell = asyncio.Event()

    async def call(self, method: str, params: BaseModel, result: type[Any], wait_s: float = 0) -> Any:
        """Ask, then wait at the gate."""
        answer = await super().call(method, params, result, wait_s)
        if method == START:
            self.knows.set()
            await self.may_tell.wait()
        return answer


async def test_cancelled_while_it_starts_leaves_nothing(keeper: KeeperClient, directory: Path) -> None:
    """Ours: the process runs before anybody knows its id."""
    pipe, slow = _pid_pipe(directory), SlowToTell(directory)
    task = asyncio.create_task(_run(slow, "execute", command=f"echo $$ > {pipe}; exec sleep 600"))
    await slow.knows.wait()
    process = await _watch(pipe)

    task.cancel()
    slow.may_tell.set()
    await asyncio.gather(task, return_exceptions=True)
    await slow.detach()

    assert task.cancelled()
    assert not process.is_alive


async def test_background_answers_at_once(keeper: KeeperClient) -> None:
    """By the mark at its end as by the option; the default wait then shows the whole of it."""
    result = await _run(keeper, "execute", command="echo done &")

    assert result.structured is not None
    ended = await _run(keeper, "process_output", process_id=result.structured["background_process_id"])
    assert ended.structured is not None
    assert ended.structured["output"] == "done\n"


async def test_a_command_that_wants_a_terminal_has_one(keeper: KeeperClient) -> None:
    """The issue: a PTY as an option; what is printed comes as it was, all of it, and the exit code."""
    command = "test -t 1 && test -t 2 && stty size <&1; echo $TERM; seq 1 2000; exit 3"
    with_one = await _run(keeper, "execute", command=command, pty=True, timeout="60s")
    without = await _run(keeper, "execute", call_id="2", command=command, timeout="60s")
    numbers = "".join(f"{number}\n" for number in range(1, 2001))

    assert with_one.structured is not None
    assert without.structured is not None
    assert with_one.structured["output"] == f"24 80\nxterm\n{numbers}"
    assert (with_one.structured["exit_code"], with_one.structured["running"]) == (3, False)
    assert without.structured["output"] == f"dumb\n{numbers}"


async def test_signal_tool_tells_what_became_of_it(keeper: KeeperClient) -> None:
    """terminate, and the report afterwards."""
    started = await _run(keeper, "execute", command="exec sleep 600", run_in_background=True)
    assert started.structured is not None
    process_id = started.structured["background_process_id"]

    result = await _run(keeper, "process_signal", process_id=process_id, signal="terminate")

    assert result.structured is not None
    assert (result.structured["running"], result.structured["exit_code"]) == (False, 143)


async def _daemon(directory: Path, point: str, boot: str) -> tuple[int | None, Any]:
    victim = Path(__file__).with_name("command_victim.py")
    command = f"echo x >> {directory}/count"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(victim), point, str(directory), boot, "boot-1", command,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(victim.parents[3])},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    lines = out.splitlines()  # what is logged comes before the answer
    return process.returncode, json.loads(lines[-1]) if process.returncode == 0 else None


@pytest.mark.parametrize(
    "point", ["before_looking", "after_looking", "after_start", "after_doing", "after_answer"]
)
async def test_command_runs_exactly_once_wherever_the_daemon_dies(directory: Path, point: str) -> None:
    """The next daemon finishes the call; the command's own counter says one."""
    killed = await _daemon(directory, point, "boot-1")
    code, answer = await _daemon(directory, "", "boot-2")

    assert killed == (-signal.SIGKILL, None)
    assert code == 0
    assert (answer["is_error"], answer["structured"]["success"]) == (False, True)
    assert (directory / "count").read_text() == "x\n"


# Commands of one storm, and deaths of the daemon in it; AGENTD_KILLS=50 makes it a long one.
KILLS = int(os.environ.get("AGENTD_KILLS", "3"))
CALLS = 30


async def _boot(
    directory: Path, boot: str, asked: dict[str, tuple[str, str]], life_s: float | None
) -> list[Any]:
    """A daemon that is given *asked* and lives for *life_s* (None: to the end); what it told."""
    victim = Path(__file__).with_name("command_storm_victim.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(victim), str(directory), boot,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(victim.parents[3])},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    told = []
    while line := await process.stdout.readline():
        if not line.startswith(b"{"):
            continue  # what is logged
        told.append(json.loads(line))
        if "ready" in told[0] and len(told) == 1 and life_s is not None:
            asyncio.get_running_loop().call_later(life_s, process.kill)
    await process.wait()
    return told[1:]


@pytest.mark.timeout(120 + 10 * KILLS)
@pytest.mark.parametrize("dies_too", ["nobody", "the keeper"])
async def test_no_command_runs_twice_whenever_the_daemon_dies(
    keeper: KeeperClient, directory: Path, dies_too: str
) -> None:
    """The issue: killed at random moments; the counter file has each command once, or never and "unknown"."""
    rng = random.Random()  # noqa: S311 -- a schedule, no secret
    asked: dict[str, tuple[str, str]] = {}
    answers: dict[str, Any] = {}
    for number in range(KILLS + 1):
        boot, is_last = f"boot-{number}", number == KILLS
        for at in range(CALLS // 2 if number == 0 else CALLS // 2 // KILLS + 1):
            name = f"{number}-{at}"
            asked[name] = (f"echo {name} >> {directory}/count; sleep 0.{rng.randrange(10)}", boot)
        life_s = None if is_last else rng.uniform(0.0, 0.8)
        told = await _boot(directory, boot, {k: v for k, v in asked.items() if k not in answers}, life_s)
        answers |= {one["call_id"]: one for one in told}
        if dies_too == "the keeper" and not is_last:
            for process in _of(directory):
                if rng.random() < 0.5:
                    process.kill()
                    await asyncio.to_thread(process.wait, 20)

    ran = Counter((directory / "count").read_text().split())
    done = {name for name, one in answers.items() if not one["is_error"]}
    unknown = {
        name
        for name, one in answers.items()
        if (one["structured"] or {}).get("error_code") == "outcome_unknown"
    }
    assert answers.keys() == asked.keys()
    assert set(ran.values()) == {1}
    assert done <= set(ran)
    assert done | unknown == set(asked)
    assert dies_too == "the keeper" or not unknown
