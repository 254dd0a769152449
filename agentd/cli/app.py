"""
The ``agentd`` command line: what there is and where it is done.

Exit codes: 0 done, 1 the job failed, 2 bad usage, 3 can't start, 4 not running.
Commands are named by import path, so that a click at the desktop does not wait for
the model vendors' SDKs to load; so their help stands here.
"""

import gc

import cyclopts

from agentd.cli.logs import configure_logging
from agentd.cli.mcp_app import mcp
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
  agentd ask "say hello" --model openai:rehearsal
  agentd ask "find the bug" --effort high""",
    "context": """Show the instructions and skills that this workspace gives its chats.

Everything that is found, what is left out and why; --resync scans first. With --json
{ready, version, aggregate_hash, error, roots, resources, notes}; a resource is
{kind, source, source_path, status, content_hash, size_bytes, error}.

For example:
  agentd context
  agentd context --resync --json""",
    "ready": """Say that the workspace is ready, so that its context may be pushed.

Needed only with AGENTD_WAIT_READY=true, or to end the wait for a start-up script.
With --json: {ready, script, exit_code}.

For example:
  agentd ready""",
    "doctor": """Check what this machine lacks, one line each, with what to do about it.

Exit code 1: something is missing.

For example:
  agentd doctor
  agentd doctor --json""",
    "login-url": """Print a new URL that logs a browser in to the running `agentd up`, once.

For example:
  agentd login-url""",
    "vnc": """Open a local TCP port through which VNC programs watch a desktop and control it.

Without --chat and --agent: a desktop of the daemon on this machine, --name of several. Control is
asked for when a program connects, and again with a press while nobody else has it.
Only programs of the same user are served. With --json: {listen}.
--chat and --agent mean the running `agentd up`, or the control plane at --url; a token of it is in
AGENTD_TOKEN or --token-file.

For example:
  agentd vnc &  vncviewer 127.0.0.1::5901
  agentd vnc --chat 0b6f… --listen 127.0.0.1:0 --view-only --json
  AGENTD_TOKEN=… agentd vnc --url https://chats.example.com --agent box""",
    "daemon": """Run the workspace daemon alone; this is what systemd starts.

AGENTD_CONTROL_URL and AGENTD_AGENT_TOKEN name the control plane that it dials. SIGHUP reads AGENTD_CONFIG
again: agent_token, control_url, log_level and what desktops look like are taken up; the rest needs a restart.
With --check-config only the settings are looked at; exit code 2: they make no sense.

For example:
  AGENTD_CONTROL_URL=http://127.0.0.1:7080 AGENTD_AGENT_TOKEN=agent_... agentd daemon
  agentd daemon --check-config""",
    "install": """Make systemd services of these programs, enable and start them; again at no cost.

Units, accounts and example settings; settings that are there are kept. `script/install` does this once it
has installed the programs. For the system (as root), or with --user for oneself; --root DIR for an image.
With --json: {changed, unchanged, failed}.

For example:
  agentd install
  agentd install agentd --user
  agentd install --dry-run""",
    "uninstall": """Stop the services and remove what `agentd install` made.

Settings and data stay, unless --purge is given. With --json: {changed, unchanged, failed}.

For example:
  agentd uninstall
  agentd uninstall chatd --purge --dry-run""",
    "health": """Ask the running daemon how its parts are; exit code 1: one is not well.

Parts are link, workspace, desktops, work; a word of each: ok, off, starting, down, failed.
With --json: {status, checks}.

For example:
  agentd health
  agentd health --json""",
}
DESKTOP_HELP = {
    "up": """Start the desktop session, unless it runs; a new name makes a new one.

For example:
  agentd desktop up
  agentd desktop up --name work""",
    "down": """Stop the desktop session and everything in it.

For example:
  agentd desktop down""",
    "status": """Show the desktop sessions.

With --json a list of {name, state, display, backend, geometry, pids, viewers, control, error, restarts,
warnings}.

For example:
  agentd desktop status --json""",
    "viewers": """Show who watches the desktops, what they got, and how far behind they are.

With --json a list of {id, desktop, seat, name, may, role, source, since, sent_bytes, received_bytes,
frames, lag_ms, dropped}.

For example:
  agentd desktop viewers""",
    "screenshot": """Save a screenshot as PNG (see AGENTD_PICTURE_FORMAT); "-" writes it to stdout.

For example:
  agentd desktop screenshot shot.png""",
    "do": """Perform one canonical action, given as JSON.

screenshot; cursor_position; zoom {region}; mouse_move {coordinate};
left_click, right_click, middle_click, double_click, triple_click {coordinate?, modifiers?};
click {button?, count?, coordinate?, modifiers?}: left, middle, right, back, forward; one to three times;
left_mouse_down, left_mouse_up {coordinate?}; button_down, button_up {button, coordinate?};
left_click_drag {start_coordinate?, coordinate}; drag {path, button?, modifiers?};
scroll {coordinate?, scroll_direction, scroll_amount}; key, key_down, key_up {text};
key_sequence {keys}; hold_key {text, duration_ms}; type {text, plain?}; paste {text};
set_clipboard {text}; get_clipboard; wait {duration_ms}; wait_settled {quiet_ms, timeout_ms}.
A coordinate is [x, y]. Several at once: {"actions": [...], "tripwires": [...]}; a tripwire that is not
fulfilled stops the rest: window_title {text}, region_unchanged {region}, each with its "kind".
Text with "secret": true is kept out of logs and results; "-" reads the JSON from stdin, out of sight.
With "id": "..." it is done once: a repeat prints the first result, also after a restart of the daemon.

For example:
  agentd desktop do '{"action":"left_click","coordinate":[100,200]}'
  agentd desktop do '{"action":"type","text":"hello"}'
  agentd desktop do '{"action":"key","text":"ctrl+l"}'""",
    "open": """Launch a program at the desktop, wait up to 3 s for its window, print its process id.

A program that fails at once is an error; one that shows no window goes on, with a warning.
With --json: {pid, window, warning}.

For example:
  agentd desktop open -- xterm -T hello""",
    "run": """Run a program at the desktop in place of this command: with its input, output and exit code.

It is ended with the desktop. An MCP server that is started this way opens its windows where they are watched:
{"command": "agentd", "args": ["desktop", "run", "--", "npx", "@playwright/mcp"]} in .mcp.json.

For example:
  agentd desktop run -- xdotool getmouselocation""",
    "windows": """List the windows at the desktop, oldest first.

With --json a list of {id, title, window_class, pid, bounds, frame, active, minimized}; boxes are
[x1, y1, x2, y2] in native pixels. The other commands take the id.

For example:
  agentd desktop windows --json""",
    "focus": """Raise a window and give it the keyboard.

For example:
  agentd desktop focus 4194317""",
    "move": """Move a window: X and Y of the upper left corner of what its program draws.

For example:
  agentd desktop move 4194317 100 50""",
    "resize": """Give a window a size: WIDTH and HEIGHT of what its program draws.

For example:
  agentd desktop resize 4194317 640 480""",
    "close": """Close a window and see that it has gone.

One that stays (it asks something, or takes no notice) is an error; --force cuts its program off.

For example:
  agentd desktop close 4194317""",
    "apps": """List the programs that were opened at the desktop and run, oldest first.

With --json a list of {pid, argv}.

For example:
  agentd desktop apps""",
    "end": """End a program that was opened at the desktop, with all that it started in its process group.

For example:
  agentd desktop end 4711""",
    "screen": """Give the screen another size, WIDTH and HEIGHT in pixels, while programs go on.

Whoever acts by a picture of the old size is refused once, and shown the new one.

For example:
  agentd desktop screen 1920 1080""",
}
MODULES = {
    "windows": ("windows", "focus", "move", "resize", "close"),
    "apps": ("apps", "end", "screen"),
}
TRACE_HELP = {
    "show": """Show the last steps: what was done, by whom, what came of it.

With --json a list of {number, id, at, took_ms, actor, chat_id, vendor_call_id, model_size, native_size,
actions: [{action, native, output, warning}], before, after: {sha256, media_type, size}, changed, settled_ms,
error}.

For example:
  agentd desktop trace show --last 5""",
    "export": """Save the action log as a zip: index.html to scrub through, the lines, the pictures.

A step has its pictures before and after, what changed between, and how long the screen took to be quiet.
Calls that ask for no picture, as `agentd desktop do` makes, are not waited for: the picture after is of 0.3 s
later at most, and of those within one second only the first has pictures.
The page needs no network. Text typed as a secret is not in it, nor the picture after it; in later ones what
the secret changed is black until it has changed again. Where a program shows it once more, elsewhere than
above or below, it can be seen; and in recordings.

For example:
  agentd desktop trace export run.zip
  agentd desktop trace export run.zip --chat 6b1f0c0e-3d0f-4b06-9d38-9f1b7f3f2a11""",
    "replay": """Perform an exported log on a fresh desktop; say how much of each step's screen is as it was.

With --json a list of {number, actions, similarity, note}; similarity is 0 to 1.

For example:
  agentd desktop trace replay run.zip""",
}
RECORD_HELP = {
    "start": """Start a recording and print its id once it films.

It stops by itself after 10 minutes without an action, an hour, or 100 MB; what is typed as a secret may be
seen in it. With --json: {id, desktop, state, started_at, width, height, ...}.

For example:
  agentd desktop record start""",
    "stop": """Stop a recording; with a file, save the film there.

Without an id the newest that runs. The film plays at once; its stills are sped up in the background.
With --json: {id, state, reason, duration_s, size_bytes, has_thumbnail, ...}.

For example:
  agentd desktop record stop
  agentd desktop record stop --save film.mp4""",
    "list": """Show the recordings, newest first.

States: recording, processing (whole, stills are being sped up), ready, failed.
With --json a list of {id, desktop, chat_id, state, reason, started_at, stopped_at, duration_s, size_bytes}.

For example:
  agentd desktop record list --json""",
    "save": """Save the film of a recording as MP4; "-" writes it to stdout.

For example:
  agentd desktop record save 6b1f0c0e-3d0f-4b06-9d38-9f1b7f3f2a11 film.mp4""",
}
TARGETS = {
    "up": "up:up",
    "ask": "ask:ask_command",
    "context": "context:context",
    "ready": "context:ready",
    "doctor": "doctor:doctor",
    "login-url": "up:login_url",
    "daemon": "daemon:daemon",
    "health": "daemon:health",
    "install": "install:install",
    "uninstall": "install:uninstall",
    "vnc": "vnc:vnc",
}

app = cyclopts.App(
    name="agentd",
    version=VERSION,
    help="A computer of its own for an LLM agent: a desktop it sees and touches, watched from a browser.",
    help_format="plaintext",
)
desktop = cyclopts.App(name="desktop", help="Drive the desktop session of the running daemon.")
app.command(desktop)
record = cyclopts.App(name="record", help="Film the desktop.")
desktop.command(record)
trace = cyclopts.App(name="trace", help="What was done at the desktop, step by step.")
desktop.command(trace)
app.command(mcp)
for name, target in TARGETS.items():
    app.command(f"{COMMANDS}.{target}", name=name, help=HELP[name])
for name, text in TRACE_HELP.items():
    trace.command(f"{COMMANDS}.trace:trace_{name}", name=name, help=text)
for name, text in RECORD_HELP.items():
    record.command(f"{COMMANDS}.record:record_{name}", name=name, help=text)
for name, text in DESKTOP_HELP.items():
    module = next((module for module, names in MODULES.items() if name in names), "desktop")
    desktop.command(f"{COMMANDS}.{module}:desktop_{name}", name=name, help=text)


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
