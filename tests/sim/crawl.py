"""One simulated crawl: the pure frontier, a dict store, simulated fetchers, crashes between any two steps."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field, replace
from math import inf

from crawltool import records
from crawltool.core.frontier import queue, rows
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.ordering import Order
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier, Turn
from crawltool.core.scope import Scope, ScopeRules
from tests.sim import laws
from tests.sim.fetchers import Fetchers
from tests.sim.store import DictStore
from tests.sim.world import World

STEPS_MAX = 60_000
TURNS_AT_ONCE_MAX = 2000  # at one instant
NO_BOUNDS = Bounds(max_depth=None)
CRASHES_MAX = 40  # a crawl that is killed in every run makes no way


@dataclass(frozen=True)
class Plan:
    """What happens in one simulated crawl."""

    policy: Policy
    bounds: Bounds = NO_BOUNDS
    faults: float = 0.0
    late: float = 0.0
    crash_share: float = 0.0
    spool: bool = False  # leases outlive the frontier, fetchers die one by one
    fetchers: int = 1
    room: int = 20
    held: int = 64  # queue entries in memory
    hot: int = 20_000  # hosts held as objects
    order: Order = field(default_factory=Order)
    policies_change: bool = False
    clock_steps: bool = False
    sure: bool = False  # only hosts that are fetched whole

    @classmethod
    def of(cls, seed: int) -> Plan:
        """Draw a plan."""
        rng = random.Random(f"plan {seed}")
        policy = Policy(
            delay_s=rng.choice([0.0, 0.5, 1.0]),
            delay_factor=rng.choice([0, 10]),
            per_host=rng.choice([1, 1, 2, 4]),
            per_ip=rng.choice([None, None, 1, 3]),
            per_domain=rng.choice([None, None, 1, 2]),
            backoff_s=rng.choice([0.1, 2.0]),
            robots_ttl_s=rng.choice([5.0, 60.0, 14_400.0]),
            lease_s=30.0,
        )
        bounds = NO_BOUNDS
        if rng.random() < 0.25:
            bounds = Bounds(
                max_pages=rng.choice([None, 5, 30]), max_pages_host=rng.choice([None, 2, 7]), max_depth=rng.choice([16, 2])
            )
        return cls(
            policy,
            bounds,
            faults=rng.choice([0.0, 0.02, 0.05]),
            late=rng.choice([0.0, 0.02, 0.2]),
            crash_share=rng.choice([0.0, 0.01, 0.05]),
            spool=rng.random() < 0.4,
            fetchers=rng.choice([1, 1, 2, 3]),
            room=rng.choice([1, 3, 20, 20, 100]),
            held=rng.choice([1, 2, 64]),
            hot=rng.choice([0, 1, 3, 20_000]),
            order=Order(rng.choice(["breadth", "breadth", "opic", "inlinks"])),
            policies_change=rng.random() < 0.3,
            clock_steps=rng.random() < 0.3,
        )


class SimCrawl:
    """Drives one seed to its end."""

    def __init__(self, seed: int, plan: Plan, store: DictStore | None = None) -> None:
        self.plan, self.policy = plan, plan.policy
        self.rng = random.Random(f"crawl {seed}")
        self.world = World.make(seed, sure=plan.sure)
        self.now = self.began = 100_000_000.0
        self.fetchers = Fetchers(self.world, self.rng, plan.faults, plan.late, plan.fetchers, began=self.now)
        self.store = store or DictStore()
        self.rules = laws.Rules(plan.policy.robots_ttl_s)
        self.live: set[str] = set()  # leases that were out when this turn began
        self.asked_for: dict[str, str] = {}  # robots lease -> authority
        self.rests = laws.Rests(plan.policy)
        self.asked_at: dict[str, str | None] = {}  # lease -> address
        self.digest = hashlib.sha256()
        self.crashes = self.steps = 0
        self.seeds = [self.world.url(self.world.hosts["h0.test"], 0)]
        self.inbox = [Event(records.Candidate(url=url, source="seed"), b"", channel="inbox") for url in self.seeds]
        self.again: list[Event] = []  # read, not committed, and still in the spool
        self.frontier = self._start(void=True)

    @property
    def clock(self) -> float:
        return self.now + self.fetchers.offset

    def _start(self, *, void: bool) -> Frontier:
        self.fetchers.run += 1
        frontier = Frontier(self.store, self.policy, self.plan.bounds, Scope(ScopeRules("all")), self.plan.order)
        frontier.book.hot_most = self.plan.hot
        self._commit(frontier.start(self.fetchers.run, self.clock, void_leases=void))
        laws.check_store(self.store)
        laws.check_ledger(frontier, self.store)
        laws.check_cash(frontier, self.store)
        return frontier

    def _commit(self, save: list[tuple[Table, bytes, bytes | None]]) -> None:
        self.digest.update(repr(save).encode())
        self.store.commit(save)

    def run(self) -> SimCrawl:
        """Run to the end; the result is this crawl."""
        before, queue.HELD = queue.HELD, self.plan.held
        try:
            self._run()
        finally:
            queue.HELD = before
        return self

    def _run(self) -> None:
        at_once = 0
        for self.steps in range(STEPS_MAX):
            events = self.inbox + self.again + [Event(o, records.encode(o)) for o in self.fetchers.landed(self.now)]
            self.inbox, self.again = [], []
            self.live = set(self.frontier.book.leases)
            complaints = [e.record for e in events if self._is_complaint(e)]
            self.rests.before(self.frontier, complaints)
            turn = self.frontier.turn(events, self.clock, self.plan.room)
            if self._strikes():
                self._crash(turn, events)
                continue
            self._commit(turn.save)
            self._note(events)
            self._send(turn.targets)
            laws.check_step(self.frontier, turn)
            self.rests.after(self.frontier, complaints, self.clock)
            self.rests.check_kept(self.frontier, self.clock)
            if turn.idle and not self.fetchers.todo:
                return
            wakeup = inf if turn.idle else self.now + max(turn.wakeup - self.clock, 0.0)
            if turn.wakeup > self.clock:
                wakeup += 1e-6  # what the conversion between the clocks loses
            then = min(wakeup, self.fetchers.next_at())
            assert then < inf, "law 11: the crawl stands still"
            is_nothing_done = not events and not turn.save and not turn.targets
            assert then > self.now or not is_nothing_done, "a busy loop: called again at once, after nothing was done"
            at_once = at_once + 1 if then <= self.now else 0
            assert at_once < TURNS_AT_ONCE_MAX, "law 11: no end at one instant"
            self.now = max(self.now, then)
            if self.rng.random() < 0.002 and self.plan.faults:
                self.now += self.rng.choice([50.0, 5000.0])  # SIGSTOP of all
        raise AssertionError(f"law 11: the crawl does not end: {self.frontier.book.ledger}")

    def _send(self, targets: list[bytes]) -> None:
        for line in targets:
            target = records.decode(line)
            assert isinstance(target, records.Target)
            laws.check_lease(self.frontier, self.store, target)
            if target.kind == "robots":
                assert target.for_ is not None
                self.asked_for[target.lease] = target.for_
            elif target.kind == "page":
                self.rules.judge(target, self.now)
            if target.kind != "address":
                self.asked_at[target.lease] = target.address
                self.rests.check(target, self.now)
            self.fetchers.send(target, self.now, self.policy)

    def _note(self, events: list[Event]) -> None:
        """What the frontier knows from now on."""
        for event in events:
            outcome = event.record
            if not isinstance(outcome, records.Outcome) or outcome.fetched_at is None:
                continue
            if outcome.kind == "robots" and outcome.lease in self.live:
                began = outcome.fetched_at - self.fetchers.offset
                self.rules.tell(outcome, self.asked_for[outcome.lease], began)
            if outcome.verdict == "busy":
                self.rests.tell(outcome, self.asked_at[outcome.lease] if outcome.lease in self.live else None, self.now)

    def _is_complaint(self, event: Event) -> bool:
        outcome = event.record
        return isinstance(outcome, records.Outcome) and outcome.verdict == "busy" and outcome.lease in self.live

    # --- crashes ---

    def _strikes(self) -> bool:
        return self.crashes < CRASHES_MAX and self.rng.random() < self.plan.crash_share

    def _crash(self, turn: Turn, events: list[Event]) -> None:
        """kill -9 before the commit, after it, or while targets leave; of the group, of the frontier, or of a fetcher."""
        self.crashes += 1
        when = self.rng.choice(["before", "committed", "leaving"])
        if when == "before":
            self.inbox = [e for e in events if e.channel == "inbox"]
            self.again = [e for e in events if e.channel != "inbox"] if self.plan.spool else []
        else:
            self._commit(turn.save)
            self._note(events)
            sent = len(turn.targets) if when == "leaving" else 0
            self._send(turn.targets[: self.rng.randrange(sent + 1)])
        if self.plan.spool:
            if self.rng.random() < 0.5:
                self.fetchers.kill(self.now, self.rng.randrange(self.fetchers.count), outcomes_too=False)
        else:
            self.fetchers.kill(self.now, None, outcomes_too=True)
        self._restart()

    def _restart(self) -> None:
        self.now += self.rng.choice([0.0, 0.01, self.rng.random(), 20.0])
        if self.plan.clock_steps and not self.plan.spool:
            back_s = self.rng.choice([0.0, 10.0, 100_000.0])
            self.fetchers.offset -= back_s
            self.rules.set_back(back_s)
            if back_s:
                self.rests.kept.clear()
        if self.plan.policies_change:
            self.policy = replace(
                self.policy,
                per_host=self.rng.choice([1, 2, 4]),
                per_ip=self.rng.choice([None, 1, 3]),
                per_domain=self.rng.choice([None, 1, 2]),
                delay_s=self.rng.random(),
            )
        self.store.reopen()
        self.frontier = self._start(void=not self.plan.spool)

    # --- the end ---

    def check_end(self) -> None:
        """Nothing is lost, the sums match, and nothing is kept in memory for nothing."""
        laws.check_store(self.store)
        laws.check_ledger(self.frontier, self.store)
        forged = [raw for raw in self.store.rows[Table.HOSTS] if raw.startswith(b"forged")]
        assert not forged, f"law 8: a forged outcome left something: {forged}"
        laws.check_nothing_lost(self.store, self.world, self.seeds)
        self._check_limits()
        if self.plan.bounds == NO_BOUNDS:
            missing = self.world.reachable() - set(self.fetchers.fetched)
            # A URL whose leases ran out six times is given up (law 8), and what only it leads to is not found.
            given_up = "lost" in self.frontier.book.ledger.failed
            assert not missing or given_up, f"not fetched: {sorted(missing)[:5]}, {self.frontier.book.ledger}"
            self._check_memory()

    def _check_limits(self) -> None:
        bounds, ledger = self.plan.bounds, self.frontier.book.ledger
        assert bounds.max_pages is None or ledger.pages <= bounds.max_pages + ledger.late, ledger

    def _check_memory(self) -> None:
        book = self.frontier.book
        for _ in range(2):
            self.now += 200_000.0
            self._commit(self.frontier.turn([], self.clock, 1).save)
        assert not book.hosts and not book.addresses, f"kept for nothing: {list(book.hosts)}, {list(book.addresses)}"
        assert not book.domains, f"kept for nothing: {list(book.domains)}"
        kept = [key for key in self.store.rows[Table.META] if key.startswith(rows.ADDRESS_PREFIX)]
        assert not kept, f"kept for nothing: {kept}"
        assert not book.leases and not book.next_expiry() and not book.waiting_entries
