"""core/frontier/status: what people are told, at a cost that does not grow with the hosts."""

from __future__ import annotations

from crawltool import records
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.status import SURVEYED_PER_S, Survey, status
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

NOW = 1_000_000.0


def resting(hosts: int) -> Frontier:
    """A frontier whose hosts, all at addresses of their own, rest for 600 s."""
    store = DictStore()
    frontier = Frontier(store, Policy(), Bounds(), Scope(ScopeRules("all")))
    store.commit(frontier.start(1, NOW, void_leases=True))
    found = [Event(records.Candidate(url=f"http://10.0.{n >> 8}.{n & 255}/"), b"") for n in range(hosts)]
    turn = frontier.turn(found, NOW, hosts)
    store.commit(turn.save)
    events = []
    for line in turn.targets:
        target = records.decode(line)
        assert isinstance(target, records.Target)
        outcome = records.Outcome(
            url=target.url, lease=target.lease, kind=target.kind, verdict="busy", status=429, retry_after_s=600.0,
            fetched_at=NOW, elapsed_s=0.0,
        )  # fmt: skip
        events.append(Event(outcome, records.encode(outcome)))
    store.commit(frontier.turn(events, NOW, hosts).save)
    return frontier


def test_hosts_that_rest_are_counted_and_some_are_named() -> None:
    told = status(resting(30).book, NOW + 100.0, Survey())
    assert told["hosts_waiting"] == 30 and told["hosts_ready"] == 0
    named = told["hosts_resting"]
    assert isinstance(named, dict) and len(named) == 20 and set(named.values()) == {500.0}


def test_an_address_that_rests_is_named() -> None:
    book = resting(1).book
    address = book.address("10.0.0.0")
    for name in ("a.example", "b.example", "c.example"):
        address.complain(name, NOW, 60.0)
    assert status(book, NOW + 20.0, Survey())["addresses_resting"] == {"10.0.0.0": 40.0}


def test_many_hosts_are_not_looked_at_each_second() -> None:
    hosts = 3 * SURVEYED_PER_S
    book, seen = resting(hosts).book, Survey()
    assert status(book, NOW + 1.0, seen)["hosts_waiting"] == hosts
    book.hosts.clear()
    book.hosts.update(resting(5).book.hosts)
    assert status(book, NOW + 3.9, seen)["hosts_waiting"] == hosts
    assert status(book, NOW + 4.0, seen)["hosts_waiting"] == 5


def test_a_clock_that_was_set_back_does_not_stop_the_looking() -> None:
    book, seen = resting(5).book, Survey()
    status(book, NOW + 1000.0, seen)
    assert status(book, NOW + 1.0, seen)["hosts_waiting"] == 5
