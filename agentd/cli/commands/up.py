"""``agentd up`` and what belongs to it."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from agentd.cli.client import api_client
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.logs import configure_logging
from agentd.cli.run import Data, Json, Port, load_settings, run
from agentd.cli.stack import Stack, make_settings, read_run_file
from agentd.cli.up import run_up
from agentd.settings import default_data_dir

__all__ = ["login_url", "make_stack", "up"]


def make_stack(data: Path | None, port: int | None) -> Stack:
    """Everything on this machine, not yet started."""
    return Stack(*make_settings(data=data, port=port, default_data=default_data_dir()))


def up(
    *,
    data: Data = None,
    port: Port = None,
    no_open: Annotated[bool, Parameter(negative="", help="Do not open the browser.")] = False,
    as_json: Json = False,
) -> None:
    """
    Run everything on this machine: chats, the page, the workspace daemon and its desktop.

    Prints one URL that logs the browser in. Ctrl-C stops everything it started.
    """

    async def work() -> None:
        # People read the URL; a journal wants the rest too.
        configure_logging("warning" if sys.stderr.isatty() else "info")
        await run_up(make_stack(data, port), open_browser=not no_open and not as_json, as_json=as_json)

    run(work, as_json=as_json)


def login_url(*, as_json: Json = False) -> None:
    """Print a new URL that logs a browser in to the running `agentd up`, once."""

    async def work() -> str:
        info = read_run_file(load_settings().runtime_dir)
        if info is None:
            raise CliError(Exit.NOT_RUNNING, "no `agentd up` is running", code="not_running")
        async with api_client(info.api, info.token) as client:
            answer = await client.request("POST", "/login-tokens")
        return info.api.removesuffix("/api/experimental") + str(answer["path"])

    url = run(work, as_json=as_json)
    if as_json:
        print_json({"url": url})
    else:
        sys.stdout.write(url + "\n")
