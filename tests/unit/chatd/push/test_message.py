"""What is pushed, where it may go, what an answer means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.push.message import (
    MAX_PAYLOAD_BYTES,
    SMALL_PAYLOAD_BYTES,
    Notification,
    bears_silence,
    may_push_to,
    react,
    summary,
)
from chatd.settings import PUSH_SERVICES


@given(title=st.text(max_size=400), body=st.text(max_size=600), limit=st.sampled_from([4000, 2900, 1300]))
def test_a_payload_fits_and_can_be_read(title: str, body: str, limit: int) -> None:
    """RFC 8030: 4,096 bytes in all; the title comes first, the body gives way."""
    payload = Notification(title=title, body=body, path="#/chats/x", tag="t").payload(limit)

    assert len(payload) <= limit
    shown = json.loads(payload)
    assert shown["path"] == "#/chats/x"
    assert shown["title"].startswith(title.encode("utf-8", "replace").decode()[:199])


def test_a_clear_says_what_it_takes_back_and_nothing_to_show() -> None:
    """The page's service worker tells the two apart by their type."""
    clear = Notification(tag="t", is_clear=True, at_ms=5)
    shown = Notification(title="T", body="B", tag="t", at_ms=4)

    assert json.loads(clear.payload()) == {"type": "clear", "tag": "t", "at": 5}
    assert json.loads(shown.payload()) == {
        "type": "show", "tag": "t", "at": 4, "title": "T", "body": "B", "path": ""
    }  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "bears"),
    [("https://web.push.apple.com/x", False), ("https://fcm.googleapis.com/fcm/send/x", True)],
)
def test_some_browsers_want_something_shown_for_each_push(endpoint: str, bears: bool) -> None:
    """WebKit revokes a subscription after three pushes that showed nothing."""
    assert bears_silence(endpoint) is bears


def test_the_limits_leave_room_for_the_encryption() -> None:
    """Header 86 bytes, a delimiter, a tag of 16."""
    assert MAX_PAYLOAD_BYTES + 86 + 17 <= 4096
    assert SMALL_PAYLOAD_BYTES < 3000


@pytest.mark.parametrize(
    ("statuses", "reaction"),
    [
        ((200, 201, 202), "done"),
        ((404, 410), "forget"),
        ((413,), "shrink"),
        ((429, 500, 502, 503, 599), "retry"),
        ((301, 307, 400, 401, 403), "fail"),
    ],
)
def test_answers(statuses: tuple[int, ...], reaction: str) -> None:
    """BUGS 71: 404 and 410 are gone, 413 is too large, 429 waits, a redirect is not followed."""
    assert {react(status) for status in statuses} == {reaction}


@pytest.mark.parametrize(
    ("endpoint", "may"),
    [
        ("https://fcm.googleapis.com/fcm/send/x", True),
        ("https://updates.push.services.mozilla.com/wpush/v2/x", True),
        ("https://web.push.apple.com/x", True),
        ("https://wns2-par02p.notify.windows.com/w/?token=x", True),
        ("https://fcm.googleapis.com:443/x", True),
        ("http://127.0.0.1:9/x", True),
        ("http://127.0.0.1:90/x", False),
        ("http://fcm.googleapis.com/x", False),
        ("https://fcm.googleapis.com:8443/x", False),
        ("https://fcm.googleapis.com.evil.example/x", False),
        ("https://evil.example/fcm.googleapis.com", False),
        ("https://user@fcm.googleapis.com/x", False),
        ("https://fcm.googleapis.com@evil.example/x", False),
        ("https://169.254.169.254/latest", False),
        ("https://[::1/x", False),
        ("https://fcm.googleapis.com/\r\nx", False),
        ("", False),
    ],
)
def test_only_push_services_are_asked(endpoint: str, may: bool) -> None:
    """A browser names the endpoint, so it could name the metadata service of a cloud."""
    assert may_push_to(endpoint, (*PUSH_SERVICES, "http://127.0.0.1:9")) is may


@pytest.mark.parametrize(
    ("text", "line"),
    [("Done.\n\nAll  of it.", "Done. All of it."), ("", "The agent is done."), ("x" * 400, "x" * 299 + "…")],
)
def test_an_answer_becomes_a_line(text: str, line: str) -> None:
    """What people read on a lock screen."""
    assert summary(text) == line
