"""The running API beside its description: schemathesis makes requests of it and believes nothing."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.integration.chatd.http.site import Site

# Requests made for each operation beyond those at the edges of its schema.
EXAMPLES = os.environ.get("CHATD_SCHEMATHESIS_EXAMPLES", "3")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Not asked: that every fitting body is taken; 400 also tells what only the state knows (archived already).
NOT_CHECKED = "positive_data_acceptance"


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_the_api_answers_as_its_description_says(site: Site, tmp_path: Path) -> None:
    """Issue: no failure of ours, only statuses, types and bodies that are described."""
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "run", f"{site.plane.url}/api/openapi.json"),
        *("--header", f"Authorization: Bearer {site.tokens['me']}", "--no-color", "--warnings", "off"),
        *("--max-examples", EXAMPLES, "--seed", "8", "--generation-database", "none"),
        *("--exclude-checks", NOT_CHECKED),
        # What never ends.
        *("--exclude-path-regex", "/(stream|watch)$"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    try:
        told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()

    assert process.returncode == 0, told.decode()
