"""What was begun is on disk, in bounds, and read whatever a crash left of it."""

import json
import time
from pathlib import Path

import pytest

from agentd.processes import ledger
from agentd.processes.ledger import KNOWN_S, Ledger


def test_an_earlier_life_s_process_is_known_to_its_chat(tmp_path: Path) -> None:
    """Issue: "unknown" after a restart; what this life began is the table's business."""
    first = Ledger(tmp_path / "keeper.jsonl")
    first.record("key", "id", "chat")
    second = Ledger(tmp_path / "keeper.jsonl")

    assert not first.was_earlier("id", "chat")
    assert second.was_earlier("id", "chat")
    assert not second.was_earlier("id", None)
    assert not second.was_earlier("other", "chat")
    assert "key" in second


def test_after_a_week_only_the_key_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: ids are told apart for as long as somebody may ask; no command ever runs twice."""
    Ledger(tmp_path / "keeper.jsonl").record("key", "id", None)
    now = time.time()
    monkeypatch.setattr(ledger.time, "time", lambda: now + KNOWN_S + 1)
    late = Ledger(tmp_path / "keeper.jsonl")

    assert not late.was_earlier("id", None)
    assert "key" in late


def test_lines_of_other_forms_do_no_harm(tmp_path: Path) -> None:
    """Ours: keys alone, as they were once stored; lines torn or foreign."""
    lines = [
        b'"old"',
        b'["new", "id", null, 1e12]',
        b'{"a": 1}',
        b'["short"]',
        b"[1, 2, 3, 4]",
        b'["torn", "i',
    ]
    (tmp_path / "keeper.jsonl").write_bytes(b"\n".join(lines))
    found = Ledger(tmp_path / "keeper.jsonl")

    assert "old" in found
    assert "new" in found
    assert "torn" not in found
    assert found.was_earlier("id", None)
    assert not found.was_earlier("", None)


def test_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the file and what is in memory have a bound; the newest stay."""
    monkeypatch.setattr(ledger, "MAX_KEYS", 3)
    first = Ledger(tmp_path / "keeper.jsonl")
    for number in range(20):
        first.record(f"key {number}", f"id {number}", None)
    second = Ledger(tmp_path / "keeper.jsonl")
    lines = (tmp_path / "keeper.jsonl").read_bytes().splitlines()

    assert [json.loads(line)[0] for line in lines] == ["key 17", "key 18", "key 19"]
    assert second.was_earlier("id 19", None)
    assert not second.was_earlier("id 16", None)
