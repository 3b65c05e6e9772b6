"""From which addresses do this machine's requests come, and do their names lead back to them?

Forward-confirmed reverse DNS is how a site tells a crawler from one that only uses its name: the PTR name of an address must
have that address. Called by cli/fetchidentity; nobody is contacted but the system's resolver.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import NamedTuple

# Documentation addresses (RFC 5737, RFC 3849): connecting a UDP socket sends nothing, it only lets the kernel choose a route.
_FAR = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
NAME_CHARS_MAX = 253  # RFC 1035 section 2.3.4


class Confirmed(NamedTuple):
    """An address, its PTR name (None: it has none) and what that name leads to."""

    address: str
    name: str | None
    leads_to: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Tell whether the name leads back to the address."""
        return self.address in self.leads_to


def own_addresses() -> list[str]:
    """Give the addresses, at most one of each family, that requests to the world leave from."""
    found = []
    for family, far in _FAR:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((far, 9))
                found.append(str(ip_address(probe.getsockname()[0].partition("%")[0])))
        except OSError:
            continue  # no route of this family
    return found


def confirm(address: str) -> Confirmed:
    """Look an address up and its name back. Blocks as long as the system's resolver does."""
    address = str(ip_address(address))
    try:
        name = socket.gethostbyaddr(address)[0][:NAME_CHARS_MAX]
    except OSError:
        return Confirmed(address, None)
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # a PTR record may hold anything
        return Confirmed(address, name)
    return Confirmed(address, name, tuple(dict.fromkeys(str(ip_address(str(one[4][0]).partition("%")[0])) for one in answers)))
