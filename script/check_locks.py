"""Lock files hold names, versions and hashes, and no download address; the changelog names the version."""

import re
import sys
import tomllib
from pathlib import Path

ADDRESS = re.compile(r"https?://|\"resolved\"|--index-url|--find-links")


def main() -> int:
    """Print what is wrong; the exit code says whether anything is."""
    problems = []
    for lock in sorted(Path("requirements").glob("*.txt")):
        text = lock.read_text()
        if ADDRESS.search(text):
            problems.append(f"{lock}: holds a download address")
        if "--hash=sha256:" not in text:
            problems.append(f"{lock}: holds no hashes")
    npm_locks = [Path("web/package-lock.json"), Path("tests/peers/package-lock.json")]
    problems += [
        f"{lock}: holds download addresses" for lock in npm_locks if '"resolved"' in lock.read_text()
    ]
    version = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
    if f"## [{version}]" not in Path("CHANGELOG.md").read_text():
        problems.append(f"CHANGELOG.md: has no section for version {version}")
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
