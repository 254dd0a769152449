"""``agentd up``: all of it on this machine."""

import asyncio
import os
import signal
import sys
import webbrowser
from dataclasses import asdict

from agentd.cli.exits import print_json
from agentd.cli.stack import RunInfo, Stack

__all__ = ["run_up", "wait_for_signal"]

REHEARSAL_NOTE = (
    "no model key: rehearsal model. It drives the real desktop but understands only simple instructions;\n"
    "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or CHATD_COMPAT_BASE_URL for a real one."
)


async def run_up(stack: Stack, *, open_browser: bool, as_json: bool) -> None:
    """Start, tell where, wait for Ctrl-C, stop."""
    stopping = wait_for_signal()
    info = await stack.start()
    try:
        if as_json:
            print_json(asdict(info))
        else:
            _tell(stack, info)
        if open_browser and _has_display():
            await asyncio.to_thread(webbrowser.open, info.url)
        await stopping.wait()
        if not as_json:
            sys.stderr.write("stopping …\n")
    finally:
        await stack.stop()


def wait_for_signal() -> asyncio.Event:
    """An event that SIGINT, SIGTERM and SIGHUP set; a second signal ends the process at once."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            os._exit(130)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    return stopping


def _tell(stack: Stack, info: RunInfo) -> None:
    lines = [
        "",
        "  agentd is up. Open this URL; it logs you in (once, within 15 minutes):",
        "",
        f"    {info.url}",
        "",
        f"  API   {info.api}   (Authorization: Bearer {info.token})",
        f"  data  {info.data_dir}",
    ]
    if stack.is_rehearsal:
        lines += ["", *(f"  {line}" for line in REHEARSAL_NOTE.splitlines())]
    lines += ["", "  Ctrl-C stops everything.", ""]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _has_display() -> bool:
    return sys.stdout.isatty() and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
