"""Which addresses may be connected to on behalf of others."""

import pytest

from chatd.outbound import LOOPBACK_NETWORKS, OutboundRefused, parse_outbound

PUBLIC = parse_outbound(())
COMPANY = parse_outbound(["*.corp.example", "mcp.internal", "10.1.0.0/16", "192.168.7.7"])


@pytest.mark.attack
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",  # noqa: S104 -- to be refused
        "10.0.0.1",
        "172.16.5.5",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:db8::1",
        "no address",
        "",
    ],
)
def test_nothing_private_is_reached_unless_it_was_allowed(address: str) -> None:
    """Ours: SSRF: loopback, private networks, metadata, and IPv6 addresses that stand for those."""
    assert not PUBLIC.allows("public.example", address)
    with pytest.raises(OutboundRefused, match="CHATD_OUTBOUND_ALLOW"):
        PUBLIC.check("public.example", address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_need_no_leave(address: str) -> None:
    """Ours: vendors and remote MCP servers work at once."""
    assert PUBLIC.allows("public.example", address)


@pytest.mark.parametrize(
    ("host", "address", "is_allowed"),
    [
        ("a.corp.example", "10.9.9.9", True),
        ("A.Corp.Example.", "10.9.9.9", True),
        ("corp.example", "10.9.9.9", False),
        ("corp.example.evil.com", "10.9.9.9", False),
        ("mcp.internal", "127.0.0.1", True),
        ("x.mcp.internal", "127.0.0.1", False),
        ("anything", "10.1.2.3", True),
        ("anything", "10.2.2.3", False),
        ("anything", "192.168.7.7", True),
        # A name never stands for what is nobody's: who has the name could point it there.
        ("mcp.internal", "169.254.169.254", False),
        ("mcp.internal", "0.0.0.0", False),  # noqa: S104
        ("mcp.internal", "224.0.0.1", False),
    ],
)
def test_what_was_allowed_is_reached(host: str, address: str, *, is_allowed: bool) -> None:
    """Ours: by name or by network."""
    assert COMPANY.allows(host, address) is is_allowed


def test_metadata_is_reached_by_its_network_alone() -> None:
    """Ours: who really wants it says so."""
    assert parse_outbound(["169.254.169.254"]).allows("x", "169.254.169.254")
    assert not parse_outbound(LOOPBACK_NETWORKS).allows("x", "169.254.169.254")


@pytest.mark.parametrize("text", ["", "*", "*.", "http://x", "x:80", "a b", "10.0.0.0/99", "a/b"])
def test_what_is_no_place_is_refused(text: str) -> None:
    """Ours: at start."""
    with pytest.raises(ValueError, match="neither"):
        parse_outbound([text])
