"""How hard the model thinks, chosen beside the message in a real Chromium."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser import ARGUMENTS, find_browser
from tests.e2e.conftest import Up, poll

LIMIT_MS = 30_000
OPTIONS = {"anthropic": {"reasoning_efforts": ["low", "high"]}}


def _asked(up: Up, method: str, path: str) -> object:
    """The API's word, read by another way than the page's."""
    from urllib.request import Request, urlopen  # noqa: PLC0415 -- one request

    headers = {"Authorization": f"Bearer {up.info['token']}"}
    request = Request(up.info["api"] + path, headers=headers, method=method)  # noqa: S310 -- loopback
    with urlopen(request, timeout=10) as answer:  # noqa: S310
        return json.loads(answer.read())


@pytest.mark.timeout(180)
@pytest.mark.parametrize("up", [{"CHATD_MODEL_OPTIONS": json.dumps(OPTIONS)}], indirect=True)
def test_an_effort_is_chosen_for_a_chat_and_changed_with_a_message(up: Up) -> None:
    """
    Brief: shown and choosable where the model offers it, and nowhere else.

    Truth: what the API tells of chat and messages.
    """
    Path("artifacts").mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(LIMIT_MS)
        page.goto(up.info["url"])
        picker = page.get_by_test_id("effort-picker")
        models = page.get_by_test_id("model-picker")
        models.select_option(label="Rehearsal (OpenAI protocol)")
        expect(picker).to_have_count(0)
        models.select_option(label="Rehearsal (Anthropic protocol)")
        expect(picker).to_have_value("")
        picker.select_option("high")
        page.screenshot(path="artifacts/effort-1280x800.png")
        page.get_by_test_id("composer").fill("say hello")
        page.get_by_test_id("send").click()
        expect(page.get_by_test_id("message-assistant").last).to_contain_text("hello", timeout=LIMIT_MS)
        expect(picker).to_have_value("high")
        chat_id = page.url.rpartition("/")[2]
        first = _asked(up, "GET", f"/chats/{chat_id}")
        picker.select_option("low")
        page.get_by_test_id("composer").fill("say goodbye")
        page.get_by_test_id("send").click()
        expect(page.get_by_test_id("message-assistant").last).to_contain_text("goodbye", timeout=LIMIT_MS)
        expect(picker).to_have_value("low")
        browser.close()

    assert isinstance(first, dict)
    assert first["last_reasoning_effort"] == "high"
    page_of = poll(lambda: _asked(up, "GET", f"/chats/{chat_id}/messages"), timeout_s=5, what="messages")
    efforts = [one.get("reasoning_effort") for one in page_of["messages"] if one["role"] == "user"]
    assert efforts == ["high", "low"]
