"""``agentd daemon``."""

import asyncio

from agentd.app import Daemon
from agentd.cli.exits import CliError, Exit
from agentd.cli.logs import configure_logging
from agentd.cli.run import load_settings, run
from agentd.cli.up import wait_for_signal
from agentd.errors import AgentError

__all__ = ["daemon"]


def daemon() -> None:
    """
    Run the workspace daemon alone (what systemd starts).

    AGENTD_CONTROL_URL and AGENTD_AGENT_TOKEN name the control plane it dials.
    """

    async def work() -> None:
        stopping = wait_for_signal()
        service = Daemon(load_settings())
        try:
            await service.start()
            waiter = asyncio.ensure_future(service.wait_failed())
            signal_task = asyncio.ensure_future(stopping.wait())
            await asyncio.wait({waiter, signal_task}, return_when=asyncio.FIRST_COMPLETED)
            if waiter.done():
                text = f"the control plane refused this agent's token: {waiter.exception()}"
                raise CliError(Exit.CANNOT_START, text, code="link_refused")
            waiter.cancel()
        except (AgentError, OSError) as exc:
            code = getattr(exc, "code", "os_error")
            raise CliError(Exit.CANNOT_START, str(exc), code=code) from exc
        finally:
            await service.stop()

    configure_logging(load_settings().log_level)
    run(work)
