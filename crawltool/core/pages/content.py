"""Who reads this body? The table from content type to reader, and what happens before one is asked.

Content coding is undone first, then the type decides (or, where the server names none or a wrong one, the first bytes),
then X-Robots-Tag is read, for it speaks for every type. A new type is one file and one row. Called by stages/parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crawltool import limits
from crawltool.core import decoding, mediatypes
from crawltool.core.pages import charset, html, htmlpage, plaintext, sitemaps
from crawltool.core.pages.reading import Reading, Sheet, join_troubles
from crawltool.records import Page

Headers = Sequence[tuple[str, str]]

READERS: dict[str, Callable[[Sheet], Reading]] = {
    "text/html": htmlpage.read,
    "application/xhtml+xml": htmlpage.read,
    "text/xml": sitemaps.read,
    "application/xml": sitemaps.read,
    "application/rss+xml": sitemaps.read,
    "application/atom+xml": sitemaps.read,
    "application/rdf+xml": sitemaps.read,
    "text/plain": plaintext.read,
    "application/json": plaintext.read_nothing,
    "application/ld+json": plaintext.read_nothing,
    "application/feed+json": plaintext.read_nothing,
}
# Names that tell nothing: the first bytes are looked at instead (WHATWG mimesniff, section 7).
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream", "binary/octet-stream"})
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body"
    rb"|br|p)[\t\n\x0c\r />])",
    re.I,
)
_XML_START = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<(?:\?xml|urlset|sitemapindex|rss|feed|[a-z]+:(?:urlset|rdf))\b", re.I)
_HTML_ROOT = re.compile(rb"<html[\s>]", re.I)
# Rules of X-Robots-Tag that have a colon themselves; any other word before a colon is a robot's name.
_RULES_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


def is_readable(content_type: str | None, kind: str) -> bool:
    """Tell whether a body of this type is worth fetching from the archive; `kind` is what it was fetched as."""
    name = mediatypes.essence(content_type)
    return kind == "sitemap" or name in READERS or name in _UNKNOWN


def read(
    body: bytes,
    content_type: str | None,
    url: str,
    headers: Headers,
    *,
    kind: str = "page",
    token: str = "",
    limit: int = limits.MIB,
) -> Reading | None:
    """Read a body as stored (content coding kept); None when nobody reads its type.

    headers are those of the response; token is our product name in robots rules; at most `limit` decoded bytes of a page
    are read (sitemaps have limits.SITEMAP_BYTES_MAX). Trouble of the page is in Reading.page.trouble, never raised.
    """
    coding = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
    room = limits.SITEMAP_BYTES_MAX if kind == "sitemap" else limit
    unpacked = decoding.decode(body, coding, room + 1)
    trouble = unpacked.trouble
    data = unpacked.data
    if len(data) > room:
        data, trouble = data[:room], join_troubles(trouble, f"only the first {room} bytes were read")
    robots = _robots(headers, token)
    if body and not data:
        return Reading(Page(robots=robots, trouble=trouble))
    name = mediatypes.essence(content_type)
    reader = _reader(name, data, kind)
    if reader is None:
        return None
    made = reader(Sheet(data, name, charset.of_content_type(content_type), url, robots, kind, token))
    made.page.trouble = join_troubles(trouble, made.page.trouble)
    return made


def _reader(name: str, data: bytes, kind: str) -> Callable[[Sheet], Reading] | None:
    head = data[: limits.SNIFF_BYTES]
    if kind == "sitemap" and not (name in ("text/html", "application/xhtml+xml") and _HTML_START.match(head)):
        return sitemaps.read  # whatever it is called: gzip, text and XML are told apart by their bytes
    if name in _UNKNOWN:
        if _HTML_START.match(head):
            return htmlpage.read
        return sitemaps.read if _XML_START.match(head) else None
    reader = READERS.get(name)
    if reader is sitemaps.read and _HTML_ROOT.search(head):
        return htmlpage.read
    return reader


def _robots(headers: Headers, token: str) -> list[str]:
    """Collect the rules of X-Robots-Tag that are for everybody or for our token.

    A name holds for the rest of its header only, so repeated headers must not be joined with commas.
    """
    found: list[str] = []
    for name, value in headers:
        if name.lower() != "x-robots-tag":
            continue
        is_ours = True
        for rule in html.rules(value):
            word, colon, rest = rule.partition(":")
            if colon and word.strip() not in _RULES_WITH_VALUE:
                is_ours = bool(token) and word.strip() == token
                rule = rest.strip()
            if is_ours and rule:
                found += html.rules(rule)
    return list(dict.fromkeys(found))
