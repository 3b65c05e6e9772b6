"""Which small crawls are killed, when, and what is killed: all of it follows from a seed and the crawl's number.

Moments are spread over a crawl's whole life: its start, by time; every share of its pages, by what the server has seen; its end,
when the last page has been asked for. Called by tests/crash/campaign.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

STAGES = ("frontier", "fetch", "parse", "dedup")
SITES = {
    "p5": "plain pages=5",
    "p12": "plain pages=12",
    "p30": "plain pages=30",
    "p60": "plain pages=60",
    "dups": "duplicates articles=3",
    "moved": "moved to=p12",
    "slow": "slow wait_s=0.1 pages=8",
    **{f"few{number}": "plain pages=2" for number in range(4)},
    "late": "slow wait_s=0.4 pages=3",
}
QUICK = ("p5", "p12", "p30", "p60", "dups", "moved", "slow")
PATIENT = ("few0", "few1", "few2", "few3", "late")
PATIENT_DELAY_S = 4.0  # longer than a restart takes: a clock that is forgotten shows
START_S = 1.4  # from the command to the first pages
END_S = 0.6  # from the last request to the end of all stages
STAGE_SHARE, SEEDLESS_SHARE = 0.25, 0.3


@dataclass(frozen=True)
class Blow:
    """One kill -9. at: seconds after the command (start), share of the pages (progress), seconds after the last one (end)."""

    moment: Literal["start", "progress", "end"]
    at: float
    then_s: float  # waited once it is so far
    victim: str  # "group" or a stage
    seedless: bool  # the command that is killed names no seeds, if the crawl has begun


@dataclass
class Plan:
    """One crawl."""

    number: int
    kind: Literal["quick", "patient"]
    sites: list[str]
    delay_s: float
    blows: list[Blow] = field(default_factory=list)

    @classmethod
    def make(cls, seed: int, number: int, most: int) -> Plan:
        """Draw a crawl with at most so many kills."""
        rng = random.Random(f"{seed} {number}")
        if rng.random() < 0.6:
            plan = cls(number, "quick", rng.sample(QUICK, rng.randint(2, 4)), rng.choice([0.01, 0.03, 0.1]))
        else:
            plan = cls(number, "patient", rng.sample(PATIENT, rng.randint(3, 5)), PATIENT_DELAY_S)
        shares = sorted(rng.random() for _ in range(rng.randint(4, 10)))
        blows = [_blow(rng, "progress", share) for share in shares]
        for place in range(len(blows)):
            if rng.random() < 0.15:
                blows[place] = _blow(rng, "start", rng.uniform(0, START_S))
        if rng.random() < 0.4:
            blows.insert(0, _blow(rng, "start", rng.uniform(0, START_S)))
        if rng.random() < 0.6:
            blows.append(_blow(rng, "end", rng.uniform(0, END_S)))
        plan.blows = blows if len(blows) <= most else sorted(rng.sample(blows, most), key=blows.index)
        return plan


def _blow(rng: random.Random, moment: Literal["start", "progress", "end"], at: float) -> Blow:
    alone = moment != "start" and rng.random() < STAGE_SHARE
    victim = rng.choice(STAGES) if alone else "group"
    return Blow(moment, at, rng.uniform(0, 0.08), victim, rng.random() < SEEDLESS_SHARE)
