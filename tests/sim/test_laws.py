"""Simulated crawls: every reachable page is fetched, no host is asked too often, the sums match, the crawl ends.

`make sim SEEDS=1000` runs more; `make sim SEED=7` replays one.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from crawltool.core.frontier.politeness import Policy
from tests.sim.crawl import Plan, SimCrawl

SEED = os.environ.get("SEED")
SEEDS = [int(SEED)] if SEED else list(range(int(os.environ.get("SEEDS", "300"))))
FEW = SEEDS[:20]
CALM = Plan(Policy(backoff_s=0.5, lease_s=30.0), sure=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_laws_hold_whatever_happens(seed: int) -> None:
    SimCrawl(seed, Plan.of(seed)).run().check_end()


@pytest.mark.parametrize("seed", FEW)
def test_a_calm_web_is_fetched_exactly_once(seed: int) -> None:
    crawl = SimCrawl(seed, CALM).run()
    crawl.check_end()
    assert set(crawl.fetchers.fetched) >= crawl.world.reachable()
    assert set(crawl.fetchers.fetched.values()) == {1}


@pytest.mark.parametrize("seed", FEW)
def test_a_crash_repeats_no_more_than_was_out(seed: int) -> None:
    plan = Plan(CALM.policy, crash_share=0.05, sure=True)
    crawl = SimCrawl(seed, plan).run()
    crawl.check_end()
    assert sum(n - 1 for n in crawl.fetchers.fetched.values()) <= crawl.crashes * plan.room


def test_a_seed_gives_the_same_bytes_in_every_process() -> None:
    script = (
        "from tests.sim.crawl import Plan, SimCrawl\nprint([SimCrawl(s, Plan.of(s)).run().digest.hexdigest() for s in range(6)])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": number},
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(told) == 1, told
