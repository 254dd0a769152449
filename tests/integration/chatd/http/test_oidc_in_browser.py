"""Logging in with a certified OpenID provider, in a real Chromium."""

from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from chatd.routes.misc import PAGE_DIR
from tests.browser import ARGUMENTS
from tests.integration.chatd.http.test_oidc import add, deployment
from tests.integration.chatd.http.test_sign_out_in_browser import LIMIT_MS, chromium


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_the_page_s_button_leads_to_the_provider_and_back(tmp_path: Path) -> None:
    """Issue 10: from a page without a login to the chats, by what a person does."""
    assert (PAGE_DIR / "index.html").is_file(), "the page was not built: script/bootstrap"
    async with (
        deployment(tmp_path, "certified", oidc_label="Example") as (site, provider),
        async_playwright() as playwright,
    ):
        await add(site, "ann")
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = await browser.new_page()
        await page.goto(site.plane.url)
        button = page.get_by_role("link", name="Sign in with Example")
        await button.click(timeout=LIMIT_MS)
        await page.wait_for_url(f"{provider.issuer}/**", timeout=LIMIT_MS)
        await page.get_by_placeholder("login").fill("ann")
        await page.get_by_placeholder("password").fill("any")
        await page.get_by_role("button").first.click()
        await page.get_by_role("button", name="Continue").click(timeout=LIMIT_MS)

        await expect(page.get_by_test_id("user-name")).to_have_text("ann", timeout=LIMIT_MS)
        cookies = {cookie["name"] for cookie in await page.context.cookies(site.plane.url)}
        assert "agentd_session" in cookies
        assert "agentd_oidc" not in cookies
        await browser.close()
