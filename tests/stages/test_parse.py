"""Pages are read from the archive, nothing else is touched, and what does not fit goes ahead."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawltool import limits, records
from crawltool.records import Candidate, Link, Locator, Outcome, Record, Text
from crawltool.stages.lines import Trouble
from crawltool.stages.parse import Parse, Settings
from tests.archives import Archive, capture

URL = "http://site.test/dir/page"
WORDS = " ".join(f"This is sentence number {i} of a text that speaks of plain matters." for i in range(20))
PAGE = f"<html lang=en><title>A title</title><main><p>{WORDS}</p><a href=/x>a link</a></main>".encode()
HTML = "text/html; charset=utf-8"


class Crawl:
    """A crawl directory with an archive, and parse on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "warc").mkdir()
        self.archive = Archive(directory / "warc")

    def outcome(self, body: bytes, content_type: str = HTML, head: str = "", url: str = URL, **fields: Any) -> bytes:
        """Store a body and give the outcome that names it, with a field nobody knows and blanks that must stay."""
        block = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{head}\r\n".encode()
        (stored,) = self.archive.writer.store([capture(url, body, head=block)])
        facts: dict[str, Any] = {
            "url": url,
            "lease": "1-7",
            "kind": "page",
            "verdict": "ok",
            "status": 200,
            "content_type": content_type,
            "body_bytes": len(body),
            "warc": stored.warc,
            "body_warc": stored.body_warc,
        }
        line = records.encode(Outcome(**facts | fields))
        return line.replace(b'"lease":', b'"later" : [1,{"x":"}"}], "lease":')

    def parse(self, line: bytes, **choices: Any) -> list[bytes]:
        return Parse(Settings(dir=self.directory, **choices)).think(line)

    def read(self, line: bytes, **choices: Any) -> list[Record]:
        return [records.decode(each) for each in self.parse(line, **choices)]

    def last(self, line: bytes, **choices: Any) -> Outcome:
        outcome = self.read(line, **choices)[-1]
        assert isinstance(outcome, Outcome) and outcome.page is not None
        return outcome


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    made = Crawl(tmp_path)
    yield made
    made.archive.close()


def test_a_page_gets_its_text_before_it_and_page_and_links_at_its_end(crawl: Crawl) -> None:
    line = crawl.outcome(PAGE)
    text_line, outcome_line = crawl.parse(line)
    text = records.decode(text_line)
    assert isinstance(text, Text)
    assert (text.url, text.lease, text.cut) == (URL, "1-7", False)
    assert WORDS in text.text
    assert outcome_line.startswith(line.rstrip()[:-1])
    outcome = records.decode(outcome_line)
    assert isinstance(outcome, Outcome) and outcome.page is not None
    assert (outcome.page.title, outcome.page.lang, outcome.page.words) == ("A title", "en", 262)
    assert outcome.links == [Link(url="http://site.test/x", text="a link", place="main")]


UNTOUCHED: dict[str, dict[str, Any]] = {
    "robots": {"kind": "robots"},
    "address": {"kind": "address"},
    "a redirect": {"verdict": "redirect", "status": 302},
    "not found": {"verdict": "client_error", "status": 404},
    "not stored": {"warc": None},
    "an image": {"content_type": "image/png"},
    "not modified": {"verdict": "not_modified", "status": 304},
    "an empty body": {"body_bytes": 0},
    "read before": {"page": records.Page(title="known")},
    "links known": {"links": [Link(url="http://site.test/known")]},
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_what_is_not_a_page_to_be_read_passes_byte_for_byte(crawl: Crawl, name: str) -> None:
    line = crawl.outcome(PAGE, **UNTOUCHED[name])
    assert crawl.parse(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"target", "url":"http://site.test/", "lease":"1-1"}\n',
        b'{"type":"newer","x":1}\n',
        b'{"type":"outcome","url":17}\n',
        b'{"type":"outcome","url":"\xff"}\n',
        b"no record\n",
    ],
)
def test_lines_of_other_types_and_broken_ones_pass_byte_for_byte(crawl: Crawl, line: bytes) -> None:
    parse = Parse(Settings(dir=crawl.directory), Trouble(lambda text: None))
    assert parse.think(line) == [line]
    assert parse.trouble.total == (not line.startswith((b'{"type":"target"', b'{"type":"newer"')))


@pytest.mark.parametrize(("choice", "has_menu"), [("main", False), ("all", True)])
def test_the_text_that_was_asked_for_is_written(crawl: Crawl, choice: str, has_menu: bool) -> None:
    line = crawl.outcome(b"<nav><a href=/m>The menu</a></nav>" + PAGE)
    text = crawl.read(line, text=choice)[0]
    assert isinstance(text, Text)
    assert ("The menu" in text.text) == has_menu


def test_no_text_is_written_when_none_is_wanted_and_the_page_is_described_all_the_same(crawl: Crawl) -> None:
    line = crawl.outcome(PAGE)
    (outcome,) = crawl.read(line, text="none")
    assert outcome == crawl.read(line)[-1]


def test_a_revisit_is_read_from_the_record_that_has_the_body(crawl: Crawl) -> None:
    crawl.outcome(PAGE)
    line = crawl.outcome(PAGE, url="http://site.test/again")
    assert b'"body_warc"' in line
    assert crawl.last(line).links[0].text == "a link"


def test_links_start_from_the_url_that_was_fetched_and_codings_are_undone(crawl: Crawl) -> None:
    body = gzip.compress(b"<a href=sub>x</a>")
    outcome = crawl.last(crawl.outcome(body, head="Content-Encoding: gzip\r\n"))
    assert [link.url for link in outcome.links] == ["http://site.test/dir/sub"]


def test_robots_rules_come_from_every_header_of_the_archive(crawl: Crawl) -> None:
    line = crawl.outcome(PAGE, head="X-Robots-Tag: otherbot: noindex\r\nX-Robots-Tag: ourbot: nofollow\r\n")
    outcome = crawl.last(line, robots_token="OurBot")
    assert outcome.page is not None and outcome.page.robots == ["nofollow"]
    assert not outcome.links[0].follow


def test_a_body_that_cannot_be_read_is_told_on_the_page(crawl: Crawl) -> None:
    lost = Locator(file="lost.warc.gz", offset=0, length=100)
    outcome = crawl.last(crawl.outcome(PAGE, warc=lost))
    assert outcome.page is not None
    assert (outcome.page.trouble or "").startswith("no body: ")
    assert outcome.links == []


def test_a_truncated_page_is_read_as_far_as_it_came(crawl: Crawl) -> None:
    outcome = crawl.last(crawl.outcome(PAGE[:-20], verdict="too_large", truncated="length"))
    assert outcome.page is not None and outcome.page.title == "A title"


def test_only_the_first_parse_bytes_are_read(crawl: Crawl) -> None:
    outcome = crawl.last(crawl.outcome(PAGE + b"<a href=/late>"), parse_bytes=len(PAGE))
    assert outcome.page is not None and "only the first" in (outcome.page.trouble or "")
    assert [link.url[-2:] for link in outcome.links] == ["/x"]


def test_links_that_do_not_fit_go_ahead_as_candidates_before_the_outcome(crawl: Crawl) -> None:
    many = "".join(f"<a href=/{'long' * 100}/{i}>{'word ' * 40}</a>" for i in range(2000))
    line = crawl.outcome(many.encode() + b"<img src=/picture>", depth=3)
    lines = crawl.parse(line, text="none", parse_bytes=4 * limits.MIB)
    assert all(len(each) <= limits.RECORD_BYTES_MAX for each in lines)
    assert len(lines[-1]) <= limits.OUTCOME_BYTES_MAX
    ahead, outcome = [records.decode(each) for each in lines[:-1]], records.decode(lines[-1])
    assert isinstance(outcome, Outcome) and outcome.page is not None
    found = [link.url for link in outcome.links]
    for candidate in ahead:
        assert isinstance(candidate, Candidate)
        assert (candidate.kind, candidate.source, candidate.via, candidate.depth) == ("page", "link", URL, 4)
        found.append(candidate.url)
    assert [int(url.rpartition("/")[2]) for url in found] == list(range(2000))
    assert (outcome.page.links_found, outcome.page.links_cut) == (2001, 1)  # nobody would fetch the picture


def sitemap(count: int) -> bytes:
    rows = (
        f"<url><loc>http://site.test/{i}</loc><lastmod>2024-05-01</lastmod><priority>1.0</priority></url>" for i in range(count)
    )
    return f"<urlset>{''.join(rows)}</urlset>".encode()


def test_a_sitemap_of_50_000_urls_loses_none(crawl: Crawl) -> None:
    line = crawl.outcome(sitemap(50_000), "application/xml", kind="sitemap")
    lines = crawl.parse(line)
    assert len(lines[-1]) <= limits.OUTCOME_BYTES_MAX
    ahead, outcome = [json.loads(each) for each in lines[:-1]], records.decode(lines[-1])
    assert isinstance(outcome, Outcome)
    assert len(ahead) + len(outcome.links) == 50_000
    assert {link.kind for link in outcome.links} == {"sitemap"}
    assert ahead[-1] == {
        "type": "candidate",
        "url": "http://site.test/49999",
        "source": "sitemap",
        "via": URL,
        "depth": 1,
        "priority": 0.5,
        "lastmod": "2024-05-01",
    }


def test_sitemaps_of_an_index_that_do_not_fit_are_candidates_of_kind_sitemap(crawl: Crawl) -> None:
    rows = "".join(f"<sitemap><loc>http://site.test/{'x' * 500}{i}.xml</loc></sitemap>" for i in range(2000))
    line = crawl.outcome(f"<sitemapindex>{rows}</sitemapindex>".encode(), "text/xml", kind="sitemap")
    first = crawl.read(line)[0]
    assert isinstance(first, Candidate)
    assert (first.kind, first.source) == ("sitemap", "sitemap")


def test_a_text_beyond_its_limit_is_cut_and_flagged_and_fits_its_line(crawl: Crawl) -> None:
    line = crawl.outcome(("\x01é\n" * 400_000).encode(), "text/plain; charset=utf-8")
    text_line = crawl.parse(line, parse_bytes=4 * limits.MIB)[0]
    assert records.fits(text_line)
    text = records.decode(text_line)
    assert isinstance(text, Text) and text.cut


def test_the_input_is_let_go_after_its_output_is_published(crawl: Crawl) -> None:
    events: list[str] = []
    line = crawl.outcome(PAGE)

    class Batch:
        lines = [line, b'{"type":"control","action":"x"}\n']

        def done(self) -> None:
            events.append("done")

    class Sink:
        def publish(self, lines: list[bytes]) -> None:
            events.append(f"publish {[records.type_of(each) for each in lines]}")

    counts = Parse(Settings(dir=crawl.directory)).run([Batch()], Sink())  # type: ignore[list-item, arg-type]
    assert events == ["publish ['text', 'outcome', 'control']", "done"]
    assert (counts.pages, counts.links, counts.passed) == (1, 1, 1)


@given(st.binary(max_size=400), st.sampled_from([HTML, "text/html", "application/xml", "text/plain", "application/octet-stream"]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_page_ends_the_stage(crawl: Crawl, body: bytes, content_type: str) -> None:
    for line in crawl.parse(crawl.outcome(b"<html><a href='/" + body + b"'>" + body, content_type)):
        records.decode(line)
