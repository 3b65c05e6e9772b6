"""No host and no address is asked too often, by the server's own clock, whatever dies in between (law 5)."""

from __future__ import annotations

import os
import signal
import time
from itertools import groupby
from pathlib import Path

from tests.e2e.crawls import CONTACT, Crawl, kill_group, stage, starts, wait_for
from tests.web import Ask, Web

HALF = ["--delay", "0.5", "--delay-factor", "1"]
HOSTS = {"a": "plain pages=14", "b": "slow wait_s=0.3 pages=8", "c": "moved to=a", "d": "redirects chain=4"}


def by(asks: list[Ask], field: str) -> list[list[Ask]]:
    """Group requests by a field."""

    def key(ask: Ask) -> str:
        return str(getattr(ask, field))

    return [list(group) for _, group in groupby(sorted(asks, key=key), key)]


def check(web: Web, delay_s: float = 0.5, ip_delay_s: float = 0.1, ip_slots: int = 2) -> None:
    """Claim that no window sees more starts than there are slots: of a host name, of an address."""
    assert [place for asks in by(web.log(), "host") for place in starts(asks, 1, delay_s)] == []
    assert [place for asks in by(web.log(), "server") for place in starts(asks, ip_slots, ip_delay_s)] == []


def test_hosts_rest_between_pages_robots_and_redirects(tmp_path: Path) -> None:
    with Web(tmp_path, HOSTS) as web:
        Crawl(tmp_path, *(web.url(name) for name in "abcd"), *HALF, "--max-pages", "40").run()
        assert len(web.log()) > 40
        check(web)


def test_many_names_on_one_address_share_its_clock(tmp_path: Path) -> None:
    names = [f"http://n{number}.test/" for number in range(200)]
    with Web(tmp_path, {"crowd": "many pages=1"}) as web:
        pin = f"*:80:{web.address('crowd')}:{web.port}"
        began = time.monotonic()
        Crawl(tmp_path, *names, *HALF, *CONTACT, "--ip-delay", "0.1", "--resolve", pin).run()
        took_s = time.monotonic() - began
        assert len({ask.host for ask in web.log() if ask.target == "/"}) == 200
        check(web)
        assert took_s < 45, f"400 requests at 20/s took {took_s:.0f} s: a free address was not used"


def test_per_host_slots_are_a_limit_and_are_used(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=40"}) as web:
        Crawl(tmp_path, web.url("a"), *HALF, "--per-host", "4", "--ip-delay", "0.5", "--max-pages", "30").run()
        assert starts(web.log(), 4, 0.5) == []
        assert starts(web.log(), 3, 0.5) != [], "four slots were never in use"


def test_kill_of_the_group_and_resume_asks_nobody_early(tmp_path: Path) -> None:
    with Web(tmp_path, HOSTS) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in "abcd"), *HALF, "--max-pages", "30")
        for kill in range(3):
            process = crawl.start()
            seen = len(web.log())
            wait_for(lambda seen=seen: len(web.log()) > seen + 4, what=f"requests of run {kill + 1}")
            kill_group(process)
        crawl.run()
        check(web)


def test_kill_of_the_frontier_alone_and_resume_asks_nobody_early(tmp_path: Path) -> None:
    with Web(tmp_path, HOSTS) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in "abcd"), *HALF, "--max-pages", "30")
        process = crawl.start()
        wait_for(lambda: len(web.log()) > 8, what="requests")
        stage(process, "frontier").kill()
        assert process.wait(30) == 75, crawl.said()
        crawl.run()
        check(web)


def test_a_stopped_crawl_asks_nobody_early_when_it_goes_on(tmp_path: Path) -> None:
    with Web(tmp_path, HOSTS) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in "abcd"), *HALF, "--max-pages", "30")
        process = crawl.start()
        wait_for(lambda: len(web.log()) > 8, what="requests")
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(60) == 0, crawl.said()
        check(web)
