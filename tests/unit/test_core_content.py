"""core/pages/content: which reader reads what, and what happens before it does. Cases HTTP-04, AUD-03."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core.pages import content
from crawltool.core.pages.reading import Reading

URL = "http://site.test/p"
PAGE = b'<!doctype html><title>t</title><p>some words and a <a href="/x">link</a>'


def read(body: bytes, content_type: str | None = "text/html", *headers: tuple[str, str], **more: object) -> Reading | None:
    return content.read(body, content_type, URL, headers, **more)  # type: ignore[arg-type]


def must(reading: Reading | None) -> Reading:
    assert reading is not None
    return reading


@pytest.mark.parametrize(
    ("coding", "body", "is_read", "trouble"),
    [
        ("x-gzip", gzip.compress(PAGE, mtime=0), True, None),
        ("GZIP", gzip.compress(PAGE, mtime=0), True, None),
        ("gzip, identity", gzip.compress(PAGE, mtime=0), True, None),
        ("gzip", PAGE, True, "labelled gzip but is not"),
        ("utf-8", PAGE, True, "unknown content coding: utf-8"),
        ("br", b"\x0b\x02\x80not text", False, "encoding not supported: br"),
    ],
)
def test_http_04_odd_labels_lose_no_page(coding: str, body: bytes, is_read: bool, trouble: str | None) -> None:
    found = must(read(body, "text/html", ("Content-Encoding", coding)))
    assert [link.url for link in found.links] == (["http://site.test/x"] if is_read else [])
    assert found.page.trouble == trouble


@pytest.mark.parametrize(
    ("content_type", "body", "links"),
    [
        ("text/html; charset=utf-8", PAGE, 1),
        ("TEXT/HTML", PAGE, 1),
        ("application/xhtml+xml", PAGE, 1),
        (None, PAGE, 1),
        ("", b"  \n<HTML><a href=/x>", 1),
        ("application/octet-stream", PAGE, 1),
        ("application/xml", b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><a href='/x'/></html>", 1),
        ("application/rss+xml", b"<rss><item><link>/1</link></item></rss>", 1),
        (None, b"<?xml version='1.0'?><rss><item><link>/1</link></item></rss>", 1),
        ("text/plain", PAGE, 0),
        ("application/json", b'{"href": "/x"}', 0),
    ],
)
def test_the_type_chooses_the_reader_and_the_bytes_where_it_tells_nothing(
    content_type: str | None, body: bytes, links: int
) -> None:
    assert len(must(read(body, content_type)).links) == links


@pytest.mark.parametrize("content_type", ["image/png", "application/pdf", "text/css", None])
def test_what_nobody_reads_is_left_alone(content_type: str | None) -> None:
    assert read(b"\x89PNG and so on", content_type) is None


def test_plain_text_has_text_and_no_links() -> None:
    found = must(read("http://site.test/x é".encode(), "text/plain; charset=utf-8"))
    assert found.text == "http://site.test/x é"
    assert found.page.words == 5


def test_a_page_is_described() -> None:
    words = " ".join(f"This is sentence number {i} of a text that speaks of plain matters." for i in range(20))
    body = f"<html lang=en><title>T</title><meta name=description content=D><link rel=canonical href=/c><p>{words}</p>"
    page = must(read(body.encode(), "text/html; charset=utf-8")).page
    assert (page.title, page.description, page.canonical, page.charset) == ("T", "D", "http://site.test/c", "utf-8")
    assert (page.lang, page.words, page.trouble) == ("en", 260, None)
    assert page.simhash is not None and len(page.simhash) == 16
    assert page.text_bytes == len(words)


def test_only_so_much_of_a_body_is_read() -> None:
    found = must(read(PAGE + b"." * 1000 + b"<a href=/late>", limit=500))
    assert [link.url for link in found.links] == ["http://site.test/x"]
    assert found.page.trouble == "only the first 500 bytes were read"
    exact = must(read(PAGE, limit=len(PAGE)))
    assert exact.page.trouble is None


def test_aud_03_rules_of_the_header_are_for_everybody_or_for_the_robot_they_name() -> None:
    headers = [
        ("X-Robots-Tag", "otherbot: noindex, nofollow"),
        ("X-Robots-Tag", "unavailable_after: 25 Jun 2010 15:00:00 PST"),
        ("x-robots-tag", "NOARCHIVE"),
        ("X-Robots-Tag", "ours: nosnippet"),
    ]
    found = must(read(PAGE, "text/html", *headers, token="ours"))
    assert found.page.robots == ["unavailable_after: 25 jun 2010 15:00:00 pst", "noarchive", "nosnippet"]
    assert found.links[0].follow


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("X-Robots-Tag", "nofollow, NOINDEX")], PAGE),
        ([("X-Robots-Tag", "ours: none")], PAGE),
        ([], b"<meta name=robots content=none>" + PAGE),
        ([], b"<meta name=OURS content=nofollow>" + PAGE),
    ],
)
def test_aud_03_nofollow_from_any_place_holds_for_all_links(headers: list[tuple[str, str]], body: bytes) -> None:
    found = must(read(body, "text/html", *headers, token="ours"))
    assert "nofollow" in found.page.robots
    assert not any(link.follow for link in found.links)


def test_htm_06_a_page_of_nul_bytes_gives_no_links() -> None:
    found = must(read(b"\x00\x00\x00"))
    assert found.links == [] and found.page.simhash is None


@given(
    st.binary(max_size=300),
    st.sampled_from([*content.READERS, None, "x/y"]),
    st.sampled_from(["page", "sitemap"]),
    st.sampled_from(["", "gzip", "deflate", "zstd"]),
)
@settings(max_examples=150, deadline=None)
def test_no_body_raises(body: bytes, content_type: str | None, kind: str, coding: str) -> None:
    read(body, content_type, ("Content-Encoding", coding), kind=kind)
    read(b"<html><a href='" + body + b"'><p>" + body, content_type, kind=kind)
