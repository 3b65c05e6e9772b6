"""Robots rules have an age: none older than --robots-ttl is used, and what changes takes effect."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.crawls import FAST, Crawl
from tests.web import Web

TTL = ["--robots-ttl", "2s", "--delay", "0.1", "--delay-factor", "0"]


def test_no_page_is_asked_for_on_rules_older_than_the_ttl(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "robots_changing pages=40"}) as web:
        Crawl(tmp_path, web.url("a"), *TTL, "--max-depth", "none").run()
        fetched = None
        oldest_s = 0.0
        for ask in web.log("a"):
            if ask.target == "/robots.txt":
                fetched = ask.t
            else:
                assert fetched is not None, f"{ask.target} was asked for before robots.txt"
                oldest_s = max(oldest_s, ask.t - fetched)
        assert oldest_s <= 3.0
        assert len([ask for ask in web.log("a") if ask.target == "/robots.txt"]) >= 3
        assert len({ask.target for ask in web.log("a")}) == 82


def test_rules_that_change_in_mid_crawl_take_effect(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "robots_changing pages=40 after_n=30"}) as web:
        Crawl(tmp_path, web.url("a"), *TTL, "--max-depth", "none").run()
        asks = web.log("a")
        pages = [ask for ask in asks if ask.target != "/robots.txt"]
        changed_t = pages[29].t
        known_t = min(ask.t for ask in asks if ask.target == "/robots.txt" and ask.t > changed_t)
        assert known_t - changed_t <= 3.0
        assert [ask.target for ask in pages if ask.target.startswith("/closed/") and ask.t > known_t] == []
        assert [ask.target for ask in pages if ask.target.startswith("/closed/") and ask.t < changed_t] != []
        assert len({ask.target for ask in pages if ask.target.startswith("/open/")}) == 40


def test_the_rules_of_each_kind_of_host(tmp_path: Path) -> None:
    rows = {
        "bom": "robots_bom", "all": "robots_all", "s404": "robots_status status=404", "s403": "robots_status status=403",
        "html": "robots_html", "huge": "robots_huge", "sections": "robots_sections", "slow": "robots_slow wait_s=1",
        "moved": "robots_moved to=sections hops=3", "far": "robots_moved to=sections hops=9",
    }  # fmt: skip
    with Web(tmp_path, rows) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in rows), *FAST)
        crawl.run()

        def closed(name: str) -> set[str]:
            return {ask.target for ask in web.log(name) if ask.target.startswith("/closed/")}

        def opened(name: str) -> int:
            return len({ask.target for ask in web.log(name) if ask.target.startswith("/open/")})

        assert {name: {ask.target for ask in web.log(name)} for name in ("bom", "all")} == {
            "bom": {"/robots.txt"},
            "all": {"/robots.txt"},
        }
        assert {name: len(closed(name)) for name in ("s404", "s403", "html")} == {"s404": 10, "s403": 10, "html": 10}
        assert {name: closed(name) for name in ("huge", "slow")} == {"huge": set(), "slow": set()}
        assert closed("sections") == {"/closed/5"}
        assert closed("moved") == {"/closed/5"}, "rules of another host, found over redirects, hold for the first host"
        assert {name: opened(name) for name in ("huge", "slow", "sections", "moved")} == dict.fromkeys(
            ("huge", "slow", "sections", "moved"), 10
        )
        slow = web.log("slow")
        assert slow[0].target == "/robots.txt" and slow[1].t - slow[0].t >= 1.0
