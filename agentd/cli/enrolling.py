"""
Make a workspace's daemon known to the chatd beside it: a user, a token, the daemon's settings.

Only where both are services of this machine and the daemon has no token yet; chatd's own commands do it, as
chatd's user, so that no file of its database becomes somebody else's.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentd.cli.exits import CliError, Exit
from agentd.cli.installing import Step, perform

__all__ = ["Enrolment", "enrol"]

COMMAND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """Whose the workspace is, what it is called, and where things are."""

    user: str
    workspace: str
    programs: Path
    settings: Path = Path("/etc/agentd/agentd.toml")
    credential: Path = Path("/etc/agentd/credentials/agent_token")
    other_database: Path = Path("/etc/chatd/credentials/database")
    url: str = "http://127.0.0.1:7080"
    chatd: tuple[str, ...] = (
        "runuser", "-u", "chatd", "--", "env", "CHATD_CONFIG=/etc/chatd/chatd.toml",
        "CHATD_DATA_DIR=/var/lib/chatd",
    )  # fmt: skip

    @property
    def is_wanted(self) -> bool:
        """Whether nobody has done it, here or by hand."""
        return not (
            self.credential.exists()
            or self.other_database.exists()
            or any(line.startswith("control_url") for line in self.settings.read_text().splitlines())
        )


def enrol(plan: Enrolment, *, tell: Callable[[str, Step], None]) -> None:
    """
    Make user and token, give them to the daemon, start it again.

    Raises:
        CliError: chatd refused, or nothing can be written; the text says what to do by hand.
    """
    made = _ask(plan, "users", "add", plan.user, "--role", "admin", may_fail=True)
    if not made:
        # It is there already, or the next command says what is wrong.
        tell("unchanged", Step(kind="try", argv=("chatd", "users", "add", plan.user)))
    about = ("--kind", "agent", "--workspace", plan.workspace, "--expires-days", "0")
    token = _ask(plan, "tokens", "create", f"agentd on {plan.workspace}", "--user", plan.user, *about).strip()
    settings = f'{plan.settings.read_text().rstrip()}\n\ncontrol_url = "{plan.url}"\n'
    steps = [
        Step(kind="write", path=plan.credential, content=token, mode=0o600),
        Step(kind="write", path=plan.settings, content=settings),
        Step(kind="run", argv=("systemctl", "restart", "agentd.service")),
    ]
    perform(steps, tell=tell)


def _ask(plan: Enrolment, *command: str, may_fail: bool = False) -> str:
    argv = (*plan.chatd, str(plan.programs / "chatd"), *command)
    done = subprocess.run(  # noqa: S603 -- a command of ours
        argv, capture_output=True, text=True, check=False, timeout=COMMAND_S, stdin=subprocess.DEVNULL
    )
    if done.returncode == 0:
        return done.stdout
    if may_fail:
        return ""
    text = (
        f"`chatd {' '.join(command[:2])}` failed: {done.stderr.strip()}; docs/howto/service.md has it by hand"
    )
    raise CliError(Exit.CANNOT_START, text, code="enrolment_failed")
