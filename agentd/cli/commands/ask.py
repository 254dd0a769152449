"""``agentd ask``."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from agentd.cli.ask import Answer, ask
from agentd.cli.client import api_client
from agentd.cli.commands.up import make_stack
from agentd.cli.exits import Exit, print_json
from agentd.cli.run import Data, Json, load_settings, run
from agentd.cli.stack import read_run_file

__all__ = ["ask_command"]


def ask_command(
    text: str,
    *,
    model: Annotated[str | None, Parameter(help="provider:model, a name, or an id.")] = None,
    effort: Annotated[
        str | None, Parameter(help="How hard the model thinks, where it offers that: low, high, …")
    ] = None,
    screenshot: Annotated[Path | None, Parameter(help="Save the last screenshot there.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """
    Do one job: run a chat to its end and print the answer.

    Uses the running `agentd up`, or starts its own for the time. Progress goes to stderr.
    """

    async def work() -> Answer:
        return await _ask(text, model=model, effort=effort, screenshot=screenshot, data=data)

    answer = run(work, as_json=as_json)
    if as_json:
        print_json(answer.as_json())
    else:
        sys.stdout.write(answer.answer + "\n")
    if answer.status == "error":
        sys.stderr.write(f"error: {answer.error}\n")
        raise SystemExit(int(Exit.FAILED))


async def _ask(
    text: str, *, model: str | None, effort: str | None, screenshot: Path | None, data: Path | None
) -> Answer:
    console = Console(stderr=True, quiet=not sys.stderr.isatty(), highlight=False)
    async with contextlib.AsyncExitStack() as cleanup:
        info = read_run_file(load_settings().runtime_dir) if data is None else None
        if info is None:
            stack = make_stack(data, 0)
            info = await stack.start()
            cleanup.push_async_callback(stack.stop)
            if stack.is_rehearsal:
                console.print("[yellow]no model key: rehearsal model[/]")
        client = await cleanup.enter_async_context(api_client(info.api, info.token))
        return await ask(client, text, model=model, effort=effort, screenshot=screenshot, console=console)
