"""
The ``agentd`` command line: what there is and where it is done.

Exit codes: 0 done, 1 the job failed, 2 bad usage, 3 can't start, 4 not running.
Commands are named by import path, so that a click at the desktop does not wait for
the model vendors' SDKs to load; so their help stands here.
"""

import gc

import cyclopts

from agentd.cli.logs import configure_logging
from agentd.wire.version import VERSION

__all__ = ["app", "main"]

COMMANDS = "agentd.cli.commands"

HELP = {
    "up": """Run everything on this machine and print one URL.

Chats, the page, the workspace daemon and its desktop, on loopback. The URL logs a browser in, once.
With --json one line once ready: {url, api, token, pid, data_dir}. Ctrl-C stops everything.

For example:
  agentd up
  agentd up --port 0 --data /tmp/try --json""",
    "ask": """Do one job and print the answer.

Uses the running `agentd up`, or starts its own for the time. Progress goes to stderr, the answer to stdout.
With --json: {chat_id, status, answer, steps, tool_calls, screenshot}.
Exit code 1: the chat ended in an error. What the model says of its own success is in the answer.

For example:
  agentd ask 'open a terminal and run `uname -a`, then tell me what it says'
  agentd ask "take a screenshot" --screenshot shot.png --json
  agentd ask "say hello" --model openai:rehearsal""",
    "doctor": """Check what this machine lacks, one line each, with what to do about it.

Exit code 1: something is missing.

For example:
  agentd doctor
  agentd doctor --json""",
    "login-url": """Print a new URL that logs a browser in to the running `agentd up`, once.

For example:
  agentd login-url""",
    "daemon": """Run the workspace daemon alone; this is what systemd starts.

AGENTD_CONTROL_URL and AGENTD_AGENT_TOKEN name the control plane that it dials.

For example:
  AGENTD_CONTROL_URL=http://127.0.0.1:7080 AGENTD_AGENT_TOKEN=agent_... agentd daemon""",
}
DESKTOP_HELP = {
    "up": """Start the desktop session, unless it runs.

For example:
  agentd desktop up""",
    "down": """Stop the desktop session and everything in it.

For example:
  agentd desktop down""",
    "status": """Show the desktop sessions.

With --json a list of {name, state, display, backend, geometry, pids, viewers, control, error}.

For example:
  agentd desktop status --json""",
    "screenshot": """Save a screenshot as PNG; "-" writes it to stdout.

For example:
  agentd desktop screenshot shot.png""",
    "do": """Perform one canonical action, given as JSON.

screenshot; cursor_position; zoom {region}; mouse_move {coordinate};
left_click, right_click, middle_click, double_click, triple_click {coordinate?, modifiers?};
left_mouse_down, left_mouse_up {coordinate?}; button_down, button_up {button, coordinate?};
left_click_drag {start_coordinate?, coordinate}; drag {path, button?, modifiers?};
scroll {coordinate?, scroll_direction, scroll_amount}; key, key_down, key_up {text};
key_sequence {keys}; hold_key {text, duration_ms}; type {text, plain?}; paste {text};
set_clipboard {text}; get_clipboard; wait {duration_ms}; wait_settled {quiet_ms, timeout_ms}.
A coordinate is [x, y]. Several at once: {"actions": [...]}.

For example:
  agentd desktop do '{"action":"left_click","coordinate":[100,200]}'
  agentd desktop do '{"action":"type","text":"hello"}'
  agentd desktop do '{"action":"key","text":"ctrl+l"}'""",
    "open": """Launch a program at the desktop, wait up to 3 s for its window, print its process id.

A program that fails at once is an error; one that shows no window goes on, with a warning.
With --json: {pid, window, warning}.

For example:
  agentd desktop open -- xterm -T hello""",
}
TARGETS = {
    "up": "up:up",
    "ask": "ask:ask_command",
    "doctor": "doctor:doctor",
    "login-url": "up:login_url",
    "daemon": "daemon:daemon",
}

app = cyclopts.App(
    name="agentd",
    version=VERSION,
    help="A computer of its own for an LLM agent: a desktop it sees and touches, watched from a browser.",
    help_format="plaintext",
)
desktop = cyclopts.App(name="desktop", help="Drive the desktop session of the running daemon.")
app.command(desktop)
for name, target in TARGETS.items():
    app.command(f"{COMMANDS}.{target}", name=name, help=HELP[name])
for name, text in DESKTOP_HELP.items():
    desktop.command(f"{COMMANDS}.desktop:desktop_{name}", name=name, help=text)


def main() -> None:
    """Run the command line."""
    configure_logging("warning")
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        # The interpreter's last collection would walk the vendors' SDKs for a second.
        gc.freeze()
