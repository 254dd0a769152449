"""
Pure: which addresses this process may connect to on behalf of others.

Who may write a URL (an administrator an MCP server's, a workspace its own) could otherwise reach what only
this machine reaches: its loopback, its network, the cloud's metadata. A name is judged by the addresses
that it has when it is connected to, so that one which changes them in between gains nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from chatd.addresses import Network
from chatd.errors import Refused

__all__ = ["LOOPBACK_NETWORKS", "Outbound", "OutboundRefused", "parse_outbound"]

LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1/128")
# IPv6 networks in which an IPv4 address is written: what is reached is that.
_NAT64 = ip_network("64:ff9b::/96")


class OutboundRefused(Refused):
    """The policy lets nobody connect there."""

    code = "outbound_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """
    Public addresses, and those that were allowed.

    Attributes:
        names: hosts, ``*.`` for any below, that may have private addresses.
        networks: private ones that may be connected to under any name.
    """

    names: tuple[str, ...] = ()
    networks: tuple[Network, ...] = field(default=())

    def allows(self, host: str, address: str) -> bool:
        """
        Whether *host*, which has *address*, may be connected to.

        What is nobody's in particular (link-local, where clouds keep their metadata, multicast,
        unspecified, reserved) is allowed by its network alone, never by a name.
        """
        try:
            found = _embedded(ip_address(address.partition("%")[0]))
        except ValueError:
            return False
        if any(found in network for network in self.networks):
            return True
        if found.is_global and not found.is_multicast:
            return True
        is_special = found.is_link_local or found.is_multicast or found.is_unspecified or found.is_reserved
        return not is_special and any(fnmatchcase(host.lower().rstrip("."), name) for name in self.names)

    def check(self, host: str, address: str) -> None:
        """
        See that *host*, which has *address*, may be connected to.

        Raises:
            OutboundRefused: it may not; the text says what would allow it.
        """
        if not self.allows(host, address):
            known = host if host == address else f"{host} ({address})"
            raise OutboundRefused(f"{known[:300]} is no public address; see CHATD_OUTBOUND_ALLOW")

    def with_name(self, host: str) -> "Outbound":
        """The same, with *host* allowed by name."""
        return Outbound(names=(*self.names, host.lower().rstrip(".")), networks=self.networks)


def parse_outbound(texts: Sequence[str]) -> Outbound:
    """
    A policy of names, addresses and networks.

    Raises:
        ValueError: a text is none of these.
    """
    names: list[str] = []
    networks: list[Network] = []
    for text in texts:
        wish = text.strip().lower()
        try:
            networks.append(ip_network(wish, strict=False))
        except ValueError:
            bare = wish.removeprefix("*.")
            if not bare or "/" in wish or ":" in wish or not bare.replace("-", "").replace(".", "").isalnum():
                msg = f"{text!r} is neither a host's name nor an address nor a network"
                raise ValueError(msg) from None
            names.append(wish)
    return Outbound(names=tuple(names), networks=tuple(networks))


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
