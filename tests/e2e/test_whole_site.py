"""One crawl of whole sites: every reachable page exactly once, and log, archives and pages/ tell the same story."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.e2e.crawls import CONTACT, FAST, Crawl, is_whole_html, named, pages_asked, shell
from tests.e2e.reference import reach
from tests.web import Web

SITES = {
    "plain": "plain pages=220",
    "moved": "moved to=second",
    "second": "plain pages=40",
    "map": "sitemaps",
    "dups": "duplicates",
    "letters": "charsets",
    "chunked": "chunked",
    "encodings": "encodings",
    "redirects": "redirects",
}
# A loopback address that the user did not type is refused, also as the end of a redirect.
LOOPBACK = ["--allow-net", "127.0.0.0/8"]
SEEDS = [name for name in SITES if name != "second"]


def may(target: str) -> bool:
    """The robots.txt of tests/web/behaviours/plain.py, in the words of a person."""
    return not (target.startswith("/private/") and target != "/private/open.html") and "?print=" not in target


def same(asked: Counter[str], expected: set[str]) -> None:
    """Claim that these URLs and no others were asked for, each once."""
    assert not (missed := expected - set(asked)), f"never asked for: {named(list(missed))}"
    assert not (extra := set(asked) - expected), f"asked for without need: {named(list(extra))}"
    assert not (again := [url for url, times in asked.items() if times > 1]), f"asked for twice: {named(again)}"


def test_every_reachable_page_once_and_all_counts_agree(tmp_path: Path) -> None:
    with Web(tmp_path, SITES) as web:
        expected = set()
        for seed in ("plain", "moved"):
            expected |= set(reach([web.url(seed)], may))
        web.forget()
        crawl = Crawl(tmp_path, *(web.url(name) for name in SEEDS), *FAST, *CONTACT, *LOOPBACK)
        crawl.run()
        asked = pages_asked(web.log())
        both = (web.url("plain", ""), web.url("moved", ""), web.url("second", ""))
        same(Counter({url: times for url, times in asked.items() if url.startswith(both)}), expected)
        assert not [ask for ask in web.log() if ask.site in ("plain", "second") and not may(ask.target)]
        check_records(crawl, web, asked)
        check_sitemap(web)
        letters = {ask.target for ask in web.log("letters")} | {ask.target for ask in web.log("encodings")}
        after = {
            f"/after/{target[1:]}"
            for target in letters
            if target.count("/") == 1 and target not in ("/", "/robots.txt", "/unsaid")
        }
        assert not after - letters, f"pages whose links were not read: {named(list(after - letters))}"


def check_records(crawl: Crawl, web: Web, asked: Counter[str]) -> None:
    """Hold the crawl log against the server's."""
    exchanges = [record for record in crawl.outcomes() if record.get("status")]
    logged = Counter(record["url"] for record in exchanges if not record["url"].endswith("/robots.txt"))
    assert logged == asked
    # One host names its robots.txt as a sitemap, too.
    assert len(exchanges) - sum(logged.values()) == len([ask for ask in web.log() if ask.target == "/robots.txt"])
    crawl.check_warcs()
    crawl.check_counts()
    whole = {record["digest"] for record in crawl.outcomes() if is_whole_html(record)}
    near = [row for row in crawl.pages() if (row.get("dup") or {}).get("kind") == "near"]
    assert near and {row["digest"] for row in near} <= whole, "near-duplicates keep their own row"


def check_sitemap(web: Web) -> None:
    """Claim that every page that only the sitemaps list was found, and each sitemap asked for once."""
    targets = Counter(ask.target for ask in web.log("map"))
    assert {f"/s{n}.html" for n in range(30)} - {"/s7.html"} <= set(targets)
    assert "/s7.html" not in targets
    assert [targets[name] for name in ("/index.xml", "/a.xml", "/b.xml.gz", "/c.txt")] == [1, 1, 1, 1], targets


def test_the_same_command_again_asks_for_nothing(tmp_path: Path) -> None:
    with Web(tmp_path, {"plain": "plain pages=20"}) as web:
        crawl = Crawl(tmp_path, web.url("plain"), *FAST)
        crawl.run()
        web.forget()
        crawl.run()
        assert pages_asked(web.log()) == Counter()


def test_the_stages_joined_by_hand_over_a_fifo_give_the_same_set(tmp_path: Path) -> None:
    with Web(tmp_path, {"plain": "plain pages=150", "moved": "moved to=plain"}) as web:
        expected = set(reach([web.url("moved")], may))
        web.forget()
        line = (
            f"crawltool init -C c {' '.join(CONTACT + FAST + LOOPBACK)} && crawltool seed {web.url('moved')} -o spool:c/inbox && "
            "mkfifo loop && crawltool frontier -C c --until-idle < loop | "
            "crawltool fetch -C c | crawltool parse -C c | crawltool dedup -C c > loop"
        )
        shell(line, tmp_path)
        same(pages_asked(web.log()), expected)
        crawl = Crawl(tmp_path, name="c")
        crawl.check_warcs()
        crawl.check_counts()
