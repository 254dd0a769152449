"""The table of long proofs: it names what there is, all of it, and the document has it."""

import re
from pathlib import Path

import pytest

from tests import long
from tests.long import PROOFS, Outcome, choose, render_list, render_summary

ROOT = Path(__file__).parents[2]
# Variables that make nothing longer: they repeat a run, choose within it, size it or keep what it leaves.
OTHERS = {
    "CHATD_CHAOS_SEED",
    "CHATD_CLUSTER_AGENTS",
    "CHATD_CLUSTER_CHATS",
    "CHATD_CLUSTER_LOGS",
    "CHATD_CLUSTER_SEED",
    "CHATD_CLUSTER_THINK_S",
    "CHATD_CRASH_ONLY",
    "CHATD_SCHEMATHESIS_SEED",
    "CHATD_STORM_SEED",
    "FAULT_SEED",
}
READ = re.compile(r"os\.environ(?:\.get\(|\[)\"((?:AGENTD|CHATD|FAULT|MCP)_\w+)\"")


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_a_proof_s_file_reads_its_variables(proof: long.Proof) -> None:
    """Ours: a variable that nobody reads makes nothing longer."""
    read = set(READ.findall((ROOT / proof.path).read_text()))

    assert proof.variables.keys() <= read
    assert proof.minutes > 0


def test_every_variable_of_a_test_is_in_the_table() -> None:
    """Issue: the long form of a proof is run by name, not by a variable that somebody remembers."""
    folders = ["tests/contract", "tests/integration", "tests/unit", "tests/e2e"]
    files = [path for folder in folders for path in (ROOT / folder).rglob("test_*.py")]
    read = {name for path in files for name in READ.findall(path.read_text())}

    assert read - OTHERS == {name for proof in PROOFS for name in proof.variables}
    assert read >= OTHERS


def test_contributing_has_the_table() -> None:
    """Ours: with the rough time of each, and the variables that repeat a run."""
    text = (ROOT / "CONTRIBUTING.md").read_text()

    assert render_list(PROOFS) in text
    assert {name for name in OTHERS if name not in text} == set()


def test_proofs_are_chosen_by_name() -> None:
    """Ours: in the table's order, each once; an unknown name is told with those there are."""
    first, second = PROOFS[0].name, PROOFS[1].name

    assert [proof.name for proof in choose([second, first, first])] == [first, second]
    assert choose([]) == list(PROOFS)
    with pytest.raises(ValueError, match=f"nonsense; there are: {first}"):
        choose(["nonsense"])


def test_the_summary_counts_what_held_failed_and_was_left() -> None:
    """Ours: one look at the end of a night."""
    outcomes = [
        Outcome(proof=PROOFS[0], code=0, seconds=90),
        Outcome(proof=PROOFS[1], code=1, seconds=6),
    ]
    lines = render_summary(outcomes, PROOFS[2:3]).splitlines()

    assert [line.split() for line in lines[:3]] == [
        [PROOFS[0].name, "ok", "1.5", "min"],
        [PROOFS[1].name, "FAILED", "0.1", "min"],
        [PROOFS[2].name, "not", "run"],
    ]
    assert lines[3] == "1 held, 1 failed, 1 not run"


def test_a_failure_fails_the_run_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: a night is not lost to its first proof."""
    ran = []

    def run(proof: long.Proof) -> Outcome:
        ran.append(proof.name)
        return Outcome(proof=proof, code=len(ran) == 1, seconds=1)

    monkeypatch.setattr(long, "run", run)
    names = [proof.name for proof in PROOFS[:2]]

    assert long.main(names) == 1
    assert ran == names
    assert "1 held, 1 failed" in capsys.readouterr().out
