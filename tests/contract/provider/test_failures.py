"""Every failure that we know of, provoked: what the SDK raises, and what a person and the loop make of it."""

import json

from chatd.provider.factory import ProviderName
from chatd.wire import FaultKind
from tests.contract.provider.provoking import RECORD, outcomes_of


async def test_every_failure_is_what_was_recorded(provider_name: ProviderName) -> None:
    """
    Spec 4: types, texts, kinds.

    After a new version of an SDK: read what changed, mend the patterns, and record it again by
    ``python -m tests.contract.provider.provoking``.
    """
    assert await outcomes_of(provider_name) == json.loads(RECORD.read_text())[provider_name]


def test_the_record_holds_no_secret_and_nothing_unknown() -> None:
    """Spec 4.7: what is told crosses a trust boundary; auth never falls back to the raw text."""
    record = json.loads(RECORD.read_text())
    rows = [row for rows in record.values() for row in rows.values()]

    assert {row["kind"] for row in rows} <= set(FaultKind)
    assert not [row for row in rows if "key-for-tests" in json.dumps(row)]
    assert not [row for row in rows if "abcd1234" in row["detail"] + row["message"]]
    assert not [row for row in rows if row["kind"] == "auth" and "Error code" in row["detail"]]
    assert not [row for row in rows if len(row["detail"]) > 500]


def test_what_may_heal_is_tried_again_and_nothing_else_is() -> None:
    """Spec 4.3: the same failure means the same whoever the vendor is."""
    record = json.loads(RECORD.read_text())
    again = {name for rows in record.values() for name, row in rows.items() if row["retryable"]}
    never = {name for rows in record.values() for name, row in rows.items() if not row["retryable"]}

    assert again & never == set()
    assert {"bad key", "no credit", "no model", "too long", "no tls", "no address"} <= never
    untrusted = {name for name in never if "certificate" in name}
    assert len(untrusted) == 5
    assert {rows[name]["kind"] for rows in record.values() for name in untrusted} == {"config"}
    assert "trusted certificate, then a gateway page" in again
    assert {"nobody listens", "silent", "half an event", "no json", "no utf-8", "login page"} <= again
