"""What a person sees of a vendor that fails, in a real Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ARTIFACTS, Up, running

TURNS: list[dict[str, Any]] = [
    {
        "fault": {
            "kind": "http",
            "status": 529,
            "message": "Overloaded",
            "headers": {"retry-after": "600"},
        }
    },
    {
        "reply": {
            "searches": [
                {
                    "query": "what happened",
                    "pages": [{"url": "https://news.example/today", "title": "Today's news"}],
                }
            ],
            "text": ["At last."],
        }
    },
    {"fault": {"kind": "http", "status": 401, "message": "key sk-abcdef123456 is not known"}},
]


@pytest.fixture
def up(home: Path) -> Iterator[Up]:
    """An `agentd up` whose rehearsal model plays the scenario."""
    options = '{"anthropic": {"web_search_enabled": true}}'
    with running(home, turns=TURNS, variables={"CHATD_MODEL_OPTIONS": options}) as instance:
        yield instance


@pytest.mark.timeout(120)
def test_a_person_sees_a_wait_counted_down_and_why_a_turn_ended(up: Up, page: Page) -> None:
    """
    Issue: the person sees what happens and why.

    Steps: the vendor is overloaded and says when to come back; the page counts down to that, and a stop
    ends the wait; the next answer comes, with what it cites; then the key is refused, and the page says
    so without the key.
    """
    page.goto(up.info["url"])
    page.get_by_test_id("composer").fill("hello")
    page.get_by_test_id("send").click()
    retry = page.get_by_test_id("retry")
    expect(retry).to_have_text(
        re.compile(r"temporarily overloaded\. Trying again in (9|1[0-2]) min \d+ s \(attempt 2\)")
    )
    page.screenshot(path=ARTIFACTS / "retry.png")
    expect(retry).not_to_have_text(retry.inner_text())
    page.get_by_test_id("stop").click()
    expect(retry).to_have_count(0)

    page.get_by_test_id("composer").fill("what now?")
    page.get_by_test_id("send").click()
    expect(page.get_by_text("At last.")).to_be_visible()
    link = page.get_by_test_id("sources").get_by_role("link", name="Today's news")
    expect(link).to_have_attribute("href", "https://news.example/today")
    expect(page.get_by_test_id("tool-card")).to_contain_text("Search the web for “what happened”")

    page.get_by_test_id("composer").fill("again")
    page.get_by_test_id("send").click()
    error = page.get_by_test_id("chat-error")
    expect(error).to_contain_text("Authentication with")
    expect(error).to_contain_text("key [redacted] is not known")
    page.screenshot(path=ARTIFACTS / "auth-error.png")
