"""What a person does with chats in a real Chromium: edit, queue, stop, rename, pin, put away, come back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ARTIFACTS, Up, running

NEVER_MS = 600_000
TURNS: list[dict[str, Any]] = [
    {
        "when": {"contains": "slow"},
        "times": None,
        "reply": {"text": ["Working on it.", {"text": "never", "delay_ms": NEVER_MS}]},
    },
    {
        "when": {"contains": "later"},
        "times": None,
        "reply": {"text": [{"text": "Here.", "delay_ms": 1500}]},
    },
]


@pytest.fixture
def up(home: Path) -> Iterator[Up]:
    """An `agentd up` whose rehearsal model plays the scenario."""
    with running(home, turns=TURNS) as instance:
        yield instance


@pytest.fixture
def expected_noise() -> tuple[str, ...]:
    """What Chromium says of a desktop that one leaves for another chat before it is there."""
    return ("WebSocket is closed before the connection is established",)


@pytest.fixture
def page(up: Up, new_page: Callable[[], Page]) -> Page:
    """The page, logged in."""
    page = new_page()
    page.goto(up.info["url"])
    return page


def say(page: Page, text: str) -> None:
    """Write and press Enter."""
    page.get_by_test_id("composer").fill(text)
    page.get_by_test_id("composer").press("Enter")


def choose(page: Page, item: str) -> None:
    """An item of the open chat's menu, by keyboard."""
    page.get_by_test_id("chat-menu").focus()
    page.keyboard.press("Enter")
    page.locator(".chat-menu").get_by_role("button", name=item, exact=True).focus()
    page.keyboard.press("Enter")


@pytest.mark.timeout(150)
def test_a_person_edits_queues_stops_and_puts_in_order(page: Page) -> None:
    """
    Issue: as a person would expect, by keyboard too.

    Steps:
        1. edit a message; 2. while the model is busy leave one for its next step and queue one, take the
        first back, send the other now;
        3. stop by Esc; 4. rename, pin, archive and take out again; 5. see another chat's answer unread.
    """
    edit_queue_and_stop(page)
    put_in_order(page)


def edit_queue_and_stop(page: Page) -> None:
    """Steps 1 to 3."""
    say(page, "say one")
    answers = page.get_by_test_id("message-assistant")
    expect(answers).to_have_text(["one"])
    page.get_by_test_id("message-user").hover()
    page.get_by_role("button", name="Edit message").click()
    expect(page.get_by_test_id("edit-field")).to_be_focused()
    page.get_by_test_id("edit-field").press("Escape")
    expect(answers).to_have_text(["one"])
    page.get_by_role("button", name="Edit message").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("edit-field")).to_be_focused()
    page.get_by_test_id("edit-field").fill("say two")
    page.screenshot(path=ARTIFACTS / "edit-message.png")
    page.get_by_test_id("edit-field").press("Enter")
    expect(answers).to_have_text(["two"])

    say(page, "slow please")
    expect(answers.last).to_have_text("Working on it.")
    queued = page.get_by_test_id("message-queued")
    page.get_by_test_id("composer").fill("say three")
    page.get_by_test_id("composer").press("Control+Shift+Enter")
    expect(queued).to_have_count(1)
    expect(queued).to_contain_text("for the next step")
    say(page, "say four")
    expect(queued).to_have_count(2)
    page.screenshot(path=ARTIFACTS / "queue.png")
    queued.first.get_by_role("button", name="Edit").click()
    expect(page.get_by_test_id("composer")).to_have_value("say three")
    page.get_by_test_id("composer").fill("")
    queued.get_by_role("button", name="Send now").click()
    expect(answers).to_have_text(["two", "Working on it.", "four"])
    say(page, "slow again")
    # Not "running": that may still be of the turn before.
    expect(answers).to_have_text(["two", "Working on it.", "four", "Working on it."])
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("status")).to_have_text("waiting")


def put_in_order(page: Page) -> None:
    """Steps 4 and 5."""
    choose(page, "Rename")
    page.get_by_test_id("title-field").fill("My chat")
    page.keyboard.press("Enter")
    item = page.get_by_test_id("chat-item")
    expect(item).to_contain_text("My chat")
    choose(page, "Pin")
    expect(item.get_by_title("Pinned")).to_be_visible()
    choose(page, "Archive")
    expect(page.get_by_test_id("archived-note")).to_be_visible()
    expect(item).to_have_count(0)
    page.get_by_test_id("show-archived").click()
    expect(item).to_contain_text("My chat")
    page.screenshot(path=ARTIFACTS / "archive.png")
    choose(page, "Take out of the archive")
    page.get_by_test_id("show-archived").click()
    expect(page.get_by_test_id("composer")).to_be_visible()

    page.get_by_test_id("new-chat").click()
    # Until it is there, what is written goes to the chat before.
    expect(page.get_by_placeholder("Ask for anything…")).to_be_visible()
    say(page, "answer later")
    expect(item).to_have_count(2)
    item.filter(has_text="My chat").click()
    other = item.filter(has_text="answer later")
    expect(other).to_have_attribute("data-unread", "true")
    page.screenshot(path=ARTIFACTS / "unread.png")
    other.click()
    expect(other).to_have_attribute("data-unread", "false")
