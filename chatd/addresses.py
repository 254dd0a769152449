"""
Pure: from where a request came, and what counts as one sender.

Behind a reverse proxy the peer is the proxy; whom it names is believed only if the peer is trusted.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = ["Network", "client_address", "parse_networks", "sender_of"]

Network = IPv4Network | IPv6Network
# Bits of an IPv6 address that one customer usually has to himself.
IPV6_SITE_BITS = 64
# Addresses in one X-Forwarded-For that are looked at.
MAX_HOPS = 20


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """
    Networks and single addresses.

    Raises:
        ValueError: one is none.
    """
    return tuple(ip_network(text.strip(), strict=False) for text in texts)


def client_address(peer: str | None, forwarded: str, trusted: Sequence[Network]) -> str:
    """
    The address of who asks: of those named, the last that no trusted proxy has.

    Args:
        peer: of the connection; None where there is none, as on a Unix socket.
        forwarded: ``X-Forwarded-For``: each proxy adds whom it saw at the end.
        trusted: networks of our own proxies.
    """
    named = [part.strip() for part in forwarded.split(",")[-MAX_HOPS:]] if forwarded else []
    address = peer or ""
    while named and _is_in(address, trusted):
        found = _parse(named.pop())
        if found is None:
            break
        address = str(found)
    return address


def sender_of(address: str) -> str:
    """What limits count by: an IPv4 address, or the network of an IPv6 one."""
    parsed = _parse(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, IPV6_SITE_BITS), strict=False))
    return str(parsed) if parsed is not None else address[:64]


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    parsed = _parse(address)
    return parsed is not None and any(parsed in network for network in networks)


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed
