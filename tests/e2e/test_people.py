"""
Two people at one desktop, in two browsers, and what the X server saw of it.

One takes control and types, gives it back; a guest watches by a link until that is revoked; the
server goes away and comes back.
"""

import json
import socket
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Up, poll, wait_gone

UNICODE = "Grüße, 世界 🙂"


@pytest.fixture
def expected_noise() -> tuple[str, ...]:
    """What a browser logs by itself while there is no server, when it is refused, or looked at closely."""
    return ("WebSocket", "Failed to load resource", "ERR_CONNECTION", "Canvas2D: Multiple readback")


class _Local(HTTPConnection):
    """The daemon's local API, on its Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("agentd", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def ask_daemon(up: Up, method: str, path: str, body: object = None) -> Any:
    """What the daemon answers, whatever its status."""
    with closing(_Local(str(up.home / "run" / "agentd.sock"))) as connection:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


def act(up: Up, **action: Any) -> Any:
    """One action at the desktop, as the shell gives it."""
    return ask_daemon(up, "POST", "/api/v0/desktop/main/action", action)


def ask_server(up: Up, path: str, body: object) -> Any:
    """POST to chatd's API."""
    headers = {"Authorization": f"Bearer {up.info['token']}", "Content-Type": "application/json"}
    request = Request(up.info["api"] + path, json.dumps(body).encode(), headers)  # noqa: S310 -- http, loopback
    with urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.loads(answer.read())


def new_chat(up: Up) -> str:
    """A chat with a workspace."""
    body = {"content": [{"type": "text", "text": "say hello"}]}
    return str(ask_server(up, "/chats", body)["id"])


def login_url(up: Up) -> str:
    """A link that logs one browser in."""
    return str(up.info["api"]).removesuffix("/api/experimental") + ask_server(up, "/login-tokens", {})["path"]


def open_terminal(up: Up, typed: Path) -> None:
    """A terminal that keeps what is typed into it, under the pointer's click."""
    argv = ["xterm", "-geometry", "150x45+0+0", "-e", f"cat > {typed}"]
    ask_daemon(up, "POST", "/api/v0/desktop/main/open", {"argv": argv})
    poll(typed.exists, timeout_s=30, what="the terminal")


def canvas(up: Up, page: Page) -> None:
    """Click into the picture, where the terminal is, and see that it has the keyboard now."""
    page.locator('[data-testid="desktop-canvas"] canvas').click(position={"x": 60, "y": 60})

    def has_keyboard() -> bool:
        windows = ask_daemon(up, "GET", "/api/v0/desktop/main/windows")
        return any(window["active"] and window["bounds"][1] < 100 for window in windows)

    poll(has_keyboard, timeout_s=30, what="the terminal to have the keyboard")


def open_wheel_counter(up: Up, reports: Path) -> None:
    """A terminal at the bottom that keeps what the mouse does in it; a notch down is ESC [ M a."""
    script = f"printf '\\033[?1000h'; stty -icanon -echo; exec cat > {reports}"
    argv = ["xterm", "-geometry", "100x6+0+660", "-e", "sh", "-c", script]
    ask_daemon(up, "POST", "/api/v0/desktop/main/open", {"argv": argv})
    poll(reports.exists, timeout_s=30, what="the terminal that counts")


def turn_wheel(page: Page) -> None:
    """Over that terminal: ten small movements, half a notch together; then five notches; then a half."""
    box = page.locator('[data-testid="desktop-canvas"] canvas').bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] * 700 / 800)
    for pixels in (*[5] * 10, 500, 50):
        page.mouse.wheel(0, pixels)


def refusal(up: Up) -> str:
    """The code that input of the local API is refused with; "" when it is performed."""
    return str(act(up, action="mouse_move", coordinate=[5, 5]).get("code", ""))


def sources(up: Up) -> list[str]:
    """Where the viewers' pictures come from."""
    return sorted(row["source"] for row in ask_daemon(up, "GET", "/api/v0/viewers"))


def lines(page: Page) -> list[bool]:
    """Which rows of pixels have text, where the first terminal is in the picture: JPEG is never exact."""
    script = """() => {
      const canvas = document.querySelector('[data-testid="desktop-canvas"] canvas');
      const data = canvas.getContext('2d').getImageData(0, 0, 400, 100).data;
      const dark = [];
      for (let y = 0; y < 100; y += 1) {
        let count = 0;
        for (let x = 0; x < 400; x += 1) if (data[(y * 400 + x) * 4] < 100) count += 1;
        dark.push(count > 3);
      }
      return dark;
    }"""
    return list(page.evaluate(script))


def wait_live(page: Page) -> None:
    """Until the desktop's picture is there."""
    expect(page.get_by_test_id("desktop-canvas")).to_have_attribute("data-phase", "live")


def open_chat(up: Up, page: Page, chat_id: str) -> None:
    """Log in and look at the chat's desktop."""
    page.goto(login_url(up))
    page.goto(f"{page.url.split('#')[0]}#/chats/{chat_id}")
    wait_live(page)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("up", [{"AGENTD_BROADCAST_FROM": "1"}], indirect=True, ids=["broadcast"])
def test_two_people_share_one_desktop(up: Up, new_page: Callable[[], Page]) -> None:
    """
    The issue: take over, type, give back; refusal for the other; the agent waits meanwhile.

    Steps: 1. both watch; 2. one takes control and types, the other and the agent are refused;
    and the wheel turns as far as the hand turned it (BUGS 30); 3. the clipboard takes any text, up to 1 MiB;
    4. given back, the agent acts again. Before and after both are shown a broadcast:
    noVNC goes on from it and comes back to it.
    """
    typed, reports = up.home / "typed", up.home / "reports"
    open_terminal(up, typed)
    open_wheel_counter(up, reports)
    chat_id = new_chat(up)
    ann, bob = new_page(), new_page()
    open_chat(up, ann, chat_id)
    open_chat(up, bob, chat_id)
    assert refusal(up) == ""
    assert sources(up) == ["broadcast", "broadcast"]

    ann.get_by_test_id("take-control").click()
    expect(ann.get_by_test_id("control-state")).to_contain_text("You have control")
    expect(ann.get_by_test_id("control-banner")).to_contain_text("You have control")
    expect(bob.get_by_test_id("control-state")).to_contain_text("has control elsewhere")
    expect(bob.get_by_test_id("take-control")).to_be_disabled()
    assert refusal(up) == "control_held"
    poll(lambda: sources(up) == ["broadcast", "server"], timeout_s=30, what="the server's own stream")
    canvas(up, ann)
    ann.keyboard.type("by hand")
    ann.keyboard.press("Enter")
    poll(lambda: typed.read_text() == "by hand\n", timeout_s=30, what="what was typed")
    turn_wheel(ann)
    poll(lambda: reports.read_bytes().count(b"\033[Ma") == 6, timeout_s=30, what="six notches")

    ann.get_by_test_id("clipboard").click()
    ann.get_by_test_id("clipboard-text").fill("x" * (1024 * 1024 + 1))
    ann.get_by_test_id("clipboard-send").click()
    expect(ann.get_by_test_id("clipboard-refused")).to_contain_text("1 MiB")
    ann.get_by_test_id("clipboard-text").fill(UNICODE)
    ann.get_by_test_id("clipboard-send").click()
    # Read by the agent's own way to the clipboard, which only looks.
    read = lambda: str(act(up, action="get_clipboard"))  # noqa: E731
    poll(lambda: UNICODE in read(), timeout_s=30, what="the clipboard")

    ann.get_by_test_id("give-back").click()
    expect(ann.get_by_test_id("control-state")).to_contain_text("The agent has control")
    assert refusal(up) == ""
    there_and_back_once_more(up, typed, ann, bob)


def there_and_back_once_more(up: Up, typed: Path, ann: Page, bob: Page) -> None:
    """In the same connections: Bob types, and both see it, whichever way it comes to them."""
    poll(lambda: sources(up) == ["broadcast", "broadcast"], timeout_s=30, what="the broadcast again")
    expect(bob.get_by_test_id("take-control")).to_be_enabled()
    before = lines(ann)
    bob.get_by_test_id("take-control").click()
    expect(bob.get_by_test_id("control-state")).to_contain_text("You have control")
    canvas(up, bob)
    bob.keyboard.type("and by another")
    bob.keyboard.press("Enter")
    poll(lambda: typed.read_text() == "by hand\nand by another\n", timeout_s=30, what="what Bob typed")
    poll(lambda: lines(ann) == lines(bob) != before, timeout_s=30, what="the same picture for both")
    assert sources(up) == ["broadcast", "server"]


@pytest.mark.timeout(240)
def test_a_guest_watches_until_the_link_is_revoked(up: Up, new_page: Callable[[], Page]) -> None:
    """The issue: share link, revoke, reconnect after the server restarts; the guest never logs in."""
    chat_id = new_chat(up)
    owner, guest = new_page(), new_page()
    open_chat(up, owner, chat_id)
    owner.get_by_test_id("share").click()
    owner.get_by_test_id("share-create").click()
    expect(owner.get_by_test_id("share-url")).to_be_visible()
    url = owner.get_by_test_id("share-url").input_value()

    guest.goto(url)
    wait_live(guest)
    assert guest.get_by_test_id("take-control").count() == 0
    rows = ask_daemon(up, "GET", "/api/v0/viewers")
    assert {row["may"] for row in rows if row["name"] == "a guest"} == {"view"}

    owner.get_by_test_id("share-revoke").click()
    expect(owner.get_by_test_id("share-row")).to_have_count(0)
    expect(guest.get_by_test_id("desktop-note")).to_contain_text("This link has ended")


@pytest.mark.timeout(240)
def test_pages_come_back_after_the_server_restarts(up: Up, new_page: Callable[[], Page]) -> None:
    """The issue: reconnect after the server restarts; control is the agent's again."""
    chat_id = new_chat(up)
    page = new_page()
    open_chat(up, page, chat_id)
    page.get_by_test_id("take-control").click()
    expect(page.get_by_test_id("control-state")).to_contain_text("You have control")
    port = page.url.split("#")[0].rstrip("/").rpartition(":")[2]
    assert wait_gone(up.kill()) == []
    expect(page.get_by_test_id("desktop-canvas")).not_to_have_attribute("data-phase", "live")
    up.start(port=int(port))
    wait_live(page)

    expect(page.get_by_test_id("control-state")).to_contain_text("The agent has control")
