"""Write the table of chat states into ARCHITECTURE.md from the matrix; ``--check`` only compares."""

import re
import sys
from pathlib import Path

from chatd.state import MATRIX, ChatState

DOCUMENT = Path(__file__).parent.parent / "ARCHITECTURE.md"
BLOCK = re.compile(r"(<!-- matrix -->\n).*?(\n<!-- /matrix -->)", re.DOTALL)


def render() -> str:
    """The matrix as a Markdown table: a row for each transition, a column for each state it knows."""
    states = [state for state in ChatState if any(state in moves for moves in MATRIX.values())]
    lines = [
        "| transition | " + " | ".join(state.value for state in states) + " |",
        "|---" * (len(states) + 1) + "|",
    ]
    for transition, moves in MATRIX.items():
        cells = ["/".join(sorted(moves.get(state, ()))) or "-" for state in states]
        lines.append(f"| {transition.value} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Rewrite the block, or say that it is out of date."""
    text = DOCUMENT.read_text()
    fresh, count = BLOCK.subn(lambda match: match[1] + render() + match[2], text)
    if count != 1:
        sys.stderr.write(f"{DOCUMENT.name} has no block for the matrix\n")
        return 1
    if "--check" in arguments:
        return 0 if fresh == text else 1
    DOCUMENT.write_text(fresh)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
