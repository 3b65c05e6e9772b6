"""kill -9 of the whole group at random moments, the same command again: same set, few repeats, sums that match.

Three kills in `make test`; `make crash` sets CRAWLTOOL_CRASH_KILLS=20 or more. The seed is printed and replays the moments:
CRAWLTOOL_CRASH_SEED=n.
"""

from __future__ import annotations

import os
import random
import time
import zlib
from pathlib import Path

import pytest

from tests.e2e.crawls import Crawl, kill_group, pages_asked, stage, wait_for
from tests.e2e.reference import reach
from tests.e2e.test_whole_site import may
from tests.web import Web

KILLS = int(os.environ.get("CRAWLTOOL_CRASH_KILLS", "3"))
SEED = int(os.environ.get("CRAWLTOOL_CRASH_SEED", random.SystemRandom().randrange(10**6)))
ROOM = 16
SITES = {f"s{number}": "plain pages=120" for number in range(3)} | {
    "dups": "duplicates",
    "moved": "moved to=s0",
    "slow": "slow wait_s=0.1 pages=30",
}


def test_killed_crawls_find_the_same_set(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"CRAWLTOOL_CRASH_SEED={SEED}")
    with Web(tmp_path, SITES) as web:
        expected = set(reach([web.url(name) for name in SITES], may))
        web.forget()
        killed = finished = 0
        while killed < KILLS:
            crawl = Crawl(
                tmp_path, *(web.url(name) for name in SITES), "--delay", "0.01", "--delay-factor", "0", "--backoff", "0.1s",
                "--concurrency", "8", "--room", str(ROOM), name=f"crawl{finished}",
            )  # fmt: skip
            here = 0
            web.forget()
            while killed < KILLS and here < 8:
                process = crawl.start()
                time.sleep(rng.uniform(0.1, 2.5))
                if process.poll() is not None:
                    break
                kill_group(process)
                killed += 1
                here += 1
            finished += 1
            crawl.run(timeout_s=120)
            check(crawl, web, expected, here)


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
        check(crawl, web, expected, 1)


def check(crawl: Crawl, web: Web, expected: set[str], kills: int) -> None:
    """Claim what DESIGN promises: no page is lost, few are fetched twice, the archives can be read, the sums match."""
    asked = pages_asked(web.log())
    assert set(asked) == expected, (sorted(expected - set(asked))[:9], sorted(set(asked) - expected)[:9])
    assert sum(asked.values()) - len(asked) <= ROOM * kills, f"{sum(asked.values()) - len(asked)} repeats after {kills} kills"
    assert not [ask for ask in web.log() if ask.site != "dups" and ask.site != "slow" and not may(ask.target)]
    crawl.check_warcs()
    settled = {record["url"] for record in crawl.outcomes() if record["kind"] == "page" and record.get("status")}
    assert settled >= expected, f"not in the log: {sorted(expected - settled)[:9]}"
    check_locators(crawl)
    check_sums(crawl)


def check_locators(crawl: Crawl) -> None:
    """Claim that every locator of the log leads to a whole gzip member."""
    for record in crawl.outcomes():
        for locator in filter(None, (record.get("warc"), record.get("body_warc"))):
            data = (crawl.dir / "warc" / locator["file"]).read_bytes()[locator["offset"] :][: locator["length"]]
            assert record["url"].encode() in zlib.decompress(data, 31)[:4000] or locator is record.get("body_warc"), locator


def check_sums(crawl: Crawl) -> None:
    """Claim that every accepted URL is accounted for (law 6)."""
    status = crawl.status()
    parts = [status[name] for name in ("queued", "leased", "done", "failed", "refused")]
    total = sum(sum(part.values()) if isinstance(part, dict) else part for part in parts)
    assert total == status["accepted"], status
