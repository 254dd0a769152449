"""A plan before the work, in a real Chromium: asked, proposed, agreed to, carried out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ARTIFACTS, Up, poll, running

QUESTION = {
    "header": "Colour",
    "question": "Which colour shall the door have?",
    "options": [
        {"label": "Red", "description": "seen from afar"},
        {"label": "Green", "description": "like the garden"},
    ],
}
PLAN = "# The door\n\n1. Sand it.\n2. Paint it **green**.\n"


def _calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def up(home: Path) -> Iterator[Up]:
    """An `agentd up` whose model asks, proposes what lies there as its plan, and works when it may."""
    work = f"echo painted > {home / 'door'}"
    turns = [
        {"when": {"tool": "ask_user_question"}, "reply": _calls("ask_user_question", questions=[QUESTION])},
        {"when": {"tool": "propose_plan", "contains": "Colour: Green"}, "reply": _calls("propose_plan")},
        {"when": {"contains": "Carry out the plan."}, "reply": _calls("execute", command=work)},
        {"when": {"contains": "Carry out the plan."}, "reply": {"text": ["It is painted."]}},
    ]
    with running(home, turns=turns) as instance:
        yield instance


@pytest.mark.timeout(180)
def test_a_plan_is_asked_for_proposed_and_carried_out(up: Up, page: Page) -> None:
    """
    The issue: plan mode and its questions; nothing is done before the person has agreed.

    Truth: the file that the work writes, which is not there while the plan is made.
    """
    page.goto(up.info["url"])
    page.get_by_test_id("plan-switch").check()
    page.get_by_test_id("composer").fill("paint the door")
    page.get_by_test_id("send").click()
    questions = page.get_by_test_id("questions")
    questions.get_by_label("Green like the garden").check()
    page.screenshot(path=ARTIFACTS / "questions-1280x800.png")
    chat_id = page.url.rpartition("/")[2]
    plans = up.home / ".agentd" / "plans"
    plans.mkdir(parents=True)
    (plans / f"PLAN-{chat_id}.md").write_text(PLAN)
    page.get_by_test_id("questions-answer").click()

    plan = page.get_by_test_id("plan")
    expect(plan).to_contain_text("Paint it green.")
    carry_out = page.get_by_test_id("plan-carry-out")
    expect(carry_out).to_be_visible()
    page.screenshot(path=ARTIFACTS / "plan-1280x800.png")
    assert not (up.home / "door").exists()
    carry_out.click()
    expect(page.get_by_test_id("message-assistant").last).to_contain_text("It is painted.")
    expect(page.get_by_test_id("plan-switch")).not_to_be_checked()
    assert poll((up.home / "door").read_text, timeout_s=30, what="the door") == "painted\n"
