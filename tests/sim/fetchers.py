"""Simulated fetchers: they pick targets up some time after they left, lose, return, double and delay them, and die.

What the servers see is written down exchange by exchange; law 5 is checked when each of them begins.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import msgspec

from crawltool import records
from crawltool.core.frontier.politeness import Policy
from tests.sim.world import World

EPSILON = 1e-6
TOTAL_S = 10.0  # the fetchers' total timeout
Landed = tuple[records.Outcome, int]


@dataclass(slots=True)
class Exchange:
    """What a server saw."""

    host: str
    ip: str
    url: str
    start: float
    end: float
    fetcher: int


def domain_of(name: str) -> str:
    """A host's registrable domain."""
    return name if name[0] == "1" else ".".join(name.split(".")[-2:])


@dataclass
class Fetchers:
    """All fetchers of a crawl. Times are real seconds; `offset` is what their clock and the frontier's is ahead."""

    world: World
    rng: random.Random
    faults: float
    late: float = 0.0  # share of outcomes that are told up to a minute late
    count: int = 1
    began: float = 0.0
    offset: float = 0.0
    run: int = 0  # of the frontier that holds the directory
    todo: list[tuple[float, int, int, object]] = field(default_factory=list)  # when, serial, fetcher, target or outcome
    exchanges: dict[str, list[Exchange]] = field(default_factory=dict)  # by host name and by address
    tries: dict[str, int] = field(default_factory=dict)
    fetched: dict[str, int] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)  # by lease
    serial: int = 0
    forgeries: int = 0

    def later(self, at: float, fetcher: int, what: object) -> None:
        self.serial += 1
        heapq.heappush(self.todo, (at, self.serial, fetcher, what))

    def next_at(self) -> float:
        return self.todo[0][0] if self.todo else float("inf")

    def send(self, target: records.Target, now: float, policy: Policy) -> None:
        """A target left the frontier."""
        self.policies[target.lease] = policy
        lag_s = self.rng.choice([0.0, 0.001, 0.2, 3.0]) if self.faults else 0.0
        if self._fault():
            lag_s = 40 * self.rng.random()
        self.later(now + lag_s, self.rng.randrange(self.count), target)

    def landed(self, now: float) -> list[records.Outcome]:
        """Let time pass; give the outcomes that the frontier can read now."""
        out = []
        while self.todo and self.todo[0][0] <= now:
            at, _, fetcher, what = heapq.heappop(self.todo)
            if isinstance(what, records.Target):
                self._pick_up(what, at, fetcher)
            else:
                assert isinstance(what, records.Outcome)
                out.append(what)
        return out

    def kill(self, now: float, fetcher: int | None, *, outcomes_too: bool) -> None:
        """kill -9 of one fetcher or of all: what they hold is gone; outcomes on the way too where pipes carried them."""
        held = [item for item in self.todo if fetcher in (None, item[2])]
        # An outcome lies with its fetcher until the exchange ends; after that it is in a spool, which survives.
        gone = [item for item in held if outcomes_too or isinstance(item[3], records.Target) or item[0] > now]
        self.todo = [item for item in self.todo if item not in gone]
        heapq.heapify(self.todo)
        for seen in self.exchanges.values():
            for exchange in seen:
                if fetcher in (None, exchange.fetcher):
                    exchange.end = min(exchange.end, max(now, exchange.start))

    def _fault(self) -> bool:
        return self.rng.random() < self.faults

    def _pick_up(self, target: records.Target, now: float, fetcher: int) -> None:
        base = {"url": target.url, "lease": target.lease, "kind": target.kind}
        late = now + self.offset > target.expires_at - TOTAL_S
        if int(target.lease.partition("-")[0]) != self.run or late or self._fault():
            self.later(now + 0.05, fetcher, records.Outcome(**base, verdict="returned", reason="not started"))
            return
        if target.kind == "address":
            self._report(now + 0.02, fetcher, records.Outcome(**base, **self._look_up(target, now)))
            return
        self._exchange(target, now, fetcher, base)

    def _look_up(self, target: records.Target, now: float) -> dict[str, object]:
        host = self.world.hosts.get(target.url.split("/")[2])
        if host is None or host.mood == "no_name":
            return {"verdict": "dns_failure", "reason": "no_such_name"}
        if self._fault():
            return {"verdict": "dns_failure", "reason": "temporary"}
        return {"verdict": "ok", "addresses": self.world.addresses(host, now - self.began), "ttl_s": 60.0}

    def _exchange(self, target: records.Target, now: float, fetcher: int, base: dict[str, object]) -> None:
        name = target.url.split("/")[2]
        host = self.world.hosts.get(name)
        took_s = self.world.latency(host, now - self.began) if host is not None else 0.1
        self.tries[target.url] = self.tries.get(target.url, 0) + 1
        facts = self.world.answer(target, now - self.began, self.tries[target.url])
        if facts["verdict"] == "timeout":
            took_s = TOTAL_S
        assert target.address is not None and (host is None or target.address in host.ips), target
        self._see(Exchange(name, target.address, target.url, now, now + took_s, fetcher), self.policies[target.lease])
        if facts.get("status") in (200, 301) and target.kind == "page":
            self.fetched[target.url] = self.fetched.get(target.url, 0) + 1
        base |= {"fetched_at": now + self.offset, "elapsed_s": took_s, "depth": target.depth, "hops": target.hops}
        if self._fault():  # cut off at the end of a grace time
            facts = {"verdict": "returned", "reason": "cut off"}
        self._report(now + took_s, fetcher, records.Outcome(**(base | facts)))

    def _see(self, exchange: Exchange, policy: Policy) -> None:
        """Law 5: from the start of an exchange to its end and the delay after it, a slot is taken."""
        for name, slots, delay_s in (
            (exchange.host, policy.per_host, policy.delay_s),
            ("ip " + exchange.ip, policy.address_slots, policy.address_delay_s),
            ("domain " + domain_of(exchange.host), policy.per_domain or 10**9, policy.delay_s),
        ):
            seen = self.exchanges.setdefault(name, [])
            taken = [e for e in seen if e.end + delay_s > exchange.start + EPSILON]
            assert len(taken) < slots, f"law 5: {name} is asked too often: {[*taken, exchange]}"
            self.exchanges[name] = [e for e in seen if e.end + 100.0 > exchange.start] + [exchange]

    def _report(self, end: float, fetcher: int, outcome: records.Outcome) -> None:
        if self._fault():
            return  # lost on the way
        late_s = 60 * self.rng.random() if self.rng.random() < self.late else 0.0
        self.later(end + late_s, fetcher, outcome)
        if self._fault():
            self.later(end + late_s + 70 * self.rng.random(), fetcher, outcome)  # told twice
        if self._fault():
            self.later(end + 0.01, fetcher, self._forged(outcome))

    def _forged(self, outcome: records.Outcome) -> records.Outcome:
        """Make an outcome that nobody earned: of a URL that was never leased, with this lease, and with claims of all kinds."""
        self.forgeries += 1
        return msgspec.structs.replace(
            outcome,
            url=f"http://forged.test/{self.forgeries}",
            kind="page",
            verdict="ok",
            status=200,
            fetched_at=self.rng.choice([None, 0.0, 1e12, outcome.fetched_at]),
            elapsed_s=self.rng.choice([-1e9, 0.0, 1e9]),
            retry_after_s=1e12,
            depth=-(2**40),
            links=[records.Link(url=f"http://forged.test/found/{self.forgeries}", priority=1e308)],
        )
