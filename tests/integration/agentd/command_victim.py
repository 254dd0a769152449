"""
A daemon's call table, ledger and keeper client; kills itself at a given point.

Run as a program: ``command_victim.py POINT DIRECTORY BOOT OWNER COMMAND``. As boot BOOT it gets the call
"run", which boot OWNER is thought to have been given first, and prints the answer as JSON.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentd.calls import CallTable
from agentd.ledger import DiskLedger
from agentd.processes.client import KeeperClient
from agentd.processes.messages import START
from agentd.tools.answering import answer_call
from agentd.tools.processes import Commands, process_tools
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams


def die_at(point: str) -> None:
    """As a crash does, at once, if this is the point."""
    if sys.argv[1] == point:
        os.kill(os.getpid(), signal.SIGKILL)


class Ledger(DiskLedger):
    """Dies at its points."""

    async def answered(self, call_id: str) -> ToolResult | None:
        """Die before or after it is looked whether the call was answered; its intent is the keeper's."""
        die_at("before_looking")
        known = await super().answered(call_id)
        die_at("after_looking")
        return known

    async def answer(self, call_id: str, result: ToolResult) -> None:
        """Die after it was done, or after the answer is on disk."""
        die_at("after_doing")
        await super().answer(call_id, result)
        die_at("after_answer")


class Client(KeeperClient):
    """Dies once the process runs."""

    async def call(self, method: str, params: BaseModel, result: type[Any], wait_s: float = 0) -> Any:
        """Ask, and die if it was for a start."""
        answer = await super().call(method, params, result, wait_s)
        if method == START:
            die_at("after_start")
        return answer


async def main(directory: Path, boot: str, owner: str, command: str) -> None:
    """Get the call and tell the answer."""
    ledger = Ledger(directory / "calls.db", boot)
    await ledger.open()
    client = Client(directory, dict(os.environ))
    commands = Commands(client, environment=lambda: dict(os.environ), workdir=None)
    tool = next(tool for tool in process_tools(commands) if tool.definition.name == "execute")
    arguments = {"command": command, "timeout": "30s"}
    call = ToolCallParams(call_id="run", name="execute", arguments=arguments, boot_id=owner)
    answer = await answer_call(CallTable(boot, ledger), tool, call)
    print(answer.model_dump_json())  # noqa: T201 -- the answer is for the test
    await client.close()
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[2]), *sys.argv[3:6]))
