"""core/frontier/listings: whose URLs a sitemap may list, and how far it is believed."""

from __future__ import annotations

from crawltool.core.frontier import rows
from crawltool.core.frontier.ledger import Ledger
from crawltool.core.frontier.listings import NOT_ITS_OWN, trust, weigh
from crawltool.core.frontier.reputation import Conduct
from crawltool.core.frontier.rows import Entry, class_of

OWN, OTHER = "http://a.example/1", "http://b.example/1"


def sitemap(**facts: object) -> Entry:
    return Entry("http://a.example/sitemap.xml", "sitemap", **facts)  # type: ignore[arg-type]


def kept(of: Entry, *urls: str, conduct: Conduct | None = None) -> list[Entry]:
    return weigh([Entry(url) for url in urls], of, conduct or Conduct(), Ledger())


def test_a_sitemap_lists_only_its_own_host() -> None:
    ledger = Ledger()
    found = weigh([Entry(OWN), Entry(OTHER)], sitemap(), Conduct(), ledger)
    assert [entry.url for entry in found] == [OWN]
    assert ledger.out_of_scope == {NOT_ITS_OWN: 1}


def test_a_host_may_name_a_sitemap_that_lies_elsewhere() -> None:
    named = sitemap(for_="http://b.example:80")
    assert [entry.url for entry in kept(named, OWN, OTHER, "http://c.example/")] == [OWN, OTHER]


def test_the_sitemaps_of_an_index_may_list_what_the_index_may() -> None:
    child = weigh([Entry("http://a.example/2.xml", "sitemap")], sitemap(for_="http://b.example:80"), Conduct(), Ledger())[0]
    assert [entry.url for entry in kept(child, OTHER)] == [OTHER]


def test_the_operators_sitemap_lists_what_it_likes() -> None:
    assert len(kept(sitemap(seed=True), OWN, OTHER)) == 2


def test_a_sitemap_that_has_moved_is_followed() -> None:
    moved = [Entry("http://cdn.example/sitemap.xml", "sitemap", hops=1)]
    assert weigh(moved, sitemap(), Conduct(), Ledger()) == moved


def test_trust_falls_with_the_share_of_urls_that_are_gone() -> None:
    conduct = Conduct()
    assert trust(conduct) == 1.0
    assert kept(sitemap(), OWN, conduct=conduct)[0].priority == 0.0
    for _ in range(100):
        conduct.sitemap_listed(gone=True)
    assert trust(conduct) < 0.1
    assert class_of(kept(sitemap(), OWN, conduct=conduct)[0].priority) == rows.LOW
    for _ in range(20_000):
        conduct.sitemap_listed(gone=False)
    assert trust(conduct) > 0.9
