"""Whom claims name."""

from typing import Any

import pytest

from chatd.errors import SignInRefused
from chatd.oidc.claims import ClaimNames, lacks, read_person
from chatd.store.identities import Person

NAMES = ClaimNames(name="preferred_username", groups="groups", admin_group="admins")
PLAIN = ClaimNames(name="preferred_username", groups="groups")


def person(claims: dict[str, Any], names: ClaimNames = NAMES) -> Person:
    """Whom they name."""
    return read_person({"sub": "s", "preferred_username": "ann"} | claims, "i", names)


@pytest.mark.parametrize(
    ("groups", "is_admin"),
    [
        (["staff", "admins"], True),
        ("admins", True),
        (["staff"], False),
        (["adminsx"], False),
        ("staff,admins", False),
        ([["admins"]], False),
        ({"admins": True}, False),
        (None, False),
        (7, False),
    ],
)
def test_a_group_is_named_whole(groups: object, *, is_admin: bool) -> None:
    """Ours: in a list or alone; anything else is none."""
    assert person({"groups": groups}).is_admin is is_admin


def test_without_such_a_setting_no_group_counts() -> None:
    """Ours: roles are given here then."""
    assert person({"groups": ["admins"]}, PLAIN).is_admin is None


@pytest.mark.parametrize(
    ("claims", "names", "is_lacking"),
    [
        ({"preferred_username": "ann"}, PLAIN, False),
        ({}, PLAIN, True),
        ({"preferred_username": "ann"}, NAMES, True),
        ({"preferred_username": "ann", "groups": []}, NAMES, False),
    ],
)
def test_what_is_needed_is_asked_for(claims: dict[str, Any], names: ClaimNames, *, is_lacking: bool) -> None:
    """Ours: no request more than that."""
    assert lacks(claims, names) is is_lacking


@pytest.mark.parametrize("name", [None, 7, ["ann"], {}])
def test_a_name_that_is_no_text_is_none(name: object) -> None:
    """Ours: who is known by their subject needs none."""
    assert person({"preferred_username": name}).name is None


@pytest.mark.parametrize("subject", [None, "", 7, "x" * 256, "é", "a\nb", "\ud800"])
def test_a_subject_is_short_and_plain(subject: object) -> None:
    """Core 1.0, 2."""
    with pytest.raises(SignInRefused) as refused:
        person({"sub": subject})

    assert refused.value.reason == "subject"


@pytest.mark.parametrize(
    ("verified", "is_taken"), [(True, True), (False, False), (None, False), ("true", False)]
)
def test_an_address_is_a_name_once_it_was_verified(verified: object, *, is_taken: bool) -> None:
    """Core 1.0, 5.1: else it is what somebody wrote there."""
    names = ClaimNames(name="email", groups="groups")
    claims = {"email": "ann@example.com", "email_verified": verified}
    if is_taken:
        assert person(claims, names).name == "ann@example.com"
        return
    with pytest.raises(SignInRefused):
        person(claims, names)
