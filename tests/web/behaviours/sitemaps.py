"""Sitemaps: an index, compressed ones, one with 50,000 URLs; pages that no link leads to."""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from tests.web.answers import Answer, Handler, Request, Site, behaviour, text
from tests.web.prose import html


def urlset(urls: Iterable[str]) -> bytes:
    """Give a sitemap."""
    entries = "\n".join(f"<url><loc>{url}</loc><lastmod>2026-09-01</lastmod></url>" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}\n</urlset>\n'.encode()


def index(urls: Iterable[str]) -> bytes:
    """Give a sitemap index."""
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'.encode()


@behaviour
def sitemaps(site: Site, pages: int = 30) -> Handler:
    """robots.txt names an index; the index names itself, a plain, a gzipped and a text sitemap; pages are found only there."""
    thirds = [[f"{site.origin}/s{n}.html" for n in range(part, pages, 3)] for part in range(3)]
    xml = "application/xml"
    fixed = {
        "/robots.txt": text(
            f"User-agent: *\nDisallow: /s7.html\nSitemap: {site.origin}/index.xml\nSitemap: {site.origin}/robots.txt\n"
        ),
        "/index.xml": text(index(f"{site.origin}/{name}" for name in ("index.xml", "a.xml", "b.xml.gz", "c.txt", "a.xml")), xml),
        "/a.xml": text(urlset(thirds[0]), xml),
        "/b.xml.gz": text(gzip.compress(urlset(thirds[1]), mtime=0), "application/x-gzip"),
        "/c.txt": text(b"\xef\xbb\xbf" + "\r\n\r\n".join(thirds[2]).encode() + b"\r\n"),
        "/": Answer(html(f"Home of {site.name}", ["/linked.html"])),
        "/linked.html": Answer(html("The only linked page")),
    }

    def answer(request: Request) -> Answer | None:
        number = request.path[2:-5]
        if request.path.startswith("/s") and number.isdigit() and int(number) < pages:
            return Answer(html(f"Page {number} of {site.name}"))
        return fixed.get(request.path)

    return answer


@behaviour
def bigmap(site: Site, urls: int = 50_000) -> Handler:
    """One sitemap of 50,000 URLs; the pages exist."""
    made: list[bytes] = []

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return text(f"User-agent: *\nAllow: /\nSitemap: {site.origin}/sitemap.xml\n")
        if request.path == "/sitemap.xml":
            made[:] = made or [urlset(f"{site.origin}/item/{n}" for n in range(urls))]
            return text(made[0], "application/xml")
        if request.path == "/":
            return Answer(html(f"Home of {site.name}"))
        name = request.path.removeprefix("/item/")
        return Answer(html(f"Item {name}", text=f"Item number {name}.")) if name.isdigit() and int(name) < urls else None

    return answer
