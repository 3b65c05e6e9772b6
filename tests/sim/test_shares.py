"""Who gets how much of what leaves: shares of priority classes, and one huge host among a thousand small ones."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict

from crawltool import records
from crawltool.core.frontier import rows
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.frontier.turnstile import WEIGHTS
from crawltool.core.scope import Scope, ScopeRules
from crawltool.stores.crawldb import CrawlDb
from tests.sim.store import DictStore

POINTS = (20.0, 2.0, 0.0, -2.0)  # of each class


class Steady:
    """A crawl in which every answer takes as long, and brings no links."""

    def __init__(self, room: int, elapsed_s: float, policy: Policy, store: DictStore | CrawlDb | None = None) -> None:
        self.store, self.room, self.elapsed_s = store or DictStore(), room, elapsed_s
        self.frontier = Frontier(self.store, policy, Bounds(), Scope(ScopeRules("all")))
        self.now = 1e6
        self.store.commit(self.frontier.start(1, self.now, void_leases=True))
        self.air: list[tuple[float, int, records.Outcome]] = []
        self.sent: list[tuple[float, records.Target]] = []  # pages
        self.serial = 0
        self.landed: list[Event] = []

    def offer(self, urls: list[tuple[str, float]]) -> None:
        """Offer (URL, priority), and take nothing out yet."""
        events = [Event(records.Candidate(url=url, priority=points), b"") for url, points in urls]
        self.store.commit(self.frontier.turn(events, self.now, 0).save)

    def run(self, pages: int) -> None:
        """Run until so many pages left, or nothing is left."""
        while len(self.sent) < pages:
            turn = self.frontier.turn(self.landed, self.now, self.room)
            self.store.commit(turn.save)
            for line in turn.targets:
                self._ask(line)
            if turn.idle:
                return
            self.now = min(self.air[0][0] if self.air else turn.wakeup, max(turn.wakeup, self.now + 1e-3))
            self.landed = []
            while self.air and self.air[0][0] <= self.now:
                outcome = heapq.heappop(self.air)[2]
                self.landed.append(Event(outcome, records.encode(outcome)))

    def _ask(self, line: bytes) -> None:
        target = records.decode(line)
        assert isinstance(target, records.Target)
        host = target.url.split("/")[2]
        at, took_s = self.now, 0.0 if target.kind == "address" else self.elapsed_s
        outcome = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="ok")
        if target.kind == "address":
            outcome.addresses, outcome.ttl_s = [f"10.{int(host[1:-5]) // 250}.{int(host[1:-5]) % 250}.1"], 1e9
        else:
            outcome.status, outcome.fetched_at, outcome.elapsed_s = 200, at, took_s
        if target.kind == "page":
            self.sent.append((at, target))
        self.serial += 1
        heapq.heappush(self.air, (at + took_s, self.serial, outcome))


def test_no_class_starves_and_none_takes_all() -> None:
    crawl, hosts, each = Steady(10, 1.0, Policy(delay_s=1.0, delay_factor=0)), 1000, 3
    crawl.offer([(f"http://h{host}.test/", 0.0) for host in range(hosts)])
    crawl.run(hosts)  # all have addresses and rules now
    place_of = {f"/c{place}": place for place in range(rows.CLASSES)}
    urls = [
        (f"http://h{host}.test/c{place}/{n}", POINTS[place]) for n in range(each) for host in range(hosts) for place in range(4)
    ]
    began, warm = crawl.now, len(crawl.sent)
    crawl.offer(urls)
    crawl.run(warm + len(urls))
    sent = [(at - began, place_of["/" + target.url.split("/")[3]]) for at, target in crawl.sent[warm:]]
    assert len(sent) == len(urls)
    for first in range(0, 3000, 1000):  # as long as each class has something ready
        counts = Counter(place for _, place in sent[first : first + 1000])
        assert counts[rows.URGENT] >= 700
        assert counts[rows.LOW] >= 20
    waits = defaultdict(float)
    for waited_s, place in sent:
        waits[place] = max(waits[place], waited_s)
    for place, weight in enumerate(WEIGHTS):
        fair_s = hosts * each / (10 * weight / sum(WEIGHTS))
        assert waits[place] <= 3 * fair_s, (place, waits[place], fair_s)


def ends_beside(huge: int, store: DictStore | CrawlDb) -> tuple[dict[str, float], float]:
    """Serve 1,000 hosts of 8 URLs beside one host of `huge`: when each small one ended, and pages a second until the last did."""
    crawl = Steady(200, 0.2, Policy(delay_s=1.0, delay_factor=0), store)
    for first in range(0, huge, 1000):
        crawl.offer([(f"http://h0.test/{n}", 0.0) for n in range(first, min(huge, first + 1000))])
    crawl.offer([(f"http://h{host}.test/{n}", 0.0) for host in range(1, 1001) for n in range(8)])
    began, ends = crawl.now, dict[str, float]()
    counts: Counter[str] = Counter()
    while len(ends) < 1000:
        before = len(crawl.sent)
        crawl.run(before + 50)
        for at, target in crawl.sent[before:]:
            host = target.url.split("/")[2]
            counts[host] += 1
            if host != "h0.test" and counts[host] == 8:
                ends[host] = at - began
    last_s = max(ends.values())
    return ends, sum(at - began <= last_s for at, _ in crawl.sent) / last_s


def test_a_huge_host_takes_nothing_from_a_thousand_small_ones() -> None:
    """`python -m tests.bench.fairness` does the same with a million URLs in the real store."""
    without, alone = ends_beside(0, DictStore())
    beside, crowded = ends_beside(30_000, DictStore())
    assert crowded >= 0.95 * alone
    late = {host: (beside[host], without[host]) for host in without if beside[host] > 1.05 * without[host]}
    assert not late, (len(late), list(late.items())[:5])
