"""Retry-After, backoff and what may be shown of a vendor's words."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from chatd.faults import delay_s, diagnostic_text, effective_delay_s, parse_retry_after, spread_delay_s
from chatd.faults.detail import structured_detail

NOW = datetime(2026, 9, 1, 12, 0, 0, tzinfo=UTC)
SOON = format_datetime(NOW.replace(second=3), usegmt=True)
PAST = format_datetime(NOW.replace(hour=11), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30.0),
        ({"Retry-After": "30", "ReTrY-AfTeR-Ms": "1500"}, 1.5),
        ({"retry-after": SOON}, 3.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": PAST}, 0.0),
        ({"retry-after": "inf"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "1e9"}, 3_600.0),
        ({}, 0.0),
    ],
)
def test_retry_after_is_read_leniently(headers: dict[str, str], seconds: float) -> None:
    """Milliseconds win over seconds, seconds over dates; nonsense is no hint."""
    assert parse_retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("n", "seconds"),
    [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (10, 60), (100, 60), (-1, 1)],
)
def test_delay_doubles_up_to_a_minute(n: int, seconds: float) -> None:
    """Without hints a broken vendor is asked once a minute."""
    assert delay_s(n) == seconds


@pytest.mark.parametrize(("hint", "seconds"), [(30.0, 30.0), (0.5, 1.0), (0.0, 1.0), (90.0, 90.0)])
def test_a_hint_is_a_floor(hint: float, seconds: float) -> None:
    """It lengthens the wait, past the cap too, and never shortens it."""
    assert effective_delay_s(0, hint) == seconds


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 60.0), (0.5, 66.0), (1.0, 72.0)])
def test_chance_only_lengthens_a_wait(chance: float, seconds: float) -> None:
    """BUGS 25: no burst of chats that failed together; a hint stays a floor."""
    assert spread_delay_s(60.0, chance) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("POST https://user:pass@host.example/v1/x?key=1#f: EOF", "POST https://host.example/v1/x EOF"),
        ('get "http://h/p?token=abc" failed', 'get "http://h/p" failed'),
        ("two\n\tlines", "two lines"),
        ("Incorrect key: sk-proj-abc***xyz.", "Incorrect key: [redacted]"),
        ("Bearer abcdefgh12345 refused", "[redacted] refused"),
        ("key AIzaSyD-1234567890abc", "key [redacted]"),
        ('{"api_key": "abcd1234efgh"}', '{"[redacted]"}'),
        ("the token count: 208310", "the token count: 208310"),
        ("", ""),
    ],
)
def test_shown_text_is_one_line_without_secrets(text: str, shown: str) -> None:
    """Userinfo, query, fragment and keys are cut; host and path help to find the cause."""
    assert diagnostic_text(text) == shown


def test_shown_text_is_capped_at_500_code_points() -> None:
    """The ellipsis counts."""
    assert diagnostic_text("é" * 501) == "é" * 499 + "…"
    assert diagnostic_text("é" * 500) == "é" * 500


class _Sdk(Exception):
    def __init__(self, body: object, message: str = "outer", status: int | None = None) -> None:
        self.body, self.message = body, message
        if status is not None:
            self.status_code = status


@pytest.mark.parametrize(
    ("exc", "detail"),
    [
        (_Sdk({"error": {"message": " inner "}}), "inner"),
        (_Sdk({"message": "flat"}), "flat"),
        (_Sdk({"error": "plain"}), "plain"),
        (_Sdk('{"error": {"message": "raw"}}'), "raw"),
        (_Sdk("<html>", status=502), "outer"),
        (_Sdk(None, status=502), "outer"),
        (_Sdk(None), None),
        (RuntimeError("x"), None),
    ],
)
def test_the_vendors_own_message_is_found(exc: Exception, detail: str | None) -> None:
    """In either SDK's body shape, parsed or raw; connection errors have none."""
    assert structured_detail(exc) == detail
