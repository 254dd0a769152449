"""
The ``agentd`` command line: what there is and where it is done.

Exit codes: 0 done, 1 the job failed, 2 bad usage, 3 can't start, 4 not running.
Commands are named by import path, so that a click at the desktop does not wait for
the model vendors' SDKs to load.
"""

import gc

import cyclopts

from agentd.cli.logs import configure_logging
from agentd.wire.version import VERSION

__all__ = ["app", "main"]

COMMANDS = "agentd.cli.commands"

app = cyclopts.App(
    name="agentd",
    version=VERSION,
    help="A computer of its own for an LLM agent: a desktop it sees and touches, watched from a browser.",
)
desktop = cyclopts.App(name="desktop", help="Drive the desktop session of the running daemon.")

app.command(f"{COMMANDS}.up:up", name="up", help="Run everything on this machine and print one URL.")
app.command(f"{COMMANDS}.ask:ask_command", name="ask", help="Do one job and print the answer.")
app.command(desktop)
app.command(f"{COMMANDS}.doctor:doctor", name="doctor", help="Check what this machine lacks.")
app.command(f"{COMMANDS}.up:login_url", name="login-url", help="Print a new URL that logs a browser in.")
app.command(f"{COMMANDS}.daemon:daemon", name="daemon", help="Run the workspace daemon alone.")

for name, text in {
    "up": "Start the desktop session, unless it runs.",
    "down": "Stop the desktop session and everything in it.",
    "status": "Show the desktop sessions.",
    "screenshot": "Save a screenshot as PNG.",
    "do": "Perform one canonical action, given as JSON.",
    "open": "Launch a program at the desktop.",
}.items():
    desktop.command(f"{COMMANDS}.desktop:desktop_{name}", name=name, help=text)


def main() -> None:
    """Run the command line."""
    configure_logging("warning")
    try:
        app()
    finally:
        # The interpreter's last collection would walk the vendors' SDKs for a second.
        gc.freeze()
