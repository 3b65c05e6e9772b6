"""One simulated crawl: the pure frontier, a dict store and a simulated fetcher, with the laws checked after every step."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from math import inf

from crawltool import records
from crawltool.core.admission import Bounds
from crawltool.core.frontier import Event, Frontier
from crawltool.core.politeness import Policy
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore
from tests.sim.world import Fetcher, World

STEPS_MAX = 200_000
EPSILON = 1e-6


@dataclass
class Result:
    """What a simulated crawl did."""

    fetched: dict[str, int]
    frontier: Frontier
    steps: int
    crashes: int
    now: float


class SimCrawl:
    """Drives one seed to its end."""

    def __init__(
        self, seed: int, *, faults: bool = True, crash_share: float = 0.0, policy: Policy | None = None, room: int = 20
    ) -> None:
        self.rng = random.Random(seed * 7919 + 1)
        self.world = World.make(seed)
        self.policy = policy or Policy(
            per_host=self.rng.choice([1, 1, 2]), backoff_s=0.5, lease_s=30.0, delay_factor=self.rng.choice([0, 10])
        )
        self.fetcher = Fetcher(self.world, self.rng, faults=faults)
        self.crash_share = crash_share
        self.room = room
        self.store = DictStore()
        self.now = 1_000_000.0
        self.run_number = 0
        self.crashes = 0
        self.frontier = self._start(void=True)
        self.inbox = [self._seed()]

    def _seed(self) -> records.Candidate:
        return records.Candidate(url=self.world.url(self.world.hosts["h0.test"], 0), source="seed")

    def _start(self, *, void: bool) -> Frontier:
        self.run_number += 1
        frontier = Frontier(self.store, self.policy, Bounds(), Scope(ScopeRules("all")))
        self.store.commit(frontier.start(self.run_number, self.now, void_leases=void))
        return frontier

    def run(self) -> Result:
        for step in range(STEPS_MAX):
            events = [Event(c, b"", operator=True) for c in self.inbox]
            events += [Event(o, records.encode(o)) for o in self.fetcher.landed(self.now)]
            self.inbox = []
            turn = self.frontier.turn(events, self.now, self.room - self.frontier.leases_out)
            if self.rng.random() < self.crash_share:
                self._crash(saved=self.rng.random() < 0.5, turn=turn, events=events)
                continue
            self.store.commit(turn.save)
            for line in turn.targets:
                target = records.decode(line)
                assert isinstance(target, records.Target)
                self.fetcher.send(target, self.now)
            self.check()
            if turn.idle:
                return Result(self.fetcher.fetched, self.frontier, step, self.crashes, self.now)
            self.now = max(self.now + 1e-4, min(turn.wakeup, self.fetcher.air[0][0] if self.fetcher.air else inf))
            assert self.now < inf, "the crawl stands still"
        raise AssertionError("the crawl does not end")

    def _crash(self, *, saved: bool, turn: object, events: list[Event]) -> None:
        """kill -9 of the whole group: what was committed stays, what was in the air is gone; outcomes on the way too."""
        self.crashes += 1
        if saved:
            self.store.commit(turn.save)  # type: ignore[attr-defined]
        else:
            self.inbox = [e.record for e in events if e.operator]  # type: ignore[misc]
        self.fetcher.air.clear()
        self.now += self.rng.random()
        self.frontier = self._start(void=True)

    def check(self) -> None:
        """The laws that hold at every instant."""
        book = self.frontier.book
        book.ledger.check()
        per_host: dict[str, int] = defaultdict(int)
        per_address: dict[str, int] = defaultdict(int)
        for lease in book.leases.values():
            if lease.address is not None:
                per_host[lease.host] += 1
                per_address[lease.address] += 1
        assert all(n <= self.policy.per_host for n in per_host.values()), per_host
        assert all(n <= self.policy.address_slots for n in per_address.values()), per_address
        assert len(book.leases) <= self.room

    def check_politeness(self) -> None:
        """No window of the delay saw more starts than there are slots, by the servers' clocks."""
        for field, slots, delay in (
            (1, self.policy.per_host, self.policy.delay_s),
            (2, self.policy.address_slots, self.policy.address_delay_s),
        ):
            starts: dict[str, list[float]] = defaultdict(list)
            for start in self.fetcher.starts:
                starts[start[field]].append(start[0])
            for name, times in starts.items():
                times.sort()
                for a, b in zip(times, times[slots:], strict=False):
                    assert b - a >= delay - EPSILON, (name, a, b, slots, delay)
