"""Write what a reload takes up into docs/howto/service.md; ``--check`` only compares."""

import sys
from pathlib import Path

from agentd.reloading import RELOADABLE as OF_AGENTD
from chatd.reloading import RELOADABLE as OF_CHATD

DOCUMENT = Path(__file__).parents[1] / "docs/howto/service.md"
BEGIN, END = "<!-- reload -->", "<!-- /reload -->"


def main() -> int:
    """Rewrite the part between the marks; 1 if it differed and may not be written."""
    text = DOCUMENT.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    rows = [
        f"| {name} | {', '.join(f'`{field}`' for field in sorted(fields))} |"
        for name, fields in (("chatd", OF_CHATD), ("agentd", OF_AGENTD))
    ]
    table = "\n".join(("| daemon | settings |", "|---|---|", *rows))
    new = f"{head}{BEGIN}\n{table}\n{END}{tail}"
    if "--check" in sys.argv:
        return 0 if new == text else 1
    DOCUMENT.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
