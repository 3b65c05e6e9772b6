"""Odd, huge and broken answers: each URL gets its verdict, the good page behind it is found, memory stays flat."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.crawls import FAST, Crawl, family, pages_asked
from tests.web import Web


def last(crawl: Crawl, path: str) -> dict[str, Any]:
    """Give the last outcome of a path."""
    return [record for record in crawl.outcomes("page") if record["url"].endswith(path)][-1]


def watch(process: subprocess.Popen[str], peak: list[int]) -> None:
    """Note the memory of a process tree until it ends."""
    while process.poll() is None:
        total = 0
        for member in family(process):
            try:
                total += member.memory_info().rss
            except psutil.Error:
                continue
        peak[0] = max(peak[0], total)
        time.sleep(0.05)


def test_bombs_and_huge_pages_are_bounded(tmp_path: Path) -> None:
    rows = {"bombs": "bombs", "big": "big", "deep": "deep"}
    with Web(tmp_path, rows) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in rows), *FAST)
        process, peak = crawl.start(), [0]
        watcher = threading.Thread(target=watch, args=(process, peak))
        watcher.start()
        assert process.wait(90) == 0, crawl.said()
        watcher.join()
        assert peak[0] < 700e6, f"{peak[0] / 1e6:.0f} MB"
        asked = {ask.target for ask in web.log()}
        assert {"/after", "/first"} <= asked
        big = last(crawl, "/big")
        assert big["truncated"] == "length" and big["body_bytes"] == 10 * 1024 * 1024
        crawl.check_warcs()


def test_broken_headers_and_bodies_cost_one_page_each(tmp_path: Path) -> None:
    with Web(tmp_path, {"headers": "odd_headers", "cut": "cut", "chunked": "chunked"}) as web:
        crawl = Crawl(tmp_path, web.url("headers"), web.url("cut"), web.url("chunked"), *FAST)
        crawl.run(timeout_s=60)
        asked = pages_asked(web.log())
        assert len([url for url in asked if url.startswith(web.url("chunked"))]) == 11
        assert web.url("headers", "/after") in asked
        verdicts = {
            path: last(crawl, path)["verdict"]
            for path in ("/folded", "/latin", "/no-text", "/many", "/http-1.0", "/hints", "/bare-lf")
        }
        assert verdicts == dict.fromkeys(verdicts, "ok")
        assert last(crawl, "/not-http")["verdict"] in ("malformed", "unreachable")
        assert last(crawl, "/fin").get("truncated") == "disconnect"
        asked_cut = {path: asked[web.url("cut", path)] for path in ("/fin", "/rst", "/chunk", "/head", "/nothing")}
        assert max(asked_cut.values()) <= 4, asked_cut
        crawl.check_warcs()


def test_what_fails_first_is_tried_again_and_found(tmp_path: Path) -> None:
    rows = {"flaky": "flaky", "well": "busy retry=seconds for_n=3 retry_s=1", "date": "busy retry=date for_n=2 retry_s=2"}
    with Web(tmp_path, rows) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in rows), *FAST)
        crawl.run(timeout_s=60)
        for name in rows:
            good = {
                record["url"]
                for record in crawl.outcomes("page")
                if record["verdict"] == "ok" and record["url"].startswith(web.url(name))
            }
            assert len(good) == 11, (name, good)
        asks = [ask for ask in web.log("well") if ask.target != "/robots.txt"]
        assert all(later.t - ask.t >= 1.0 for ask, later in pairwise(asks[:4])), "Retry-After was not kept"


def test_paths_that_look_alike_are_pages_of_their_own(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "hostcase"}) as web:
        Crawl(tmp_path, web.url("a"), *FAST).run()
        asked = Counter(ask.target for ask in web.log() if ask.target != "/robots.txt")
        # `/a?` and `/a` differ for WHATWG; `/%61/b` is `/a/b` for the key (RFC 3986 section 6.2.2.2), so one of them is enough.
        assert {"/", "/a", "/A", "//a", "/a/", "/a//", "/a%2Fb", "/a?x", "/a?x=", "/a;p"} <= set(asked)
        assert asked["/%61/b"] + asked["/a/b"] == 1
        assert max(asked.values()) == 1


def test_traps_end_by_depth_and_by_pages(tmp_path: Path) -> None:
    rows = {
        "calendar": "calendar",
        "maze": "maze",
        "soft404": "soft404",
        "sessions": "sessions",
        "facets": "facets",
        "hidden": "hidden",
    }
    with Web(tmp_path, rows) as web:
        crawl = Crawl(tmp_path, *(web.url(name) for name in rows), *FAST, "--max-depth", "4")
        crawl.run("--max-pages", "500", timeout_s=60)
        asked = pages_asked(web.log())
        assert 400 <= len(asked) <= 510
        assert max(asked.values()) == 1
        assert {web.url("hidden", path) for path in ("/a", "/b")} <= set(asked)
        assert not {web.url("hidden", path) for path in ("/comment", "/template", "/script")} & set(asked)
        # The trap does not starve the others: every host gave pages.
        assert min(Counter(ask.site for ask in web.log()).values()) > 3


def test_a_dead_https_port_does_not_cost_the_http_pages_of_the_host(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "redirects"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        crawl.run(code=None)
        asked = {ask.target for ask in web.log()}
        assert {"/chain/7", "/codes/307"} <= asked, "http pages were refused for want of the robots.txt of https"
