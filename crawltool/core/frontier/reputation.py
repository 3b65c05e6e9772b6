"""How much of a host's time was worth it, how fast can it answer, and how many pages an hour does it get?

Called by core/frontier/turn per page outcome (`Conduct` is saved with the host's row) and by why, dump and status (`budget`).
Reputation is soft: it makes a host's share smaller and refuses nothing. What counts as a soft 404 or as a trap is decided by
others and told here. All rates are pages per hour.
"""

from __future__ import annotations

from math import pow as power

import msgspec

PRIOR_PAGES = 10  # good pages every host is credited with: a few bad ones do not condemn it
ERROR_WEIGHT = 0.5  # an error costs the host little; a copy, a soft 404 or a trap page costs a whole page
STEEPNESS = 1.5  # 90 % bad pages leave 0.1 ** 1.5, a thirtieth; half leave a third
REPUTATION_MIN = 0.001  # never 0: a host that mended its ways can show it
MEMORY_PAGES = 8192  # then all counts are halved: what was long ago weighs less
SMOOTHING = 16  # an exchange weighs 1/16 of latency, rest and share of errors
TIME_MS_MAX = 86_400_000
PRIORITY_MAX = 6.0  # demand counts priorities between -6 and 6
HOUR_S = 3600.0
ELAPSED_S_MIN = 0.001


class Conduct(msgspec.Struct, array_like=True):
    """What a host did, as saved with its row: 10 bytes when new, 19 as a rule."""

    pages: int = 0  # outcomes counted, errors included
    duplicates: int = 0
    soft404s: int = 0
    traps: int = 0
    errors: int = 0
    elapsed_ms: int = 0  # of an exchange, smoothed
    rest_ms: int = 0  # after an exchange, smoothed: politeness and back-off
    failing: int = 0  # share of exchanges without a usable answer, smoothed, in 1/1000
    listed: int = 0  # URLs of the host that a sitemap named and that were settled …
    listed_gone: int = 0  # … and those of them that were not there

    def page(self, *, duplicate: bool = False, soft404: bool = False, trap: bool = False, error: bool = False) -> None:
        """Count one page outcome. A page that is several of these counts once, as the worst: error, trap, soft 404, copy."""
        if self.pages >= MEMORY_PAGES:
            self._halve()
        self.pages += 1
        if error:
            self.errors += 1
        elif trap:
            self.traps += 1
        elif soft404:
            self.soft404s += 1
        elif duplicate:
            self.duplicates += 1

    def sitemap_listed(self, *, gone: bool) -> None:
        """Count one URL that a sitemap had named."""
        if self.listed >= MEMORY_PAGES:
            self.listed //= 2
            self.listed_gone //= 2
        self.listed += 1
        self.listed_gone += gone

    def exchange(self, elapsed_s: float, rest_s: float, failed: bool) -> None:
        """Count one exchange of any kind: how long it took, the rest that followed, whether no usable answer came."""
        is_first = not (self.elapsed_ms or self.rest_ms or self.failing)
        self.elapsed_ms = _smooth(self.elapsed_ms, _ms(elapsed_s), is_first)
        self.rest_ms = _smooth(self.rest_ms, _ms(rest_s), is_first)
        self.failing = _smooth(self.failing, 1000 if failed else 0, is_first=False)

    def _halve(self) -> None:
        self.pages //= 2
        self.duplicates //= 2
        self.soft404s //= 2
        self.traps //= 2
        self.errors //= 2


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a host gets, and why; printed by why and dump."""

    pages_h: float
    capacity_h: float
    demand_h: float
    bound: str  # capacity | demand: which of the two is less
    reputation: float
    overridden: bool
    queued: int
    elapsed_s: float
    rest_s: float
    failing: float  # share of the latest exchanges

    def __str__(self) -> str:
        named = "set by the operator" if self.overridden else "computed"
        return (
            f"{self.pages_h:,.1f} pages/h (bound by {self.bound}): can answer {self.capacity_h:,.1f}/h at {self.elapsed_s:.3f} s "
            f"+ {self.rest_s:.3f} s rest, {self.failing:.0%} failing; is wanted {self.demand_h:,.1f}/h with {self.queued:,} "
            f"queued, reputation {self.reputation:.3f} ({named})"
        )


def reputation(conduct: Conduct) -> float:
    """Give the factor for a host's demand, between REPUTATION_MIN and 1.

    good = 1 - (duplicates + soft404s + traps + errors / 2) / (pages + 10); reputation = good ** 1.5.
    """
    bad = conduct.duplicates + conduct.soft404s + conduct.traps + ERROR_WEIGHT * conduct.errors
    good = 1.0 - min(bad / (max(conduct.pages, 0) + PRIOR_PAGES), 1.0)
    return max(power(good, STEEPNESS), REPUTATION_MIN)


def capacity(conduct: Conduct, slots: int) -> float:
    """Tell how many pages per hour a host can answer well, asked by `slots` at a time with the rests it had so far.

    slots x 3600 / (elapsed + rest) x (1 - failing) ** 2: failures count twice, they also cost the host.
    """
    turn_s = max(conduct.elapsed_ms + conduct.rest_ms, 1) / 1000
    return max(slots, 0) * HOUR_S / turn_s * (1.0 - min(max(conduct.failing, 0), 1000) / 1000) ** 2


def demand(queued: int, priority: float, factor: float, fair_h: float) -> float:
    """Tell how many pages per hour the crawl wants of a host.

    fair_h is what a host of good name at priority 0 would get: `--per-host` x 3600 / `--delay`, or the capacity where
    there is no delay. min(queued, fair_h) x 2 ** priority x factor: nobody wants more than there is.
    """
    weight = power(2.0, min(max(priority, -PRIORITY_MAX), PRIORITY_MAX))
    return min(min(queued, fair_h) * weight * factor, float(queued))


def budget(
    conduct: Conduct, *, override: float | None = None, queued: int, priority: float = 0.0, slots: int = 1, delay_s: float = 0.0
) -> Budget:
    """Give a host's crawl budget: the lesser of capacity and demand, with the facts behind it.

    override: the operator's number, which goes before the formula of reputation.
    """
    factor = reputation(conduct) if override is None else override
    able = capacity(conduct, slots)
    wanted = demand(queued, priority, factor, slots * HOUR_S / delay_s if delay_s > 0 else able)
    return Budget(
        pages_h=min(able, wanted),
        capacity_h=able,
        demand_h=wanted,
        bound="capacity" if able <= wanted else "demand",
        reputation=factor,
        overridden=override is not None,
        queued=queued,
        elapsed_s=conduct.elapsed_ms / 1000,
        rest_s=conduct.rest_ms / 1000,
        failing=conduct.failing / 1000,
    )


def _ms(seconds: float) -> int:
    """Whole milliseconds of a time that anybody may have claimed."""
    return int(min(max(seconds, 0.0), TIME_MS_MAX / 1000) * 1000) if seconds == seconds else 0


def _smooth(before: int, now: int, is_first: bool) -> int:
    """Move 1/SMOOTHING of the way; away from zero, so that a constant is reached."""
    step = now - before
    if is_first:
        return now
    return before + (-(-step // SMOOTHING) if step > 0 else step // SMOOTHING)
