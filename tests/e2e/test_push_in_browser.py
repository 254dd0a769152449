"""Notifications in a real Chromium: its service worker shows what is pushed; a failure is told."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Up, poll

SHOWN = """async () => {
  const registration = await navigator.serviceWorker.ready;
  const shown = await registration.getNotifications();
  return shown.map(({ title, body, tag, data }) => ({ title, body, tag, path: data.path }));
}"""


@pytest.fixture
def expected_noise() -> tuple[str, ...]:
    """Chromium's own word for why it does not subscribe here."""
    return ("does not support the Push API in incognito mode",)


@pytest.mark.timeout(180)
def test_a_push_is_shown_and_taken_back_by_the_service_worker(up: Up, page: Page) -> None:
    """
    The issue: a service worker in Chromium shows notifications, and takes back what a clear is about.

    Steps: the bell asks the browser, which has no push service here and says so; the worker is there all the
    same, and is handed pushes as the browser would hand them. What is shown of a chat goes when its person
    writes there, without any push.
    """
    context = page.context
    page.goto(up.info["url"])
    origin = "/".join(page.url.split("/")[:3])
    context.grant_permissions(["notifications"], origin=origin)
    page.reload()
    registrations: list[dict[str, Any]] = []
    devtools = context.new_cdp_session(page)
    devtools.on(
        "ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"])
    )
    devtools.send("ServiceWorker.enable")
    bell = page.get_by_test_id("notify")
    expect(bell).to_have_attribute("data-state", "off")
    bell.click()
    expect(bell).to_be_enabled()
    expect(bell).to_have_attribute("data-state", "off")
    expect(bell).to_have_attribute("title", re.compile("^This browser could not subscribe: "))

    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    registration = registrations[-1]["registrationId"]

    def deliver(**push: Any) -> None:
        wanted = {"origin": origin, "registrationId": registration, "data": json.dumps(push)}
        devtools.send("ServiceWorker.deliverPushMessage", wanted)

    def shown() -> list[dict[str, str]]:
        found: list[dict[str, str]] = page.evaluate(SHOWN)
        return found

    done = {"title": "A chat", "body": "It is done.", "path": "#/chats/1", "tag": "t"}
    asked = {"title": "A chat", "body": "Question: ?", "path": "#/chats/1", "tag": "q"}
    deliver(type="show", at=5, **done)
    deliver(type="show", at=6, **asked)
    poll(lambda: len(shown()) == 2, timeout_s=30, what="both notifications")
    assert sorted(shown(), key=lambda one: one["tag"], reverse=True) == [done, asked]

    deliver(type="clear", tag="t", at=4)
    deliver(type="clear", tag="q", at=7)
    poll(lambda: len(shown()) < 2, timeout_s=30, what="the question to be taken back")
    assert shown() == [done]

    page.get_by_test_id("composer").fill("say hello")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("message-assistant").last).to_contain_text("hello")
    here = "#" + page.url.split("#")[1]
    deliver(type="show", at=8, title="This chat", body="It is done.", path=here, tag="h")
    poll(lambda: len(shown()) == 2, timeout_s=30, what="the notification of this chat")
    page.get_by_test_id("composer").fill("say bye")
    page.get_by_test_id("send").click()
    poll(lambda: shown() == [done], timeout_s=30, what="it to be taken back")
