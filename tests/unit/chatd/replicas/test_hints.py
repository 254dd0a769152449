"""What is said between replicas, and its bound."""

import json
import uuid
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from chatd.replicas.hints import KINDS, MAX_PAYLOAD_BYTES, Hint, pack_hints, read_hints
from chatd.replicas.registry import Watchlist
from chatd.store.replicas import Replica

ME = UUID(int=9)
hints = st.builds(
    Hint,
    id=st.uuids(),
    owner_id=st.none() | st.uuids(),
    is_runnable=st.booleans(),
    kinds=st.frozensets(st.sampled_from(sorted(KINDS))),
)


@given(st.lists(hints, max_size=300))
def test_what_is_packed_is_read(said: list[Hint]) -> None:
    """BUGS 64: no payload reaches PostgreSQL's limit; nothing is lost or doubled on the way."""
    payloads = list(pack_hints(ME, said))
    heard = [read_hints(payload) for payload in payloads]

    assert all(len(payload.encode()) <= MAX_PAYLOAD_BYTES for payload in payloads)
    assert {sender for sender, _ in heard} == {ME}
    assert [hint for _, some in heard for hint in some or ()] == said


def test_five_thousand_chats_fit() -> None:
    """BUGS 64: 5,000 chats changed at once."""
    said = [Hint(id=uuid.uuid4(), owner_id=uuid.uuid4()) for _ in range(5_000)]

    assert max(len(payload) for payload in pack_hints(ME, said)) <= MAX_PAYLOAD_BYTES < 8_000


@given(st.text() | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))
def test_what_makes_no_sense_means_look_at_everything(payload: str) -> None:
    """Ours: a newer version may say what we don't know."""
    assert read_hints(payload) == (None, None)


def test_a_bare_look_is_heard() -> None:
    """Ours: said when too many hints wait."""
    assert read_hints(json.dumps({"from": str(ME), "hints": None})) == (ME, None)


def test_silence_is_measured_by_beats_not_by_times() -> None:
    """Ours: each look either sees the count move or adds to the silence; one that is gone starts anew."""
    watch = Watchlist(10)
    one = Replica(id=UUID(int=1), address="a", beats=1)
    moved = Replica(id=UUID(int=1), address="a", beats=2)

    assert watch.look([one], at=0) == []
    assert watch.look([one], at=9.9) == []
    assert watch.look([moved], at=10) == []
    assert watch.look([moved], at=19.9) == []
    assert watch.look([moved], at=20) == [moved]
    assert watch.look([], at=21) == []
    assert watch.look([moved], at=40) == []
