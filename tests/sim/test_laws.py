"""Simulated crawls: every reachable page is fetched, no host is asked too often, the sums match, the crawl ends.

`make sim SEEDS=1000` runs more; `make sim SEED=7` replays one.
"""

from __future__ import annotations

import os

import pytest

from tests.sim.crawl import SimCrawl

SEED = os.environ.get("SEED")
SEEDS = [int(SEED)] if SEED else list(range(int(os.environ.get("SEEDS", "60"))))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_calm_web_is_fetched_exactly_once(seed: int) -> None:
    crawl = SimCrawl(seed, faults=False)
    result = crawl.run()
    crawl.check_politeness()
    wanted = crawl.world.reachable()
    assert set(result.fetched) == wanted
    assert all(n == 1 for n in result.fetched.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_doubled_and_late_answers_lose_no_page(seed: int) -> None:
    crawl = SimCrawl(seed, faults=True)
    result = crawl.run()
    crawl.check_politeness()
    assert set(result.fetched) >= crawl.world.reachable()
    assert not any("/private/" in url for url in result.fetched)


@pytest.mark.parametrize("seed", SEEDS)
def test_crashes_lose_no_page_and_ask_nobody_early(seed: int) -> None:
    crawl = SimCrawl(seed, faults=False, crash_share=0.02)
    result = crawl.run()
    crawl.check_politeness()
    assert set(result.fetched) >= crawl.world.reachable()
    repeats = sum(n - 1 for n in result.fetched.values())
    assert repeats <= result.crashes * crawl.room
