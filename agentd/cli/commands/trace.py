"""``agentd desktop trace …``: what was done at the running daemon's desktop."""

import asyncio
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from cyclopts import Parameter

from agentd.cli.commands.desktop import request_desktop, route_of, save_file
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.run import Dashed, DesktopName, Json, run
from agentd.errors import BadRequest
from agentd.trace.replay import StepOutcome, Trace, replay
from computer.errors import ComputerError
from computer.session import DesktopSession, SessionSettings

__all__ = ["trace_export", "trace_replay", "trace_show"]

Chat = Annotated[str | None, Parameter(name="--chat", help="Only what this chat did.")]
Last = Annotated[int | None, Parameter(name="--last", help="Only the last so many steps.")]


def trace_show(
    *, chat: Chat = None, last: Last = 20, name: DesktopName = "main", as_json: Json = False
) -> None:
    """Show the last steps."""
    entries = request_desktop("GET", _route(name, "trace", chat, last), as_json=as_json)
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        said = " ".join(each.get("output") or each["action"]["action"] for each in entry["actions"])
        problem = f"  Failed: {entry['error']}" if entry.get("error") else ""
        sys.stdout.write(f"{entry['number']:>5}  {entry['at'][:19]}  {entry['actor']:<8} {said}{problem}\n")


def trace_export(
    file: Dashed[Path],
    *,
    chat: Chat = None,
    last: Last = None,
    name: DesktopName = "main",
    as_json: Json = False,
) -> None:
    """Save the steps as a zip with a page to look at them."""
    data: bytes = request_desktop("GET", _route(name, "trace/export", chat, last), as_json=as_json)
    save_file(file, data, as_json=as_json)


def trace_replay(file: Path, *, as_json: Json = False) -> None:
    """Perform the steps again on a desktop of their own."""

    async def work() -> list[StepOutcome]:
        try:
            return await _replay(file, is_told=not as_json)
        except (BadRequest, ComputerError) as exc:
            raise CliError(Exit.FAILED, str(exc), code=exc.code) from exc

    outcomes = run(work, as_json=as_json)
    if as_json:
        print_json([asdict(outcome) for outcome in outcomes])


async def _replay(file: Path, *, is_told: bool) -> list[StepOutcome]:
    trace = await asyncio.to_thread(Trace, file)
    width, height = trace.native_size() or (1280, 800)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="agentd-replay-") as directory:
        settings = SessionSettings(name="replay", width=width, height=height, runtime_dir=Path(directory))
        session = DesktopSession(settings)
        try:
            async for outcome in replay(trace, session):
                outcomes.append(outcome)
                if is_told:
                    _tell(outcome)
        finally:
            await session.stop()
            trace.close()
    return outcomes


def _tell(outcome: StepOutcome) -> None:
    alike = "      -" if outcome.similarity is None else f"{outcome.similarity:7.2%}"
    note = f"  {outcome.note}" if outcome.note else ""
    sys.stdout.write(f"{outcome.number:>5}  {alike}  {', '.join(outcome.actions)}{note}\n")
    sys.stdout.flush()


def _route(name: str, verb: str, chat: str | None, last: int | None) -> str:
    query = {key: value for key, value in (("chat", chat), ("last", last)) if value is not None}
    return route_of(name, verb) + (f"?{urlencode(query)}" if query else "")
