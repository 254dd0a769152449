"""A question that does not end the turn, in a real Chromium: answered in its card, then a file is given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Up, running

QUESTION = {
    "header": "Colour",
    "question": "Which colour shall the door have?",
    "options": [
        {"label": "Red", "description": "seen from afar"},
        {"label": "Green", "description": "like the garden"},
    ],
}


def _turn(asked: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"when": {"contains": asked}, "reply": {"calls": [{"name": name, "arguments": arguments}]}}


@pytest.fixture
def up(home: Path) -> Iterator[Up]:
    """An `agentd up` with the experiment, whose model asks and goes on."""
    door = home / "door.txt"
    turns = [
        _turn("the door", "ask_user_question", questions=[QUESTION]),
        _turn("the door", "execute", command=f"echo sanded > {door}"),
        {"when": {"contains": "the door"}, "reply": {"text": ["It is sanded."]}},
        _turn("Colour: Green", "execute", command=f"echo green >> {door}"),
        _turn("Colour: Green", "attach_file", path=str(door)),
        {"when": {"contains": "Colour: Green"}, "reply": {"text": ["It is painted."]}},
    ]
    with running(home, turns=turns, variables={"CHATD_EXPERIMENTS": '["chat-async-questions"]'}) as instance:
        yield instance


@pytest.mark.timeout(180)
def test_a_question_is_answered_when_the_agent_has_gone_on(up: Up, page: Page) -> None:
    """
    The issue: the root asks, goes on working, gets the answer in the panel.

    Truth: the file, sanded before the answer and green after it, as the browser downloads it.
    """
    page.goto(up.info["url"])
    page.get_by_test_id("composer").fill("paint the door")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("message-assistant").last).to_contain_text("It is sanded.")
    assert (up.home / "door.txt").read_text() == "sanded\n"
    questions = page.get_by_test_id("questions")
    questions.get_by_label("Green like the garden").check()
    page.get_by_test_id("questions-answer").click()

    expect(page.get_by_test_id("message-assistant").last).to_contain_text("It is painted.")
    expect(page.get_by_test_id("questions-answer")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="door.txt").click()
    assert download.value.path().read_text() == "sanded\ngreen\n"
