"""A Chromium for tests. As a program: exit code 0 if there is one, its path on stdout."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

# Milliseconds that a page may take to show something: many times what it takes on a quiet machine.
LIMIT_MS = 30_000
WIDE = {"width": 1280, "height": 800}
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


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A Chromium of its own; what is expected of its pages may take `LIMIT_MS`."""
    expect.set_options(timeout=LIMIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    found = find_browser()
    sys.stdout.write(f"{found or ''}\n")
    raise SystemExit(0 if found else 1)
