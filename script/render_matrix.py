"""Write table and diagram of chat states into ARCHITECTURE.md from the matrix; ``--check`` only compares."""

import re
import sys
from pathlib import Path

from chatd.state import MATRIX, ChatState

DOCUMENT = Path(__file__).parent.parent / "ARCHITECTURE.md"
# What the letters of states mean; digits tell whether messages wait, which the diagram leaves out.
WORDS = {
    "N": "[*]", "W": "idle", "E": "error", "R": "running", "I": "interrupting", "A": "requires_action",
    "X": "archived", "i": "invalid",
}  # fmt: skip


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


def render_diagram() -> str:
    """The matrix as a Mermaid diagram of the states without the queue: an edge for each way."""
    edges: dict[tuple[str, str], list[str]] = {}
    for transition, moves in MATRIX.items():
        for before, afters in moves.items():
            for after in afters:
                ends = WORDS[before.value[0]], WORDS[after.value[0]]
                names = edges.setdefault(ends, [])
                if ends[0] != ends[1] and transition.value not in names:
                    names.append(transition.value)
    lines = [
        f"    {before} --> {after}: {', '.join(names)}" for (before, after), names in edges.items() if names
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def main(arguments: list[str]) -> int:
    """Rewrite the block, or say that it is out of date."""
    text = DOCUMENT.read_text()
    fresh = text
    for name, made in (("matrix", render()), ("diagram", render_diagram())):
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        match block.split(fresh):
            case [before, begin, end, after]:
                fresh = f"{before}{begin}{made}\n{end}{after}"
            case _:
                sys.stderr.write(f"{DOCUMENT.name} has no block for the {name}\n")
                return 1
    if "--check" in arguments:
        return 0 if fresh == text else 1
    DOCUMENT.write_text(fresh)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
