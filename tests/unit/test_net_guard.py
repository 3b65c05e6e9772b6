"""Claims about net/guard.py (SEC-01: private addresses in disguise)."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from crawltool.net.guard import judge

REFUSED = {
    "127.0.0.1": "loopback",
    "127.9.9.9": "loopback",
    "::1": "loopback",
    "::ffff:7f00:1": "loopback",
    "::ffff:127.0.0.1": "loopback",
    "::127.0.0.1": "loopback",
    "::ffff:0:127.0.0.1": "loopback",
    "64:ff9b::7f00:1": "loopback",
    "64:ff9b:1::10.0.0.1": "private",
    "2002:7f00:1::": "loopback",
    "2002:a00:1::1": "private",
    "2001:0:7f00:1::1": "loopback",  # Teredo: the server's address
    "2001:0:808:808::f5ff:fffe": "private",  # Teredo: the client's 10.0.0.1, inverted
    "2001:4860::5efe:10.0.0.1": "private",  # ISATAP
    "2001:4860::200:5efe:192.168.0.1": "private",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "10.1.2.3": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "fc00::1": "private",
    "fd12::1": "private",
    "fec0::1": "private",
    "169.254.1.1": "link_local",
    "fe80::1": "link_local",
    "fe80::1%eth0": "link_local",
    "169.254.169.254": "metadata",
    "::ffff:169.254.169.254": "metadata",
    "64:ff9b::169.254.169.254": "metadata",
    "100.100.100.200": "metadata",
    "fd00:ec2::254": "metadata",
    "100.64.0.0": "cgnat",
    "100.127.255.255": "cgnat",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "192.0.0.1": "reserved",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "2001:db8::1": "reserved",
    "100::1": "reserved",
    "": "not_an_address",
    "localhost": "not_an_address",
    "127.1": "not_an_address",
    "0x7f.0.0.1": "not_an_address",
}
ALLOWED = (
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "2606:4700::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
)


@pytest.mark.parametrize(("address", "word"), REFUSED.items())
def test_an_address_that_is_not_public_is_refused_with_its_word(address: str, word: str) -> None:
    assert judge(address, False) == word


@pytest.mark.parametrize("address", ALLOWED)
def test_a_public_address_may_be_asked(address: str) -> None:
    assert judge(address, False) is None


@pytest.mark.parametrize(("address", "word"), REFUSED.items())
def test_a_typed_host_opens_loopback_only(address: str, word: str) -> None:
    both = {"2001:0:7f00:1::1": "reserved"}  # its other address, the Teredo client, stays refused
    assert judge(address, True) == both.get(address, None if word == "loopback" else word)


def test_an_allowed_net_opens_exactly_itself() -> None:
    nets = (ip_network("10.1.0.0/16"), ip_network("fd12::/32"))
    assert judge("10.1.2.3", False, nets) is None
    assert judge("::ffff:10.1.2.3", False, nets) is None
    assert judge("fd12::5", False, nets) is None
    assert judge("10.2.2.3", False, nets) == "private"
    assert judge("127.0.0.1", False, nets) == "loopback"
