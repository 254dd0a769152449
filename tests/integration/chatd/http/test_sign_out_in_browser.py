"""Logging in and out, in a real Chromium."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright, expect

from chatd.routes.misc import PAGE_DIR
from tests.browser import ARGUMENTS
from tests.integration.chatd.http.site import API, Site

LIMIT_MS = 30_000


def chromium() -> str | None:
    """Where the browser is; asked apart, since playwright's two interfaces exclude each other."""
    import subprocess  # noqa: PLC0415 -- only here
    import sys  # noqa: PLC0415

    found = subprocess.run(
        [sys.executable, "-m", "tests.browser"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_the_page_shows_who_is_logged_in_and_signs_out(site: Site, browser: Browser) -> None:
    """Ours: after signing out the page shows nothing, and the session is no more."""
    assert (PAGE_DIR / "index.html").is_file(), "the page was not built: script/bootstrap"
    link = (await site.ask("POST", "/login-tokens", status=201))["path"]
    page = await browser.new_page()
    await page.goto(site.plane.url + link)
    await expect(page.get_by_test_id("user-name")).to_have_text("me", timeout=LIMIT_MS)
    (cookie,) = await page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    await page.get_by_test_id("sign-out").click()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible(timeout=LIMIT_MS)
    await page.reload()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible(timeout=LIMIT_MS)

    assert await page.context.cookies() == []
    session = {"Cookie": f"{cookie['name']}={cookie['value']}"}
    assert await site.status("GET", f"{API}/me", session) == 401


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.attack
async def test_a_link_on_another_page_logs_in_only_when_asked(site: Site, browser: Browser) -> None:
    """Ours: login CSRF: following somebody else's link shows a question and sets no cookie."""
    link = (await site.ask("POST", "/login-tokens", who="other", status=201))["path"]
    page = await browser.new_page()
    # Another site: the browser says so by itself.
    await page.route(
        "http://evil.example/",
        lambda route: route.fulfill(content_type="text/html", body=f'<a href="{site.plane.url}{link}">x</a>'),
    )
    await page.goto("http://evil.example/")
    await page.get_by_role("link").click()
    button = page.get_by_role("button", name="Log in")
    await expect(button).to_be_visible(timeout=LIMIT_MS)
    assert await page.context.cookies() == []
    await button.click()

    await expect(page.get_by_test_id("user-name")).to_have_text("other", timeout=LIMIT_MS)
