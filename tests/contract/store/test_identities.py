"""Who users are at a provider, as rows, on both databases."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from chatd.errors import NotFound, SignInRefused
from chatd.scopes import Role
from chatd.store import accounts, identities, users
from chatd.store.identities import Person, SignedIn, SignIn
from tests.contract.store.bench import START, Bench

ISSUER = "https://id.example"


async def come(bench: Bench, name: str, subject: str = "", **wish: Any) -> SignedIn:
    """A login."""
    is_admin, issuer = wish.pop("is_admin", None), wish.pop("issuer", ISSUER)
    person = Person(issuer=issuer, subject=subject or f"sub-{name}", name=name, is_admin=is_admin)
    wanted = SignIn(**({"login_id": uuid4()} | wish))
    return await bench.store.write(identities.sign_in, person, wanted, now=START)


async def reason(bench: Bench, name: str, subject: str = "", **wish: Any) -> str:
    """Why it is refused."""
    with pytest.raises(SignInRefused) as refused:
        await come(bench, name, subject, **wish)
    return refused.value.reason


async def role(bench: Bench, name: str) -> str:
    """A user's role."""
    return str((await bench.store.read(users.find_user, name))["role"])


async def test_a_login_is_a_session_once(bench: Bench) -> None:
    """Ours: its id is the login's, so a second with the same is refused on every replica."""
    await bench.store.write(users.create_user, "ann", Role.MEMBER, now=START)
    login_id = uuid4()
    done = await come(bench, "ann", login_id=login_id)
    who = await bench.store.read(accounts.authenticate, done.login.token, frozenset({"session"}), now=START)

    assert (who.user_name, who.token_id, done.is_tied) == ("ann", login_id, True)
    assert await reason(bench, "ann", login_id=login_id) == "used"
    assert (await come(bench, "other name", "sub-ann")).login.user_name == "ann"


async def test_of_logins_at_once_each_counts_once(bench: Bench) -> None:
    """Ours: the same one five times, at a first login and later."""
    await bench.store.write(users.create_user, "ann", Role.MEMBER, now=START)
    for _ in range(2):
        login_id = uuid4()
        tries = (come(bench, "ann", login_id=login_id) for _ in range(5))
        found = await asyncio.gather(*tries, return_exceptions=True)
        done = [one for one in found if isinstance(one, SignedIn)]
        refused = [one for one in found if isinstance(one, SignInRefused)]

        assert (len(done), len(refused)) == (1, 4), found


async def test_first_logins_of_a_new_user_at_once_make_one(bench: Bench) -> None:
    """Ours: the others are told to try once more, and then come in."""
    tries = (come(bench, "zoe", creates_users=True) for _ in range(5))
    found = await asyncio.gather(*tries, return_exceptions=True)
    done = [one for one in found if isinstance(one, SignedIn)]
    again = await come(bench, "zoe", creates_users=True)

    assert all(isinstance(one, SignedIn | SignInRefused) for one in found), found
    assert sum(one.is_made for one in done) == 1
    assert (again.is_made, again.is_tied) == (False, False)


async def test_the_group_takes_only_what_it_gave(bench: Bench) -> None:
    """Ours: a role that was given here stays."""
    await bench.store.write(users.ensure_operator, "root", now=START)
    await bench.store.write(users.create_user, "ann", Role.MEMBER, now=START)
    found = []
    for is_admin in (False, True, True, False, None):
        await come(bench, "ann", is_admin=is_admin)
        found.append(await role(bench, "ann"))
    await bench.store.write(users.set_role, "ann", Role.ADMIN)
    await come(bench, "ann", is_admin=False)

    assert found == ["member", "admin", "admin", "member", "member"]
    assert await role(bench, "ann") == "admin"


async def test_the_group_leaves_the_last_administrator(bench: Bench) -> None:
    """Ours: somebody always administers; once there is another, the next login takes the role."""
    await come(bench, "ann", is_admin=True, creates_users=True)
    kept = await come(bench, "ann", is_admin=False)
    await bench.store.write(users.ensure_operator, "root", now=START)
    taken = await come(bench, "ann", is_admin=False)

    assert (kept.new_role, taken.new_role) == (None, Role.MEMBER)
    assert await role(bench, "ann") == "member"


async def test_each_provider_has_subjects_of_its_own(bench: Bench) -> None:
    """Ours: the same subject of another issuer is somebody else."""
    await come(bench, "ann", "7", creates_users=True)

    assert await reason(bench, "ann", "7", issuer="https://other.example") == "unproven"
    assert (await come(bench, "ben", "7", issuer="https://other.example", creates_users=True)).is_made


async def test_what_is_forgotten_is_tied_anew(bench: Bench) -> None:
    """Ours: in a browser that is logged in as that user."""
    first = await come(bench, "ann", creates_users=True)
    forgotten = await bench.store.write(identities.untie, "ann")
    own = first.login.user_id

    assert forgotten == 1
    assert await reason(bench, "ann", "new") == "unproven"
    assert (await come(bench, "ann", "new", own_user_id=own)).is_tied
    assert await reason(bench, "ann", own_user_id=own) == "taken"
    with pytest.raises(NotFound):
        await bench.store.write(identities.untie, "nobody")


async def test_nothing_is_left_of_a_refused_login(bench: Bench) -> None:
    """Ours: a disabled user is not tied either."""
    await bench.store.write(users.create_user, "ann", Role.MEMBER, now=START)
    await bench.store.write(users.disable_user, "ann", now=START)
    refused = await reason(bench, "ann")
    await bench.store.write(users.enable_user, "ann")

    assert refused == "disabled"
    assert (await come(bench, "ann", "another")).is_tied


async def test_a_name_that_administers_by_the_settings_is_not_made(bench: Bench) -> None:
    """Ours: unless the provider says that they administer."""
    wish: dict[str, Any] = {"admins": ["root"], "creates_users": True}

    assert await reason(bench, "root", **wish) == "administrator"
    assert (await come(bench, "root", is_admin=True, **wish)).new_role is Role.ADMIN
