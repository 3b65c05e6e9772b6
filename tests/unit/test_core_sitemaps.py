"""core/pages/sitemaps: lists of URLs as they are found in the wild. Cases SIT-01, SIT-04, SEC-03."""

from __future__ import annotations

import base64
import gzip
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.pages import content, sitemaps
from crawltool.core.pages.reading import Reading
from crawltool.core.pages.sitemaps import FRESHNESS_POINTS, freshness
from tests.paths import shared_data

URL = "http://site.test/sitemap.xml"
XML = b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>" + b"".join(
    b"<url><loc>http://site.test/%s</loc></url>" % name for name in (b"a", b"b")
)
XML += b"</urlset>"
LINES = b"\xef\xbb\xbfhttp://site.test/a\r\n\r\nhttp://site.test/b\r\n"


def read(body: bytes | str, content_type: str | None = "text/xml", coding: str = "", kind: str = "sitemap") -> Reading:
    headers = [("Content-Encoding", coding)] if coding else []
    body = body.encode() if isinstance(body, str) else body
    found = content.read(body, content_type, URL, headers, kind=kind)
    assert found is not None
    return found


def paths(reading: Reading) -> list[str]:
    return [link.url.removeprefix("http://site.test") for link in reading.links]


@pytest.mark.parametrize(
    ("content_type", "coding", "body"),
    [
        ("application/x-gzip", "", gzip.compress(XML, mtime=0)),
        ("text/xml", "gzip", gzip.compress(XML, mtime=0)),
        ("text/xml", "gzip", gzip.compress(gzip.compress(XML, mtime=0), mtime=0)),
        ("application/octet-stream", "", XML),
        ("text/plain", "", LINES),
        ("application/x-gzip", "", gzip.compress(LINES, mtime=0)),
        ("text/xml", "", gzip.compress(XML[:100], mtime=0) + gzip.compress(XML[100:], mtime=0)),
        ("text/xml", "", XML.decode().encode("utf-16")),
        ("text/html", "", XML),
        (None, "", XML),
    ],
)
def test_sit_01_a_sitemap_is_told_by_its_bytes(content_type: str | None, coding: str, body: bytes) -> None:
    found = read(body, content_type, coding)
    assert paths(found) == ["/a", "/b"]
    assert found.page.trouble is None
    assert {link.kind for link in found.links} == {"sitemap"}


def test_sit_04_messy_entries_are_read_and_bad_dates_are_none() -> None:
    found = read("""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.google.com/schemas/sitemap/0.84" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc><![CDATA[ http://site.test/1?a=1&b=2 ]]></loc><lastmod>2015-10-08T07:18:53Z 2015-06-15T15:33:55Z</lastmod></url>
<url><loc>
  http://site.test/2?a=1&amp;b=2
</loc><lastmod>2015-12-22T05:31-01:00</lastmod><image:image><image:loc>http://site.test/i.png</image:loc></image:image></url>
<url><loc>http://site.test/3</loc><lastmod>2024-05</lastmod></url>
<url><loc>http://site.test/4</loc><lastmod>2017-1-3</lastmod></url>
<url><loc>/5</loc></url><url><loc></loc></url>
<url><loc>http://site.test/6</loc>""")
    assert paths(found) == ["/1?a=1&b=2", "/2?a=1&b=2", "/3", "/4", "/5", "/6"]
    assert found.lastmods == {"http://site.test/2?a=1&b=2": "2015-12-22T06:31:00Z", "http://site.test/3": "2024-05"}
    assert found.page.trouble == "the list is cut"


SECRETS = """<?xml version="1.0"?> <!-- %s --> <!DOCTYPE u [
 <!ENTITY a "aaaaaaaaaa"> <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"> <!ENTITY i "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
 <!ENTITY %% p SYSTEM "http://127.0.0.1:9/d.dtd"> %%p;
 <!ENTITY f SYSTEM "file:///etc/hostname"> <!ENTITY n SYSTEM "http://127.0.0.1:9/x"> ]>
<urlset><url><loc>http://site.test/&f;</loc></url><url><loc>http://site.test/&n;</loc></url>
<url><loc>http://site.test/&i;</loc></url><url><loc>http://site.test/ok</loc></url></urlset>""" % ("x" * 5000)  # fmt: skip


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_sec_03_no_entity_is_expanded(codec: str) -> None:
    assert paths(read(SECRETS.encode(codec))) == ["/ok"]


def test_an_index_lists_sitemaps_and_priorities_are_told_from_the_usual_one() -> None:
    found = read("<sm:sitemapindex xmlns:sm='x'><sm:sitemap><sm:loc>/1.xml</sm:loc></sm:sitemap><sm:sitemap>/2</sm:sitemap>")
    assert [(link.url, link.kind) for link in found.links] == [("http://site.test/1.xml", "sitemap_index")]
    listed = read(
        "<urlset><url><loc>/a</loc><priority>0.8</priority></url><url><loc>/b</loc><priority>0.5</priority></url>"
        "<url><loc>/c</loc><priority>very</priority></url><url><loc>/a</loc></url></urlset>"
    )
    assert [(link.url[-1], link.priority) for link in listed.links] == [("a", 0.3), ("b", 0.0), ("c", 0.0)]


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><link>http://site.test/</link><image><url>http://site.test/i.png</url></image>
<item><title>x</title><link>http://site.test/1</link><pubDate>Sun, 06 Sep 2009 16:20:00 +0200</pubDate>
<description><![CDATA[<a href="/no"><link>http://site.test/no</link>]]></description></item>
<item><guid isPermaLink="false">17</guid></item><item><guid>http://site.test/2</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><entry><link rel="edit" href="/no"/>
<link rel="alternate" href="/1"/><id>urn:1</id><updated>2003-12-13T18:30:02Z</updated></entry>
<entry><link href='/2'/></entry></feed>"""


@pytest.mark.parametrize(("body", "date"), [(RSS, "2009-09-06T14:20:00Z"), (ATOM, "2003-12-13T18:30:02Z")])
def test_a_feed_lists_its_items(body: str, date: str) -> None:
    found = read(body, "application/xml", kind="page")
    assert paths(found) == ["/1", "/2"]
    assert {link.kind for link in found.links} == {"feed"}
    assert found.lastmods == {"http://site.test/1": date}
    assert {link.kind for link in read(body).links} == {"sitemap"}


def test_an_xml_file_that_is_no_list_has_no_links() -> None:
    assert read("<svg><a href='/x'/></svg>", "application/xml", kind="page").page.trouble is None
    assert read("<svg/>").page.trouble == "neither a sitemap nor a feed"


def test_urls_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SITEMAP_URLS_MAX", 1)
    found = read(XML)
    assert (paths(found), found.page.links_found, found.page.links_cut) == (["/a"], 2, 1)


@pytest.mark.parametrize(
    "body",
    [
        "<urlset>" + "<!--" * 100_000,
        "<urlset>" + "<![CDATA[" * 100_000,
        "<urlset>" + "<url " * 100_000,
        "<urlset>" + '<a b="' * 100_000,
        "<!DOCTYPE [" * 100_000,
        "<urlset><url>" + "<loc>" * 100_000,
        "<urlset>" + "<url a='\"" * 100_000,
        "<urlset><url><loc>" + "&" * 500_000,
        "<urlset>" + "<url>" * 100_000,
        "<?xml" * 100_000,
    ],
)
def test_broken_xml_costs_time_that_grows_with_its_length(body: str) -> None:
    started = time.process_time()
    read(body)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024", "2024"),
        ("2024-02-29", "2024-02-29"),
        ("2023-02-29", None),
        ("2024-05-01T10:00:00.123+02:00", "2024-05-01T08:00:00Z"),
        ("2024-05-01 10:00", "2024-05-01T10:00:00Z"),
        ("Wed, 1 May 2024 10:00:59 GMT", "2024-05-01T10:00:59Z"),
        ("1 Foo 2024 10:00", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("yesterday", None),
    ],
)
def test_dates_are_read_or_none(text: str, date: str | None) -> None:
    assert sitemaps.w3c_date(text) == date


# Options of that parser we do not have: a sitemap may list URLs outside its folder; a filter that rewrites URLs.
OTHER_POLICY = {"cc-sitemap/testLenientParser/L605", "cc-sitemap/testSitemapTXTfilterUrls/L325"}


def test_the_cases_of_another_parser_give_the_same_counts() -> None:
    wrong = []
    for line in shared_data("sitemap/crawler_commons_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        body = base64.b64decode(case["body_b64"]) if case.get("body_b64") else case["body"].encode()
        found = content.read(body, case.get("content_type"), case["url"], [], kind="sitemap")
        assert found is not None
        indexes = sum(link.kind == "sitemap_index" for link in found.links)
        expect = case["expect"]
        got = {"urls": len(found.links) - indexes, "sitemaps": indexes}
        if case["id"] not in OTHER_POLICY and any(expect[key] != got[key] for key in got if expect.get(key) is not None):
            wrong.append((case["id"], expect, got))
    assert not wrong


@given(st.text(alphabet="<>/urlsetloc &;![]CDAT-?\"'=\x00é", max_size=200), st.sampled_from(["<urlset>", "<rss>", "<feed>", ""]))
@settings(max_examples=150, deadline=None)
def test_no_text_raises(text: str, root: str) -> None:
    read(root + text)
    read(root + "<url><item><loc><link>" + text)


def test_what_changed_lately_goes_before_what_is_old_and_one_date_says_nothing() -> None:
    new, month, old = "2026-06-30T00:00:00Z", "2026-05-31T00:00:00Z", "2010-01-01T00:00:00Z"
    assert freshness(new, new) == 0.0
    assert freshness(month, new) == pytest.approx(-FRESHNESS_POINTS / 2)
    assert -FRESHNESS_POINTS <= freshness(old, new) < freshness(month, new)
