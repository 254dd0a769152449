"""
A daemon's call table, hands and ledger on a desktop that outlives it; kills itself at a given point.

Run as a program: ``click_victim.py POINT LEDGER DISPLAY AUTHORITY BOOT OWNER``. As boot BOOT it gets the
call "click", which boot OWNER is thought to have been given first, and prints the answer as JSON.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from agentd.acting import Hands
from agentd.calls import CallTable
from agentd.desktops import Desktops
from agentd.ledger import Begun, DiskLedger
from agentd.settings import AgentdSettings
from agentd.tools.answering import answer_call
from agentd.tools.desktop import computer_tool
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from computer.display.x11 import X11Display
from computer.driver import ComputerDriver
from computer.wire import ComputerCall, ComputerResult


def die() -> None:
    """As a crash does: at once."""
    os.kill(os.getpid(), signal.SIGKILL)


class Ledger(DiskLedger):
    """Dies at its points."""

    point = ""

    async def begin(self, call_id: str, boot_id: str | None) -> Begun:
        """Die before or after the intent is on disk."""
        if self.point == "before_intent":
            die()
        begun = await super().begin(call_id, boot_id)
        if self.point == "after_intent":
            die()
        return begun

    async def answer(self, call_id: str, result: ToolResult) -> None:
        """Die after it was done, or after the answer is on disk."""
        if self.point == "after_doing":
            die()
        await super().answer(call_id, result)
        if self.point == "after_answer":
            die()


class Session:
    """A desktop that somebody else started."""

    def __init__(self, driver: ComputerDriver) -> None:
        self._driver = driver

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """Perform it there."""
        return await self._driver.perform(call)


async def main(*arguments: str) -> None:
    """Click once."""
    point, path, display, authority, boot, owner = arguments
    driver = ComputerDriver(lambda: X11Display(display, authority=Path(authority)))
    await driver.open()
    make: Any = lambda *_: Session(driver)  # noqa: E731
    hands = Hands(Desktops(AgentdSettings(runtime_dir=Path(path).parent), make=make))
    ledger = Ledger(Path(path), boot)
    await ledger.open()
    ledger.point = point
    call = ToolCallParams(
        call_id="click",
        name="computer",
        arguments={"actions": [{"action": "left_click", "coordinate": [50, 60]}]},
        boot_id=owner,
    )
    result = await answer_call(CallTable(boot, ledger), computer_tool(hands), call)
    sys.stdout.write(result.model_dump_json())
    await ledger.close()
    await driver.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))
