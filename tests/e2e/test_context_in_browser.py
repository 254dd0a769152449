"""Instructions of a real directory in a real Chromium: pinned, changed on disk, compared, taken."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import ARTIFACTS, Up, running


@pytest.fixture
def up(home: Path) -> Iterator[Up]:
    """An `agentd up` started in a directory with instructions and a skill."""
    work = home / "project"
    (work / "skills" / "deploy").mkdir(parents=True)
    (work / "AGENTS.md").write_text("# House rules\n\nSpeak plainly.\nAsk before you delete.\n")
    (work / "skills" / "deploy" / "SKILL.md").write_text(
        "---\nname: deploy\ndescription: Ships the project to its servers.\n---\nRun it.\n"
    )
    (work / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "true", "env": {"KEY": "hunter2"}}}}')
    with running(home, variables={"AGENTD_WORKING_DIR": str(work)}) as instance:
        yield instance


@pytest.mark.timeout(180)
def test_a_person_sees_that_instructions_changed_and_takes_them(up: Up, page: Page) -> None:
    """
    Issue: an indicator, the list, the difference and a button.

    Steps: a chat is pinned to the directory it was started in; the list shows what it has, never secrets;
    a file is saved as editors do; the page tells; the difference is shown; the button takes it.
    """
    work = up.home / "project"
    page.goto(up.info["url"])
    page.get_by_test_id("composer").fill("say hello")
    page.get_by_test_id("send").click()
    indicator = page.get_by_test_id("context")
    expect(indicator).to_have_attribute("aria-label", "instructions")
    indicator.click()
    resources = page.get_by_test_id("context-resources")
    expect(resources.locator("li")).to_have_count(3)
    expect(resources).to_contain_text("House rules")
    expect(resources).to_contain_text("Ships the project to its servers.")
    assert "hunter2" not in page.content()
    page.keyboard.press("Escape")
    page.get_by_test_id("mcp").click()
    # `true` says nothing and ends: a server that can't be used, with its reason.
    server = page.get_by_test_id("mcp-x")
    expect(server.locator(".tag")).to_have_text(re.compile("waiting|failed"))
    expect(server.locator(".resource-error")).not_to_be_empty()
    page.screenshot(path=ARTIFACTS / "mcp-1280x800.png")
    page.keyboard.press("Escape")
    indicator.click()

    fresh = work / "AGENTS.md~"
    fresh.write_text("# House rules\n\nSpeak plainly, and briefly.\nAsk before you delete.\n")
    fresh.replace(work / "AGENTS.md")
    shutil.rmtree(work / "skills")
    changes = page.get_by_test_id("context-changes")
    expect(changes).to_contain_text("1 changed, 1 removed")
    expect(page.get_by_test_id("context-diff")).to_contain_text("+Speak plainly, and briefly.")
    expect(indicator).to_have_attribute("aria-label", "instructions changed")
    expect(resources.locator("li")).to_have_count(3)
    page.screenshot(path=ARTIFACTS / "context-changed.png")

    page.get_by_test_id("context-refresh").click()
    expect(changes).to_have_count(0)
    expect(resources.locator("li")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("message-assistant").last).to_contain_text("hello")
    expect(indicator).to_have_attribute("data-dirty", "false")
    page.screenshot(path=ARTIFACTS / "context-taken.png")
