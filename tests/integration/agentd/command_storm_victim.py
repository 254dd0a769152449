"""
A daemon's call table, ledger and keeper client with many calls at once, to be killed at any moment.

Run as a program: ``command_storm_victim.py DIRECTORY BOOT``. Standard input is one JSON object: for each call
id its command and the boot that was given it first. Each answer is printed as one line of JSON.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from agentd.calls import CallTable
from agentd.ledger import DiskLedger
from agentd.processes.client import KeeperClient
from agentd.tools.answering import answer_call
from agentd.tools.processes import Commands, process_tools
from agentd.wire.link import ToolCallParams


async def main(directory: Path, boot: str) -> None:
    """Get the calls and tell the answers as they come."""
    asked = json.loads(sys.stdin.readline())
    ledger = DiskLedger(directory / "calls.db", boot)
    await ledger.open()
    calls = CallTable(boot, ledger)
    commands = Commands(
        KeeperClient(directory, dict(os.environ)), environment=lambda: dict(os.environ), workdir=None
    )
    tool = next(tool for tool in process_tools(commands) if tool.definition.name == "execute")
    tell({"ready": boot})

    async def answer(call_id: str, command: str, owner: str) -> None:
        arguments = {"command": command, "timeout": "60s"}
        call = ToolCallParams(call_id=call_id, name="execute", arguments=arguments, boot_id=owner)
        told = await answer_call(calls, tool, call)
        tell({"call_id": call_id, "is_error": told.is_error, "structured": told.structured})

    await asyncio.gather(*(answer(call_id, *fields) for call_id, fields in asked.items()))


def tell(line: object) -> None:
    """One line, at once: nothing that was told may be lost with us."""
    print(json.dumps(line), flush=True)  # noqa: T201 -- the answer is for the test


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
