"""The conformance suite of the protocol's makers, against the bridge: every scenario, run or left out."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.peers import NODE, conformance

CLIENT = Path(__file__).parent / "conformance_client.py"
ROOT = Path(__file__).parents[3]
LIMIT_S = 60

SCENARIOS = ("initialize", "tools_call", "sse-retry")
LEFT_OUT = {
    "elicitation-sep1034-client-defaults": "nobody is asked in a chat's call: elicitation is refused",
}
# Every scenario of a group.
GROUPS_LEFT_OUT = {"auth/": "OAuth is not spoken; remote servers are given headers"}


async def _run(*arguments: str, home: Path) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *conformance(*arguments),
        env={
            "PATH": f"{Path(NODE).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
        },
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_what_the_suite_asks_of_every_client(scenario: str, tmp_path: Path) -> None:
    """Handshake, a call, a stream that ends early and is resumed when the server said."""
    code, said = await _run(
        "client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario, home=tmp_path
    )

    assert code == 0, said
    assert "OVERALL: PASSED" in said, said
    assert ", 0 failed" in said, said


@pytest.mark.timeout(LIMIT_S)
async def test_every_scenario_is_run_or_left_out_for_a_reason(tmp_path: Path) -> None:
    """A newer suite may have more."""
    _, said = await _run("list", home=tmp_path)
    listed = said.partition("Client scenarios")[2]
    names = [line.split()[1] for line in listed.splitlines() if line.startswith("  - ")]
    rest = [name for name in names if not name.startswith(tuple(GROUPS_LEFT_OUT))]

    assert sorted(rest) == sorted([*SCENARIOS, *LEFT_OUT])
