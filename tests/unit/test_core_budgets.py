"""Budgets: what a directory or a domain may bring in, also after a restart, and a raised limit revives what it refused."""

from __future__ import annotations

from crawltool import records
from crawltool.core.frontier.bounds import AUTO, Bounds
from crawltool.core.frontier.budgets import AUTO_BASE, AUTO_EACH, DomainRow, auto_budget
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore


class Crawl:
    def __init__(self, **bounds: int) -> None:
        self.store, self.run = DictStore(), 0
        self.restart(**bounds)

    def restart(self, **bounds: int) -> None:
        self.run += 1
        self.frontier = Frontier(self.store, Policy(), Bounds(**bounds), Scope(ScopeRules("all")))
        self.store.commit(self.frontier.start(self.run, 1e6, void_leases=True))

    def offer(self, *urls: str, via: str | None = None) -> dict[str, int]:
        events = [Event(records.Candidate(url=url, via=via), b"") for url in urls]
        self.store.commit(self.frontier.turn(events, 1e6, 0).save)
        return dict(self.frontier.book.ledger.refused)


def pages(host: str, folder: str, count: int, first: int = 0) -> list[str]:
    return [f"http://{host}{folder}{n}" for n in range(first, first + count)]


def test_a_directory_is_full_and_its_neighbour_is_not() -> None:
    crawl = Crawl(max_pages_dir=3)
    assert crawl.offer(*pages("a.example", "/x/", 5), *pages("a.example", "/y/", 3)) == {"dir_full": 2}
    crawl.restart(max_pages_dir=3)
    assert crawl.offer(*pages("a.example", "/x/", 1, first=9)) == {"dir_full": 3}


def test_a_raised_limit_revives_what_it_refused_as_far_as_it_goes() -> None:
    crawl = Crawl(max_pages_dir=3)
    crawl.offer(*pages("a.example", "/x/", 6))
    crawl.restart(max_pages_dir=5)
    assert crawl.offer() == {"dir_full": 1}
    assert crawl.frontier.book.ledger.queued == 5


def test_a_domain_budget_counts_all_hosts_of_the_domain() -> None:
    crawl = Crawl(domain_budget=4)
    urls = [f"http://h{n}.farm.example/" for n in range(6)] + ["http://other.example/"]
    assert crawl.offer(*urls) == {"domain_full": 2}


def test_auto_gives_a_domain_more_for_each_other_domain_that_links_there() -> None:
    assert auto_budget(DomainRow()) == AUTO_BASE
    crawl = Crawl(domain_budget=AUTO)
    for n in range(20):
        crawl.offer("http://liked.example/", via=f"http://fan{n}.example/")
        crawl.offer("http://farm.example/", via=f"http://s{n}.farm.example/")
    domains = crawl.frontier.admission.budgets.domains
    liked = auto_budget(domains["liked.example"])
    assert abs(liked - AUTO_BASE - 20 * AUTO_EACH) <= AUTO_EACH
    assert auto_budget(domains["farm.example"]) == AUTO_BASE


def test_what_a_full_domain_lost_comes_back_when_others_link_to_it() -> None:
    crawl = Crawl(domain_budget=AUTO)
    urls = pages("d.example", "/", AUTO_BASE + 1)
    assert crawl.offer(*urls) == {"domain_full": 1}
    assert crawl.offer(urls[-1], via="http://fan.example/") == {}


def test_too_many_segments_are_refused() -> None:
    crawl = Crawl(max_segments=3)
    assert crawl.offer("http://a.example/a/b/c", "http://a.example/a/b/c/d") == {"too_many_segments": 1}
