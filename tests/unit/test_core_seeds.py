"""What a line of a seed list means."""

from __future__ import annotations

import pytest

from crawltool.core import seeds


def read(line: bytes) -> tuple[str, str | None] | str | None:
    """Give (url, else_url), the reason, or None."""
    found = seeds.read(line)
    if isinstance(found, seeds.Seed):
        return found.url.href, found.else_url
    return found.reason if found is not None else None


@pytest.mark.parametrize(
    ("line", "url", "else_url"),
    [
        (b"https://example.org/a?b#c\n", "https://example.org/a?b", None),
        (b"HTTP://Example.ORG\r\n", "http://example.org/", None),
        (b"  example.com \t\r\n", "https://example.com/", "http://example.com/"),
        (b"//example.com/x", "https://example.com/x", "http://example.com/x"),
        (b"example.com:8443/x", "https://example.com:8443/x", "http://example.com:8443/x"),
        (b"example.com:443", "https://example.com/", None),
        (b"example.com:80/x", "http://example.com/x", None),
        (b"localhost:8000/x", "http://localhost:8000/x", None),
        (b"127.0.0.1:8080", "http://127.0.0.1:8080/", None),
        (b"a.localhost", "http://a.localhost/", None),
        (b"[::1]:8080/x", "http://[::1]:8080/x", None),
        (b"192.0.2.7", "https://192.0.2.7/", "http://192.0.2.7/"),
        (b"intranet:8080/wiki", "https://intranet:8080/wiki", "http://intranet:8080/wiki"),
        ("bücher.example".encode(), "https://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("https://пример.рф/путь".encode(), "https://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C", None),
        ("\u00a0example.com\u2003".encode(), "https://example.com/", "http://example.com/"),
        (b"https://me:secret@example.org/x", "https://example.org/x", None),
    ],
)
def test_a_url_or_a_bare_host_is_a_seed(line: bytes, url: str, else_url: str | None) -> None:
    assert read(line) == (url, else_url)


@pytest.mark.parametrize("line", [b"", b"\n", b"  \t \r\n", b"# https://example.org/\n", b"  # x"])
def test_blank_lines_and_comments_are_nothing(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"just some words", "not a URL"),
        (b"word", "not a URL"),
        (b"12345", "not a URL"),
        (b"0x7f.1", "not a URL"),
        (b"me@example.org", "not a URL"),
        (b"/path/only", "not a URL"),
        (b"https://", "not a URL"),
        (b"https://exa mple.org/", "not a URL"),
        (b"mailto:me@example.org", "not an http or https URL"),
        (b"ftp://example.org/x", "not an http or https URL"),
        (b"C:\\Users\\me", "not an http or https URL"),
        (b"javascript:alert(1)", "not an http or https URL"),
        (b"https://example.org/\x00x", "control character"),
        (b"https://example.org/\t42", "control character"),
        (b"https://example.org/\xff", "not UTF-8"),
        (b"\xff\xfeh\x00t\x00", "not UTF-8"),
        (b"https://example.org/" + b"a" * 70_000, "URL too long"),
        (b"example.org/" + b"a" * 70_000, "URL too long"),
    ],
)
def test_other_lines_are_refused_with_a_reason(line: bytes, reason: str) -> None:
    assert read(line) == reason


def test_a_byte_order_mark_counts_only_on_the_first_line() -> None:
    found = seeds.read(seeds.BOM + b"example.com\n", first=True)
    assert isinstance(found, seeds.Seed)
    assert found.url.href == "https://example.com/"


def test_the_sitemap_of_a_bare_host_is_tried_both_ways() -> None:
    found = seeds.read(b"example.com/shop/x?y")
    assert isinstance(found, seeds.Seed)
    made = seeds.sitemap(found)
    assert (made.url, made.else_url, made.kind, made.source) == (
        "https://example.com/sitemap.xml",
        "http://example.com/sitemap.xml",
        "sitemap",
        "seed",
    )
