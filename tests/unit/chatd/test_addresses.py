"""From where a request came: only trusted proxies are believed."""

import pytest

from chatd.addresses import client_address, parse_networks, sender_of

PROXIES = parse_networks(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.5", "", "203.0.113.5"),
        # Anybody can send the header; only a proxy's is believed.
        ("203.0.113.5", "198.51.100.1", "203.0.113.5"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::1", "198.51.100.1", "198.51.100.1"),
        # What the sender wrote itself stands before what the proxy saw.
        ("10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.1", "evil\r\nX: y", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", ",".join(["10.0.0.9"] * 5000), "10.0.0.9"),
        (None, "198.51.100.1", ""),
    ],
)
def test_whom_a_request_came_from(peer: str | None, forwarded: str, address: str) -> None:
    """Ours: the last one named that no proxy of ours is."""
    assert client_address(peer, forwarded, PROXIES) == address


@pytest.mark.parametrize(
    ("address", "sender"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        ("", ""),
        ("x" * 500, "x" * 64),
    ],
)
def test_one_customer_is_one_sender(address: str, sender: str) -> None:
    """Ours: who has a whole IPv6 network does not get a limit for each of its addresses."""
    assert sender_of(address) == sender


def test_what_is_no_network_is_refused() -> None:
    """Ours: at start, not at the first request."""
    with pytest.raises(ValueError, match="nowhere"):
        parse_networks(["nowhere"])
