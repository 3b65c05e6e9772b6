"""core/identitypage: what the page says, and that nobody's words become markup."""

from __future__ import annotations

import json

from selectolax.lexbor import LexborHTMLParser

from crawltool.core import identitypage, robots
from crawltool.core.identitypage import About

ABOUT = About("bot/1.0", "bot/1.0 (+me@x.org)", "me@x.org", "bot", 1, 1.5)


def test_the_page_tells_who_asks_how_fast_and_how_to_block_it() -> None:
    page = identitypage.page(ABOUT)
    text = LexborHTMLParser(page).text()
    for words in ("bot/1.0 (+me@x.org)", "me@x.org", "1.5 seconds", "one request", "User-agent: bot\nDisallow: /", "429 or 503"):
        assert words in text, words
    assert 'href="mailto:me@x.org"' in page and 'href="ip-ranges.json"' in page
    assert "4 requests" in identitypage.page(ABOUT._replace(per_host=4))


def test_the_example_on_the_page_blocks_the_crawler() -> None:
    examples = [node.text() for node in LexborHTMLParser(identitypage.page(ABOUT)).css("pre")][1:]
    everything, part = (robots.parse(text.encode(), "bot") for text in examples)
    assert [rule[:2] for rule in everything.rules] == [("disallow", "/")]
    assert [rule[:2] for rule in part.rules] == [("disallow", "/calendar/")] and part.crawl_delay_s == 10


def test_words_of_the_operator_are_text_and_never_markup() -> None:
    evil = '"><script>alert(1)</script>'
    for contact in (evil, f"me@x.org{evil}", f"https://x.org/{evil}", "javascript:alert(1)@x"):
        tree = LexborHTMLParser(identitypage.page(About(evil, evil, contact, evil, 1, 1.0)))
        assert not tree.css("script") and evil in tree.text()
        assert all(not (link.attributes["href"] or "").startswith("javascript") for link in tree.css("a"))
        assert contact in tree.text()


def test_addresses_are_listed_as_large_crawlers_list_theirs() -> None:
    made = json.loads(identitypage.ranges(["2001:DB8:0::1", "192.0.2.7", "192.0.2.7"], "2026-12-01T06:00:00.000000"))
    assert made == {
        "creationTime": "2026-12-01T06:00:00.000000",
        "prefixes": [{"ipv4Prefix": "192.0.2.7/32"}, {"ipv6Prefix": "2001:db8::1/128"}],
    }
