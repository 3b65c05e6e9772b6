"""A simulated web and fetcher: seeded hosts, pages, robots, faults and latencies. No clock, no socket.

The web is a pure function of its seed. The fetcher loses, delays, doubles and gives back targets as real ones do.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from crawltool import records


@dataclass
class SimHost:
    """One host: its pages link to each other; some are disallowed, broken or elsewhere."""

    name: str
    ip: str
    pages: int
    mood: str = "well"  # well | busy_first | down | robots_503 | robots_moved | no_name | flaky
    crawl_delay_s: float | None = None
    latency_s: float = 0.1


@dataclass
class World:
    """The whole web of one seed."""

    seed: int
    hosts: dict[str, SimHost] = field(default_factory=dict)

    @classmethod
    def make(cls, seed: int, moods: bool = True) -> World:
        rng = random.Random(seed)
        world = cls(seed)
        count = rng.choice([1, 2, 5, 12])
        for n in range(count):
            name = f"h{n}.test"
            mood = (
                rng.choice(["well"] * 5 + ["busy_first", "down", "robots_503", "robots_moved", "no_name", "flaky"])
                if moods and n
                else "well"
            )
            ip = f"10.0.0.{rng.randrange(max(count // 2, 1))}"
            delay = rng.choice([None, None, None, 3.0])
            world.hosts[name] = SimHost(name, ip, rng.choice([1, 3, 10, 40]), mood, delay, rng.choice([0.01, 0.1, 2.0]))
        return world

    def url(self, host: SimHost, page: int) -> str:
        return f"http://{host.name}/{'private/' if page % 7 == 5 else ''}p{page}"

    def links(self, host: SimHost, page: int) -> list[str]:
        rng = random.Random(f"{self.seed} {host.name} {page}")
        found = [self.url(host, (page * 2 + k) % host.pages) for k in (1, 2)] + [self.url(host, (page + 1) % host.pages)]
        other = self.hosts[rng.choice(sorted(self.hosts))]
        return [*found, self.url(other, rng.randrange(other.pages))]

    def reachable(self) -> set[str]:
        """Every page that a crawl must fetch."""
        first = self.hosts["h0.test"]
        seen, todo = {self.url(first, 0)}, [(first, 0)]
        while todo:
            host, page = todo.pop()
            if host.mood in ("down", "robots_503", "no_name") or "/private/" in self.url(host, page):
                continue
            for link in self.links(host, page):
                name, _, path = link[7:].partition("/")
                if link not in seen:
                    seen.add(link)
                    todo.append((self.hosts[name], int(path.rsplit("p", 1)[1])))
        gone = ("down", "robots_503", "no_name")
        return {u for u in seen if "/private/" not in u and self.hosts[u[7:].partition("/")[0]].mood not in gone}


class Fetcher:
    """Runs targets: each becomes an outcome at a later time, or none at all."""

    def __init__(self, world: World, rng: random.Random, *, faults: bool) -> None:
        self.world = world
        self.rng = rng
        self.faults = faults
        self.air: list[tuple[float, int, records.Outcome]] = []
        self.serial = 0
        self.tries: dict[str, int] = {}
        self.starts: list[tuple[float, str, str, str]] = []  # time, host, ip, url: what servers saw
        self.ends: dict[str, float] = {}
        self.fetched: dict[str, int] = {}

    def send(self, target: records.Target, now: float) -> None:
        if self.faults and self.rng.random() < 0.02:
            return  # lost with its fetcher
        if target.kind != "address" and self.faults and self.rng.random() < 0.02:
            self._land(now + 0.05, records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="returned"))
            return
        outcome, latency_s = self._answer(target, now)
        end = now + latency_s
        if outcome.fetched_at is not None:
            self.starts.append((now, self._host(target.url).name, target.address or "", target.url))
        slow = self.rng.random() * 30 if self.faults and self.rng.random() < 0.02 else 0.0
        self._land(end + slow, outcome)
        if self.faults and self.rng.random() < 0.02:
            self._land(end + slow + 1.0, outcome)  # reported twice

    def _land(self, at: float, outcome: records.Outcome) -> None:
        self.serial += 1
        heapq.heappush(self.air, (at, self.serial, outcome))

    def landed(self, now: float) -> list[records.Outcome]:
        out = []
        while self.air and self.air[0][0] <= now:
            out.append(heapq.heappop(self.air)[2])
        return out

    def _host(self, url: str) -> SimHost:
        return self.world.hosts[url.split("/")[2]]

    def _answer(self, target: records.Target, now: float) -> tuple[records.Outcome, float]:
        host = self._host(target.url)
        base = {"url": target.url, "lease": target.lease, "kind": target.kind}
        if target.kind == "address":
            if host.mood == "no_name":
                return records.Outcome(**base, verdict="dns_failure", reason="no_such_name"), 0.1
            return records.Outcome(**base, verdict="ok", addresses=[host.ip], ttl_s=60.0), 0.02
        assert target.address == host.ip, (target, host)
        took = host.latency_s
        base |= {"fetched_at": now, "elapsed_s": took}
        self.tries[target.url] = self.tries.get(target.url, 0) + 1
        if host.mood == "down":
            return records.Outcome(**base, verdict="unreachable"), took
        if target.kind == "robots":
            return self._robots(target, host, base), took
        if host.mood == "busy_first" and self.tries[target.url] == 1 and target.url.endswith("3"):
            return records.Outcome(**base, verdict="busy", status=429, retry_after_s=2.0), took
        if host.mood == "flaky" and self.tries[target.url] < 3 and target.url.endswith("2"):
            return records.Outcome(**base, verdict="server_error", status=500), took
        self.fetched[target.url] = self.fetched.get(target.url, 0) + 1
        page = int(target.url.rsplit("p", 1)[1])
        links = [records.Link(url=link) for link in self.world.links(host, page)]
        return records.Outcome(**base, verdict="ok", status=200, body_bytes=100, links=links), took

    def _robots(self, target: records.Target, host: SimHost, base: dict[str, object]) -> records.Outcome:
        if host.mood == "robots_503":
            return records.Outcome(**base, verdict="busy", status=503)
        if host.mood == "robots_moved" and target.hops == 0:
            return records.Outcome(**base, verdict="redirect", status=301, redirect="http://h0.test/robots.txt")
        rules = records.Robots(
            rules=[("disallow", "/private/", 2)], crawl_delay_s=host.crawl_delay_s if target.hops == 0 else None
        )
        return records.Outcome(**base, verdict="ok", status=200, robots=rules)
