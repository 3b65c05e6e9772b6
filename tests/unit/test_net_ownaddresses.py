"""net/ownaddresses: the way out of this machine, and names that lead back to it."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest

from crawltool.net import ownaddresses
from crawltool.net.ownaddresses import Confirmed


def test_loopback_has_a_name_that_leads_back_to_it() -> None:
    found = ownaddresses.confirm("127.0.0.1")
    assert found.name is not None and found.holds, found


def test_an_address_without_a_name_or_with_anothers_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_name(address: str) -> object:
        raise socket.herror(1, "unknown host")

    monkeypatch.setattr(socket, "gethostbyaddr", no_name)
    assert ownaddresses.confirm("127.0.0.9") == Confirmed("127.0.0.9", None)
    monkeypatch.setattr(socket, "gethostbyaddr", lambda address: ("localhost", [], [address]))
    found = ownaddresses.confirm("127.0.0.9")
    assert "127.0.0.1" in found.leads_to and not found.holds
    monkeypatch.setattr(socket, "gethostbyaddr", lambda address: ("x" * 70 + ".test", [], [address]))  # no such label can be
    assert ownaddresses.confirm("127.0.0.9").leads_to == ()


def test_the_own_addresses_are_addresses_of_this_machine() -> None:
    for address in ownaddresses.own_addresses():
        with socket.socket(socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6) as mine:
            mine.bind((address, 0))  # raises for an address that is not ours
