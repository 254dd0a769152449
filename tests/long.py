"""
Run the long forms of the proofs, one after another, and tell what became of each.

A proof is a test that does more when a variable asks it to; by default each takes seconds. Minutes
are rough, on two cores.

Examples:
    script/test-long                     all of them, a few hours
    script/test-long --list              names, minutes, variables
    script/test-long reconnects crashes  these two
    CHATD_RECONNECTS=5000 script/test-long reconnects
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

__all__ = ["PROOFS", "Outcome", "Proof", "choose", "main", "render_list", "render_summary"]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A file of tests, the variables that make it long, and about how many *minutes* it takes then."""

    name: str
    path: str
    minutes: int
    variables: Mapping[str, str]
    proves: str
    arguments: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a proof; *code* is pytest's."""

    proof: Proof
    code: int
    seconds: float


HTTP = "tests/integration/chatd/http"
STORE = "tests/contract/store"
COMPUTER = "tests/integration/computer"
PROOFS: tuple[Proof, ...] = (
    Proof(
        name="model",
        path=f"{STORE}/test_model.py",
        minutes=15,
        variables={"CHATD_MODEL_STEPS": "10000"},
        proves="the store beside its reference model",
    ),
    Proof(
        name="writers",
        path=f"{STORE}/test_crash.py",
        minutes=5,
        variables={"CHATD_CRASH_ROUNDS": "50"},
        proves="a writer that is killed loses nothing",
    ),
    Proof(
        name="pins",
        path=f"{STORE}/test_pins_concurrently.py",
        minutes=10,
        variables={"AGENTD_TEST_PIN_OPERATIONS": "1000", "AGENTD_TEST_PIN_KILLS": "20"},
        proves="pins in a storm of pushes and kills",
    ),
    Proof(
        name="reconnects",
        path=f"{HTTP}/test_reconnects.py",
        minutes=5,
        variables={"CHATD_RECONNECTS": "1000"},
        proves="eight clients break their streams a thousand times each; no text is doubled",
    ),
    Proof(
        name="crashes",
        path=f"{HTTP}/test_crash_points.py",
        minutes=20,
        variables={"CHATD_CRASH_POINTS": "1000"},
        proves="chatd is killed before and after each kind of commit",
    ),
    Proof(
        name="schemathesis",
        path=f"{HTTP}/test_schemathesis.py",
        minutes=3,
        variables={"CHATD_SCHEMATHESIS_EXAMPLES": "30"},
        proves="the API beside its description, as a user and as an administrator",
    ),
    Proof(
        name="api",
        path=f"{HTTP}/test_api_machine.py",
        minutes=10,
        variables={"CHATD_API_STEPS": "5000"},
        proves="random calls of the API; the rows are looked at after each",
    ),
    Proof(
        name="long-chat",
        path=f"{HTTP}/test_long_chat.py",
        minutes=5,
        variables={"CHATD_LONG_CHAT_STEPS": "1000"},
        proves="a chat of a thousand steps",
    ),
    Proof(
        name="agents",
        path=f"{HTTP}/test_agent_storm.py",
        minutes=15,
        variables={"CHATD_STORM_AGENTS": "200"},
        proves="200 sub-agents while chatd is killed at random",
    ),
    Proof(
        name="streams",
        path=f"{HTTP}/test_storms.py",
        minutes=10,
        variables={"CHATD_STORM_STREAMS": "10000", "CHATD_STORM_AGENTS": "1000"},
        proves="so many streams and workspaces at once; prints figures",
        arguments=("-s",),
    ),
    Proof(
        name="chaos",
        path="tests/integration/chatd/core/test_chaos.py",
        minutes=25,
        variables={"CHATD_CHAOS_S": "600"},
        proves="200 chats meet failing vendors for ten minutes",
    ),
    Proof(
        name="cluster",
        path="tests/integration/chatd/replicas/test_cluster.py",
        minutes=30,
        variables={"CHATD_CLUSTER_MINUTES": "20"},
        proves="three replicas, thirty workspaces and 500 chats live through everything",
    ),
    Proof(
        name="power",
        path="tests/integration/chatd/test_disk_faults.py",
        minutes=10,
        variables={"CHATD_POWER_CUTS": "200"},
        proves="the power is cut, and what was told is there",
    ),
    Proof(
        name="commands",
        path="tests/integration/agentd/test_processes.py",
        minutes=10,
        variables={"AGENTD_KILLS": "50"},
        proves="no command runs twice, whenever the daemon dies",
    ),
    Proof(
        name="faults",
        path="tests/integration/agentd/test_faults.py",
        minutes=20,
        variables={"FAULT_ROUNDS": "100"},
        proves="servers, window managers and daemons are killed",
    ),
    Proof(
        name="typing",
        path=f"{COMPUTER}/typing/test_exact.py",
        minutes=30,
        variables={"AGENTD_TYPING_RUNS": "20"},
        proves="the corpus is typed into each program",
    ),
    Proof(
        name="actions",
        path=f"{COMPUTER}/test_random_actions.py",
        minutes=10,
        variables={"AGENTD_RANDOM_ACTIONS": "10000"},
        proves="the driver is mistreated",
    ),
    Proof(
        name="settling",
        path=f"{COMPUTER}/test_settle.py",
        minutes=5,
        variables={"AGENTD_SETTLE_RUNS": "20"},
        proves="pages are quiet when the driver says so",
    ),
    Proof(
        name="mcp",
        path="tests/integration/mcp_bridge/test_bridge.py",
        minutes=5,
        variables={"MCP_ROUNDS": "50"},
        proves="the bridge leaks nothing",
    ),
)


def choose(names: Sequence[str]) -> list[Proof]:
    """
    The proofs of those *names*, in the table's order; all of them without any.

    Raises:
        ValueError: there is none of a name.
    """
    unknown = sorted(set(names) - {proof.name for proof in PROOFS})
    if unknown:
        msg = f"unknown: {', '.join(unknown)}; there are: {', '.join(proof.name for proof in PROOFS)}"
        raise ValueError(msg)
    return [proof for proof in PROOFS if not names or proof.name in names]


def render_list(proofs: Sequence[Proof]) -> str:
    """A line for each proof, as CONTRIBUTING.md has them."""
    rows = [f"| {proof.name} | {proof.minutes} | {settings_of(proof)} | {proof.proves} |" for proof in proofs]
    return "\n".join(["| name | minutes | variables | what it does |", "|---|---|---|---|", *rows])


def settings_of(proof: Proof) -> str:
    """What makes it long, as it is typed."""
    return " ".join(f"`{name}={value}`" for name, value in proof.variables.items())


def render_summary(outcomes: Sequence[Outcome], left: Sequence[Proof] = ()) -> str:
    """A line for each proof that ran, and for each that was *left* undone."""
    width = max(len(proof.name) for proof in PROOFS)
    lines = [
        f"  {outcome.proof.name:<{width}}  {'ok' if outcome.code == 0 else 'FAILED':<7} "
        f"{outcome.seconds / 60:6.1f} min"
        for outcome in outcomes
    ]
    lines += [f"  {proof.name:<{width}}  not run" for proof in left]
    failed = sum(outcome.code != 0 for outcome in outcomes)
    lines.append(f"{len(outcomes) - failed} held, {failed} failed, {len(left)} not run")
    return "\n".join(lines)


def run(proof: Proof) -> Outcome:
    """Run one; what the environment says already is left as it is."""
    environment = {**proof.variables, **os.environ}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", *proof.arguments, proof.path]
    begun = monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return Outcome(proof=proof, code=code, seconds=monotonic() - begun)


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if anything failed, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(
        prog="script/test-long", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="proofs to run; all of them unless said")
    parser.add_argument("--list", action="store_true", help="name them and run none")
    given = parser.parse_args(arguments)
    try:
        proofs = choose(given.names)
    except ValueError as exc:
        parser.error(str(exc))
    if given.list:
        sys.stdout.write(render_list(proofs) + "\n")
        return 0
    outcomes: list[Outcome] = []
    try:
        for number, proof in enumerate(proofs, start=1):
            begin = f"==> {proof.name} ({number} of {len(proofs)}, about {proof.minutes} min): {proof.proves}"
            sys.stdout.write(begin + "\n")
            sys.stdout.flush()
            outcomes.append(run(proof))
    except KeyboardInterrupt:
        sys.stdout.write("\n" + render_summary(outcomes, proofs[len(outcomes) :]) + "\n")
        return 130
    sys.stdout.write("\n" + render_summary(outcomes) + "\n")
    return int(any(outcome.code for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
