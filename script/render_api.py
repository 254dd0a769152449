"""Write the routes into docs/reference/api.md from the OpenAPI document; ``--check`` only compares."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chatd.app import openapi_document

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
PLACE = re.compile(r"(<!-- routes -->\n).*?(<!-- /routes -->)", re.DOTALL)
PREFIX = "/api/experimental"
# What any route may answer is said once, above the table.
COMMON = {"400", "401", "403", "404", "429"}


def routes() -> dict[str, dict[str, Any]]:
    """The document's paths; nothing is started for it."""
    paths: dict[str, dict[str, Any]] = openapi_document()["paths"]
    return paths


def _rows() -> Iterator[str]:
    yield "| method | path below `/api/experimental` | | answers |"
    yield "|---|---|---|---|"
    for path, methods in routes().items():
        for method, operation in methods.items():
            statuses = [status for status in operation["responses"] if status not in COMMON]
            shown = path.removeprefix(PREFIX)
            yield f"| {method.upper()} | `{shown}` | {operation['summary']} | {', '.join(statuses)} |"


def main() -> int:
    """Write or compare."""
    text = DOCUMENT.read_text()
    table = "\n".join(_rows())
    wanted = PLACE.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)
    if wanted == text:
        return 0
    if "--check" in sys.argv:
        sys.stderr.write("docs/reference/api.md is out of date: run script/render_api.py\n")
        return 1
    DOCUMENT.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
