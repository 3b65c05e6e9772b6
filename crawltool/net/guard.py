"""May this address be asked? (law 10: private addresses are refused at connect time, on every hop)

A judgment of an address string, the one that is connected to: names are never judged, so a name that points inward
gains nothing. An IPv6 address that carries an IPv4 address is judged by both. Called by net/engine.py from libcurl's
open-socket callback, and by stages for addresses they are about to use.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Net = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

METADATA = frozenset(
    ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
_V4: tuple[tuple[str, str], ...] = (
    ("unspecified", "0.0.0.0/8"),  # RFC 1122 section 3.2.1.3; Linux connects 0.0.0.0 to itself
    ("loopback", "127.0.0.0/8"),
    ("private", "10.0.0.0/8"),
    ("private", "172.16.0.0/12"),
    ("private", "192.168.0.0/16"),
    ("cgnat", "100.64.0.0/10"),  # RFC 6598
    ("link_local", "169.254.0.0/16"),
    ("reserved", "192.0.0.0/24"),  # RFC 6890 protocol assignments
    ("reserved", "192.0.2.0/24"),  # documentation
    ("reserved", "198.51.100.0/24"),
    ("reserved", "203.0.113.0/24"),
    ("reserved", "192.88.99.0/24"),  # the old 6to4 relay
    ("reserved", "198.18.0.0/15"),  # benchmarks
    ("multicast", "224.0.0.0/4"),
    ("reserved", "240.0.0.0/4"),  # and the broadcast address
)
_V6: tuple[tuple[str, str], ...] = (
    ("unspecified", "::/128"),
    ("loopback", "::1/128"),
    ("private", "fc00::/7"),
    ("link_local", "fe80::/10"),
    ("private", "fec0::/10"),  # site-local, RFC 3879
    ("multicast", "ff00::/8"),
    ("reserved", "100::/64"),  # discard, RFC 6666
    ("reserved", "2001:db8::/32"),  # documentation
    ("reserved", "3fff::/20"),
    ("reserved", "2001:2::/48"),  # benchmarks
    ("reserved", "5f00::/16"),  # segment routing
)
_RANGES: tuple[tuple[str, Net], ...] = tuple((word, ip_network(text)) for word, text in _V4 + _V6)


@lru_cache(maxsize=65_536)
def judge(address: str, typed: bool, nets: tuple[Net, ...] = ()) -> str | None:
    """Give the reason word why an address may not be asked, or None.

    Words: not_an_address unspecified loopback private cgnat link_local metadata multicast reserved. `typed` (the
    operator typed the host) allows loopback; `nets` are the ranges that --allow-net opens.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return "not_an_address"
    carried = [parsed, *_carried(parsed)]
    if any(one in net for one in carried for net in nets if one.version == net.version):
        return None
    for one in carried:
        word = _word(one)
        if word is not None and not (typed and word == "loopback"):
            return word
    return None


def _word(address: Address) -> str | None:
    if address in METADATA:
        return "metadata"
    return next((word for word, net in _RANGES if address.version == net.version and address in net), None)


def _carried(address: Address) -> list[IPv4Address]:
    """Give the IPv4 addresses inside an IPv6 address: where a translator or tunnel on the way would lead."""
    if isinstance(address, IPv4Address):
        return []
    value = int(address)
    low = IPv4Address(value & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        return [low]
    if value >> 32 == 0 and value > 0xFFFF:
        return [low]  # IPv4-compatible, RFC 4291 section 2.5.5.1
    if value >> 32 in (0x0064FF9B << 64, 0xFFFF0000):
        return [low]  # NAT64 64:ff9b::/96, RFC 6052; IPv4-translated ::ffff:0:0/96, RFC 2765
    if value >> 80 == 0x0064FF9B0001:
        return [low]  # local-use NAT64 64:ff9b:1::/48, RFC 8215; the usual /96 inside it
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if (value >> 32) & 0xFCFFFFFF == 0x00005EFE:
        return [low]  # ISATAP, RFC 5214 section 6.1
    return []
