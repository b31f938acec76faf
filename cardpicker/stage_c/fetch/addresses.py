"""Which IP addresses are of the public internet, however they are wrapped, and the bounded look-up of a host's."""

from __future__ import annotations

import ipaddress
import socket

from cardpicker.bounded import call_within

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolved = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, and so is every IPv4 address that is wrapped in it."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        wrapped = _wrapped(parsed)
        if parsed in _NAT64_LOCAL or parsed.is_site_local:
            return False
        if wrapped is not None:
            return _is_global(wrapped)
    return _is_global(parsed)


def resolve(host: str, port: int, seconds: float) -> list[Resolved]:
    """Return the addresses of ``host``; the resolver's own patience does not count.

    Raises:
        TimeoutError: there was no answer within ``seconds``.
        OSError: the name is unknown.
    """
    found = call_within(seconds, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return [entry for entry in found if isinstance(entry[4][0], str)]  # type: ignore[misc]


def _is_global(address: Address) -> bool:
    return address.is_global and not address.is_multicast


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that a gateway would take out of ``address``."""
    if address.sixtofour is not None:
        return address.sixtofour
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or address in _TRANSLATED or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
