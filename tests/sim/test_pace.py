"""How fast, and in which turn, hosts are asked: the pure frontier against hosts that answer in a given time, without faults."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from math import inf

from crawltool import records
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

BEGAN = 1_000_000.0
Takes = Callable[[str, float], float]  # host, seconds since the start -> how long an answer takes


class Pace:
    """A crawl of hosts with equally many pages; `starts` are its exchanges: seconds since the start, and host."""

    def __init__(self, hosts: int, pages: int, policy: Policy, takes: Takes) -> None:
        self.store, self.takes = DictStore(), takes
        self.frontier = Frontier(self.store, policy, Bounds(), Scope(ScopeRules("all")))
        self.store.commit(self.frontier.start(1, BEGAN, void_leases=True))
        urls = [f"http://h{n}.example.org/{page}" for page in range(pages) for n in range(hosts)]
        self.events = [Event(records.Candidate(url=url), b"") for url in urls]
        self.starts: list[tuple[float, str]] = []
        self.turns = 0

    def run(self, until_s: float = inf) -> Pace:
        """Run to the end, or so long."""
        now, air, events = BEGAN, [], self.events
        while now <= BEGAN + until_s:
            turn = self.frontier.turn(events, now, 1000)
            self.turns += 1
            self.store.commit(turn.save)
            for line in turn.targets:
                outcome = self.answer(records.decode(line), now)
                heapq.heappush(
                    air, ((outcome.fetched_at or now) + (outcome.elapsed_s or 0.0), self.turns, outcome.lease, outcome)
                )
            if turn.idle:
                break
            then = max(min(turn.wakeup, air[0][0] if air else inf), now)
            assert then > now or turn.save, "a busy loop"
            now, events = then, []
            while air and air[0][0] <= now:
                outcome = heapq.heappop(air)[3]
                events.append(Event(outcome, records.encode(outcome)))
        return self

    def answer(self, target: records.Record, now: float) -> records.Outcome:
        """What a host says."""
        assert isinstance(target, records.Target)
        base = {"url": target.url, "lease": target.lease, "kind": target.kind}
        if target.kind == "address":
            number = target.url.split("/")[2].split(".")[0][1:]
            return records.Outcome(
                **base, verdict="ok", addresses=[f"10.0.{int(number) // 250}.{int(number) % 250}"], ttl_s=86_400.0
            )
        name = target.url.split("/")[2]
        self.starts.append((now - BEGAN, name))
        base |= {"fetched_at": now, "elapsed_s": self.takes(name, now - BEGAN)}
        if target.kind == "robots":
            return records.Outcome(**base, verdict="client_error", status=404)
        return records.Outcome(**base, verdict="ok", status=200)


def test_a_host_that_becomes_slow_is_asked_less_within_five_fetches_and_as_often_as_before_within_twenty() -> None:
    def takes(name: str, at: float) -> float:
        return 5.0 if 200.0 <= at < 900.0 else 0.5

    starts = [at for at, _ in Pace(1, 300, Policy(), takes).run(1500.0).starts]

    def rate(first: int, count: int = 3) -> float:
        return count / (starts[first + count] - starts[first])

    usual = rate(10, 20)
    slow = next(n for n, at in enumerate(starts) if at >= 200.0)
    assert rate(slow + 5) <= usual / 5
    well = next(n for n, at in enumerate(starts) if at >= 900.0)
    assert rate(well + 20 - 3) >= 0.9 * usual
    assert rate(well + 1) >= 0.9 * usual, "it has recovered with the first good answer"


def test_a_domain_is_asked_without_gaps_and_its_hosts_in_turn() -> None:
    policy = Policy(delay_s=1.0, delay_factor=0.0, per_domain=2)
    pace = Pace(50, 4, policy, lambda name, at: 0.25).run()
    starts = [at for at, _ in pace.starts]
    assert len(starts) == 50 * 5
    assert starts[-1] <= 1.1 * len(starts) * 1.25 / 2, "two slots, each for 0.25 s and a rest of 1 s"
    assert all(starts[n + 2] - starts[n] >= 1.0 for n in range(len(starts) - 2)), "no window of the delay sees three starts"
    turns = Counter(name for _, name in pace.starts[:100])
    assert max(turns.values()) <= 3, "nobody is asked again and again while others wait"
    assert pace.turns <= 6 * len(starts), "those that wait are left alone"


def test_many_hosts_of_a_busy_domain_cost_no_turns() -> None:
    policy = Policy(delay_s=1.0, delay_factor=0.0, per_domain=1)
    pace = Pace(500, 1, policy, lambda name, at: 300.0).run(3600.0)
    assert 10 <= len(pace.starts) <= 13
    assert pace.turns <= 1.2 * 3600, "about one look for each delay"
    assert len(pace.frontier.book.domains) == 1


def test_clocks_of_domains_are_forgotten() -> None:
    pace = Pace(20, 2, Policy(delay_s=1.0, per_domain=1), lambda name, at: 0.1).run()
    for later_s in (100_000.0, 200_000.0):
        pace.store.commit(pace.frontier.turn([], BEGAN + later_s, 1).save)
    assert not pace.frontier.book.domains and not pace.frontier.book.addresses


def test_resting_hosts_cost_no_turns() -> None:
    """Only hosts that rest are left: nothing happens until the first of them is ready."""
    pace = Pace(100, 2, Policy(backoff_s=50.0), lambda name, at: 0.1)
    usual = pace.answer

    def tired(target: records.Record, now: float) -> records.Outcome:
        outcome = usual(target, now)
        return (
            records.Outcome(
                **{name: getattr(outcome, name) for name in ("url", "lease", "kind", "fetched_at", "elapsed_s")},
                verdict="busy",
                status=429,
                retry_after_s=600.0,
            )
            if outcome.kind != "address"
            else outcome
        )

    pace.answer = tired  # type: ignore[method-assign]
    pace.run(599.0)
    assert pace.turns <= 10
