"""Where Chromium is. As a program: exit code 0 if there is one, its path on stdout."""

import shutil
import sys

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Chromium as root has no sandbox; the rest keeps it from calling home.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str | None:
    """The distribution's Chromium, or the one that playwright installed."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None and not path.startswith("/snap/"):
            return path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
        return path if shutil.which(path) else None


if __name__ == "__main__":
    found = find_browser()
    sys.stdout.write(f"{found or ''}\n")
    raise SystemExit(0 if found else 1)
