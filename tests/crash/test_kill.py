"""kill -9 at random moments, the same command again: same set, few repeats, sums that match, no host asked early.

Three kills here; `make crash KILLS=1000` makes more. The seed is printed and replays the moments: CRAWLTOOL_CRASH_SEED=n.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.crash.campaign import ROOM, Campaign
from tests.crash.checks import check
from tests.e2e.crawls import Crawl, stage, wait_for
from tests.e2e.reference import reach
from tests.e2e.test_whole_site import may
from tests.web import Web

KILLS = 3
SEED = int(os.environ.get("CRAWLTOOL_CRASH_SEED", random.SystemRandom().randrange(10**6)))


def test_killed_crawls_find_the_same_set(tmp_path: Path) -> None:
    print(f"CRAWLTOOL_CRASH_SEED={SEED}")
    campaign = Campaign(tmp_path, SEED, KILLS)
    campaign.run(1)
    assert not campaign.failures, campaign.failures[0]
    assert campaign.tally.kills.total() >= KILLS, campaign.tally


@pytest.mark.parametrize("name", ["frontier", "fetch", "parse", "dedup"])
def test_a_stage_that_is_killed_ends_the_crawl_in_order_and_the_next_run_finishes(tmp_path: Path, name: str) -> None:
    sites = {"a": "plain pages=60", "slow": "slow wait_s=0.05 pages=30"}
    with Web(tmp_path, sites) as web:
        expected = set(reach([web.url(site) for site in sites], may))
        web.forget()
        quick = ["--delay", "0.02", "--delay-factor", "0", "--backoff", "0.1s", "--room", str(ROOM)]
        crawl = Crawl(tmp_path, *(web.url(site) for site in sites), *quick)
        process = crawl.start()
        wait_for(lambda: len(web.log()) > 15, what="requests")
        stage(process, name).kill()
        assert process.wait(30) == 75, crawl.said()
        assert name in crawl.said()
        crawl.run(timeout_s=60)
        check(crawl, web.log(), expected, ROOM)
