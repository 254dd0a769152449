"""A login under way, as the browser carries it."""

from datetime import UTC, datetime, timedelta

import pytest

from chatd.errors import SignInRefused
from chatd.oidc.pending import LIFETIME, begin_login, open_login, seal_login
from chatd.sealing import Sealer, new_key

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ISSUER = "https://id.example"
SEALER = Sealer([new_key()])


def reason(sealed: str, state: str, *, issuer: str = ISSUER, after: timedelta = timedelta()) -> str:
    """Why it is refused."""
    with pytest.raises(SignInRefused) as refused:
        open_login(sealed, state, issuer, SEALER, now=NOW + after)
    return refused.value.reason


def test_another_replica_goes_on_with_it() -> None:
    """Ours: with the same keys; also while they are replaced."""
    old, new = new_key(), new_key()
    pending = begin_login(ISSUER, now=NOW)
    sealed = seal_login(pending, Sealer([old]))

    assert open_login(sealed, pending.state, ISSUER, Sealer([new, old]), now=NOW) == pending


def test_nothing_of_it_can_be_read() -> None:
    """Ours: nor guessed from another."""
    one, two = begin_login(ISSUER, now=NOW), begin_login(ISSUER, now=NOW)
    told = {one.state, one.nonce, one.verifier, two.state, two.nonce, two.verifier}

    assert len(told) == 6
    assert all(43 <= len(text) <= 128 for text in told)
    assert one.login_id != two.login_id
    assert not [text for text in told if text in seal_login(one, SEALER)]


def test_each_thing_that_is_wrong_is_found() -> None:
    """Ours: foreign state, foreign issuer, too late, other keys."""
    pending = begin_login(ISSUER, now=NOW)
    sealed = seal_login(pending, SEALER)

    assert reason(sealed, "x") == "state"
    assert reason(sealed, pending.state, issuer="https://other.example") == "late"
    assert reason(sealed, pending.state, after=LIFETIME) == "late"
    assert reason(seal_login(pending, Sealer([new_key()])), pending.state) == "cookie"
    assert reason("", pending.state) == "cookie"
    assert reason("é", pending.state) == "cookie"
    assert reason("x" * 2001, pending.state) == "cookie"
    assert reason(SEALER.seal('{"purpose": "other"}').decode(), pending.state) == "cookie"
