"""The running API beside its description: schemathesis makes requests of it and believes nothing."""

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.integration.chatd.http.site import Site, serving

# Requests made for each operation beyond those at the edges of its schema.
EXAMPLES = os.environ.get("CHATD_SCHEMATHESIS_EXAMPLES", "3")
# Other requests each time; schemathesis tells the seed of a run that fails.
SEED = os.environ.get("CHATD_SCHEMATHESIS_SEED") or str(random.randrange(10**6))  # noqa: S311 -- no secret
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Not asked: that every fitting body is taken; 400 also tells what only the state knows (archived already).
NOT_CHECKED = "positive_data_acceptance"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("admins", [(), ("me",)], ids=["user", "administrator"])
async def test_the_api_answers_as_its_description_says(tmp_path: Path, admins: tuple[str, ...]) -> None:
    """Issue: no failure of ours, only statuses, types and bodies that are described; for either user."""
    # Sealed headers of MCP servers need a key.
    keys = (Fernet.generate_key().decode(),)
    async with serving(tmp_path / "data", admins=admins, secret_keys=keys) as site:
        code, told = await ask_everything(site, tmp_path)

    assert code == 0, told


async def ask_everything(site: Site, folder: Path) -> tuple[int | None, str]:
    """Run schemathesis in *folder*: its exit code, and what it told."""
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "run", f"{site.plane.url}/api/openapi.json"),
        *("--header", f"Authorization: Bearer {site.tokens['me']}", "--no-color", "--warnings", "off"),
        *("--max-examples", EXAMPLES, "--seed", SEED, "--generation-database", "none"),
        *("--exclude-checks", NOT_CHECKED),
        # What never ends.
        *("--exclude-path-regex", "/(stream|watch)$"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    try:
        told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, told.decode()
