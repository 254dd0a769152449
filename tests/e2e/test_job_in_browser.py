"""
The main job in a real Chromium, its truth checked outside the system.

A person opens the printed URL, asks for a command in a terminal, watches the
desktop beside the chat and reads the answer.
"""

import json
import platform
import sqlite3
import subprocess
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect
from Xlib.display import Display

from tests.e2e.conftest import ARTIFACTS, Up, poll

# Milliseconds for the whole job: about 12 steps with a look at the screen after each.
JOB_TIMEOUT_MS = 60_000
NARROW = {"width": 390, "height": 844}

PROTOCOLS = [
    pytest.param("Rehearsal (Anthropic protocol)", "anthropic", id="anthropic"),
    pytest.param("Rehearsal (OpenAI protocol)", "openai", id="openai"),
]


def canvas_picture(page: Page) -> str:
    """What the noVNC canvas shows, as a data URL; empty while there is no picture."""
    script = """() => {
      const canvas = document.querySelector('[data-testid="desktop-canvas"] canvas');
      return canvas && canvas.width ? canvas.toDataURL() : '';
    }"""
    return str(page.evaluate(script))


def window_titles(up: Up, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Titles of the windows on the agent's desktop, asked of X itself."""
    status = json.loads(up.agentd("desktop", "status", "--json").stdout)[0]
    monkeypatch.setenv("XAUTHORITY", up.xauthority)
    with closing(Display(status["display"])) as display:
        atom = display.intern_atom("_NET_CLIENT_LIST")
        root = display.screen().root
        ids = root.get_full_property(atom, 0).value
        return [str(display.create_resource_object("window", i).get_wm_name()) for i in ids]


def rows(up: Up, query: str) -> list[tuple[object, ...]]:
    """Rows of chatd's database, read beside it."""
    with closing(sqlite3.connect(f"file:{up.data}/chatd.sqlite3?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def start_job(page: Page, up: Up, model: str, prompt: str) -> None:
    """Log in by the printed URL, choose the model, send the prompt."""
    page.goto(up.info["url"])
    expect(page.get_by_test_id("rehearsal-banner")).to_have_text("no model key: rehearsal model")
    page.get_by_test_id("model-picker").select_option(label=model)
    page.get_by_test_id("composer").fill(prompt)
    page.get_by_test_id("send").click()


@pytest.mark.timeout(150)
@pytest.mark.parametrize(("model", "provider"), PROTOCOLS)
def test_person_asks_for_a_command_and_reads_its_output(
    up: Up, page: Page, monkeypatch: pytest.MonkeyPatch, model: str, provider: str
) -> None:
    """
    The job of the README: ask, watch, read; the file, the window, the pixels and the rows agree.

    Steps:
        1. log in, ask; 2. see the desktop live and changing; 3. read the answer;
        4. compare with the truth outside; 5. look at it on a narrow screen.
    """
    out = up.home / "uname.txt"
    prompt = f"open a terminal and run `uname -a | tee {out}`, then tell me what it says"

    start_job(page, up, model, prompt)
    expect(page.get_by_test_id("desktop-state")).to_contain_text("live")
    before = poll(lambda: canvas_picture(page), timeout_s=30, what="the desktop's picture")
    answer = page.get_by_test_id("message-assistant").last
    expect(answer).to_contain_text(platform.release(), timeout=JOB_TIMEOUT_MS)
    expect(page.get_by_test_id("status")).to_have_text("waiting")
    page.screenshot(path=ARTIFACTS / f"job-{provider}-1280x800.png")

    said = subprocess.run(["uname", "-a"], capture_output=True, text=True, check=True).stdout
    assert out.read_text() == said
    assert said.strip() in answer.inner_text()
    assert "Terminal" in window_titles(up, monkeypatch)
    assert canvas_picture(page) not in {before, ""}
    assert rows(up, "select status, count(*) from chats group by status") == [("waiting", 2)]
    assert rows(up, "select distinct provider from chat_messages m join chat_model_configs c "
                    "on c.id = m.model_config_id") == [(provider,)]  # fmt: skip
    assert page.get_by_test_id("tool-card").count() >= 2

    page.set_viewport_size(NARROW)
    expect(page.get_by_test_id("composer")).to_be_visible()
    page.screenshot(path=ARTIFACTS / f"job-{provider}-390x844.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


@pytest.mark.timeout(120)
def test_person_stops_a_turn_from_the_page(up: Up, page: Page) -> None:
    """The stop button ends the turn and its agent's, and the chat can go on."""
    start_job(page, up, PROTOCOLS[0].values[0], "open a terminal and wait 30 seconds")  # type: ignore[arg-type]
    expect(page.get_by_test_id("tool-card").first).to_be_visible(timeout=20_000)
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("status")).to_have_text("waiting")
    page.get_by_test_id("composer").fill("say hello")
    page.get_by_test_id("send").click()

    expect(page.get_by_test_id("message-assistant").last).to_contain_text("hello")
    assert rows(up, "select distinct status from chats where parent_chat_id is not null") in (
        [("waiting",)],
        [],
    )
