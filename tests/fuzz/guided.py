"""
Feed one target, guided by the coverage of what it runs; ``script/fuzz`` starts this.

Arguments: the target, then those of libFuzzer.
"""

import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

OURS = ("agentd", "chatd", "computer", "context_push", "mcp_bridge")
with atheris.instrument_imports(include=[*OURS, "json", "yaml"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Never returns."""
    name, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
