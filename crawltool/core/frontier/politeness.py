"""How long a host rests: the rules of politeness, computed from facts in outcomes (law 5).

Called by core/frontier/settling when an exchange has ended and by core/frontier/release when a target leaves. No number of
fetchers can change what a host sees: a slot is taken when a target leaves and comes back with its next time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf

from crawltool import limits

TURN_S_MIN = 0.05  # between the turns of a domain's hosts, where --delay is shorter


@dataclass(frozen=True)
class Policy:
    """The operator's settings that decide when a host may be asked. Seconds and counts."""

    delay_s: float = 1.0  # end of one exchange to start of the next
    delay_factor: float = 10.0
    adaptive_max_s: float = 600.0
    ip_delay_s: float | None = None  # None: a fifth of delay_s
    per_host: int = 1
    per_ip: int | None = None  # None: 2, or per_host if larger
    per_domain: int | None = None  # of a registrable domain; None: no clock of its own
    backoff_s: float = 60.0  # first step of the failure ladder
    retries: int = 3
    robots_ttl_s: float = 4 * 3600.0
    lease_s: float = limits.LEASE_S

    @property
    def address_delay_s(self) -> float:
        """Give the delay of an address clock."""
        return self.delay_s / 5 if self.ip_delay_s is None else self.ip_delay_s

    @property
    def address_slots(self) -> int:
        """Give how many leases one address may have."""
        return max(2, self.per_host) if self.per_ip is None else self.per_ip


@dataclass
class Slots:
    """The clocks of one host or address: a heap with the next time of each free slot, and how many slots are taken.

    Each slot has its own clock, so any window of `delay` sees at most as many starts as there are slots.
    """

    count: int
    free: list[float] = field(default_factory=list)
    taken: int = 0
    floor: float = 0.0  # the latest time of the slots that there are no more

    @classmethod
    def all_free(cls, count: int, at: float = 0.0) -> Slots:
        """Give `count` slots that may be used from `at` on."""
        return cls(count, [at] * count)

    def ready_at(self) -> float:
        """Tell when the earliest free slot may be used; infinity when all are taken."""
        return self.free[0] if self.free else inf

    def take(self) -> float:
        """Take the earliest slot; the result is its time, to be given back if nothing is asked."""
        self.taken += 1
        return heapq.heappop(self.free)

    def hold(self) -> None:
        """Take a slot for a lease of an earlier run; where slots became fewer there may be none left."""
        self.taken += 1
        if len(self.free) + self.taken > self.count and self.free:
            self.floor = max(self.floor, heapq.heappop(self.free))

    def give(self, next_at: float) -> None:
        """Give a slot back with its next time. Where slots became fewer, the latest times stay."""
        self.taken -= 1
        if len(self.free) + self.taken < self.count:
            heapq.heappush(self.free, max(next_at, self.floor))
        else:
            self.floor = max(self.floor, heapq.heappushpop(self.free, next_at))

    def latest(self) -> float:
        """Tell when all free slots may be used."""
        return max(self.free, default=0.0)


class Domain:
    """The clock of a registrable domain (--per-domain), and its hosts that found it busy, in the order they came.

    The first of them is called when a slot comes back. Each also has a time at which it looks again by itself, one delay
    behind the one before it: a host that is called and has nothing to ask must not leave the others waiting.
    """

    __slots__ = ("name", "slots", "waiting")

    def __init__(self, name: str, count: int, at: float) -> None:
        self.name = name
        self.slots = Slots.all_free(count, at)
        self.waiting: dict[str, None] = {}

    def turn(self, host: str, now: float, delay_s: float) -> float:
        """Let a host wait; the result is when it may look again, should nobody call it."""
        step_s = max(delay_s, TURN_S_MIN)
        ready_at = self.slots.ready_at()
        free_at = max(ready_at, now) if ready_at < inf else now + step_s
        self.waiting.setdefault(host)  # who looks again keeps its place
        return free_at + (len(self.waiting) - 1) // self.slots.count * step_s

    def is_idle(self, now: float) -> bool:
        """Tell whether it may be forgotten: a new one would be the same."""
        return not self.slots.taken and not self.waiting and self.slots.latest() <= now


def rest(policy: Policy, elapsed_s: float, crawl_delay_s: float | None) -> float:
    """Tell how long a slot rests after an exchange that took `elapsed_s`."""
    adaptive_s = min(policy.delay_factor * max(elapsed_s, 0.0), policy.adaptive_max_s)
    return max(policy.delay_s, adaptive_s, crawl_delay_s or 0.0)


def exchange_end(fetched_at: float | None, elapsed_s: float | None, released_at: float, now: float) -> float:
    """Tell when an exchange ended: what fetch says if it lies between release and now, else now (a forged or
    confused clock must not free a host early)."""
    if fetched_at is None:
        return now
    end = fetched_at + (elapsed_s or 0.0)
    return end if released_at <= end <= now else now


def backoff(policy: Policy, step: int, spread: float) -> float:
    """Tell the rest of the failure ladder: the base, doubling to a day, with up to 10 % more by `spread` (0…1)."""
    doubled = policy.backoff_s * 2.0 ** min(max(step - 1, 0), 40)
    return min(doubled, float(limits.BACKOFF_S_MAX)) * (1.0 + 0.1 * spread)


def failure_rest(policy: Policy, retry_after_s: float | None, step: int, spread: float) -> float:
    """Tell the rest after a failure of the whole host: Retry-After capped at a day, else the ladder."""
    if retry_after_s is None:
        return backoff(policy, step, spread)
    return min(max(retry_after_s, 0.0), float(limits.RETRY_AFTER_S_MAX))


def returned_wait(times: int) -> float:
    """Tell how long a target that came back unasked is not offered again: 1 s after the first time, doubling."""
    return min(2.0 ** (times - 1), float(limits.RETURNED_WAIT_S_MAX))


def robots_expiry(policy: Policy, fetched_at: float, max_age_s: float | None) -> float:
    """Tell until when a robots.txt answer may be used.

    HTTP freshness counts between 30 minutes and --robots-ttl; a shorter ttl wins over both. fetched_at is the start
    of the exchange. Source: RFC 9309 section 2.4.
    """
    ttl_s = min(policy.robots_ttl_s, float(limits.ROBOTS_TTL_S_MAX))
    floor_s = min(float(limits.ROBOTS_TTL_S_MIN), ttl_s)
    return fetched_at + min(max(ttl_s if max_age_s is None else max_age_s, floor_s), ttl_s)
