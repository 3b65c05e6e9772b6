"""Which pages does this sitemap or feed list, and when did they change?

urlset, sitemapindex, RSS, Atom and lists of one URL a line, packed or not. The files are often broken, so they are read as
a stream of tags and not as XML: what stands before the damage counts. No entity is expanded but the five of XML and
numbers, so there are no bombs and nothing is fetched. Rows of core/pages/content's table. Source: sitemaps.org, W3C NOTE-
datetime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from crawltool import limits
from crawltool.core import decoding, urls
from crawltool.core.pages.reading import Reading, Sheet, join_troubles
from crawltool.records import Link, Page

# Sections whose inside is no markup are taken whole, closed or not; a tag ends at the next `<` at the latest.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?[^>]*+>?|<!DOCTYPE\b[^\[>]*+(?:\[[^\]]*+\]?)?[^>]*+>?"
    r"|<(/?)([A-Za-z_][\w.\-]*+:)?([A-Za-z_][\w.\-]*+)((?:[^<>\"']++|\"[^\"<]*+\"?|'[^'<]*+'?)*+)>?",
    re.S | re.I,
)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.S)
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
_FOREIGN_ENTITY = re.compile(r"&[A-Za-z_][\w.\-]*;")
_SIGNS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATTRIBUTE = re.compile(r"([\w:.\-]+)\s*=\s*(?:\"([^\"]*)\"?|'([^']*)'?)")
_W3C = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|z|[+-]\d\d:?\d\d)?)?)?)?")
_RFC822 = re.compile(r"(?:[A-Za-z]+,?\s+)?(\d{1,2})\s+([A-Za-z]{3})[a-z]*\s+(\d{4})\s+(\d\d):(\d\d)(?::(\d\d))?\s*([+-]\d{4})?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ROOTS = {"urlset": "sitemap", "sitemapindex": "sitemap_index", "rss": "feed", "rdf": "feed", "feed": "feed"}
_ITEMS = {"sitemap": ("url",), "sitemap_index": ("sitemap",), "feed": ("item", "entry")}
_DATES = ("lastmod", "updated", "pubdate", "date", "published", "modified")  # the first that is there counts
FRESHNESS_POINTS = 0.4
FRESHNESS_HALF_DAYS = 30
_FIELDS = frozenset({"loc", "priority", "link", "guid", *_DATES})


class Entry(NamedTuple):
    """One listed URL as written, with what the list says about it."""

    url: str
    lastmod: str | None
    priority: float | None


class Listing(NamedTuple):
    """What kind of list a text is ('' when it is none), and its entries."""

    kind: str
    entries: list[Entry]
    trouble: str | None


def read(sheet: Sheet) -> Reading:
    """Read a sitemap, a feed or another XML file as links; one that is neither gives none, and says so."""
    unpacked, troubles = sheet, []
    for _ in range(limits.DECODED_LAYERS_MAX):
        if not decoding.is_gzip(unpacked.body):
            break
        data, trouble = decoding.decode(unpacked.body, "gzip", limits.SITEMAP_BYTES_MAX)
        troubles.append(trouble)
        unpacked = unpacked._replace(body=data)
    text, encoding = unpacked.decoded()
    listing = parse(text, may_be_lines=sheet.kind == "sitemap")
    page = Page(charset=encoding.lower(), robots=sheet.robots)
    made = Reading(page)
    _resolve(listing, sheet, made)
    page.trouble = join_troubles(*troubles, listing.trouble)
    return made


def parse(text: str, may_be_lines: bool) -> Listing:
    """Read a list; `may_be_lines` allows one URL a line, which only a known sitemap may be."""
    if may_be_lines and text.lstrip()[:1] != "<":
        lines = [Entry(line.strip(), None, None) for line in text.splitlines()[: limits.SITEMAP_URLS_MAX * 2]]
        return Listing("sitemap", [line for line in lines if line.url[:4].lower() == "http"], None)
    reader = _Reader(text)
    entries = list(reader.entries())
    trouble = None
    if not reader.kind and may_be_lines:
        trouble = "neither a sitemap nor a feed"
    elif reader.cut:
        trouble = "the list is cut"
    return Listing(reader.kind, entries, trouble)


def w3c_date(text: str) -> str | None:
    """Give a date or date-time of NOTE-datetime or RFC 822 in UTC; a date alone stays one. None when it is neither."""
    text = text.strip()
    match = _W3C.fullmatch(text)
    if match is not None:
        year, month, day, hour, minute, second, zone = match.groups()
        if hour is None:
            return text if _is_date(int(year), int(month or 1), int(day or 1)) else None
        return _utc((year, month, day, hour, minute, second), zone)
    match = _RFC822.match(text)
    if match is None or match[2].lower() not in _MONTHS:
        return None
    month = str(_MONTHS.index(match[2].lower()) + 1)
    return _utc((match[3], month, match[1], match[4], match[5], match[6]), match[7])


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return False
    return True


def _utc(parts: tuple[str | None, ...], zone: str | None) -> str | None:
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # 60 is a leap second
        if zone and zone not in "Zz":
            away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            moment += -away if zone[0] == "+" else away
    except (ValueError, OverflowError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment.year >= 1000 else None


def _resolve(listing: Listing, sheet: Sheet, made: Reading) -> None:
    """Turn entries into links, each URL once; what is beyond the limit is counted."""
    kind = "sitemap" if sheet.kind == "sitemap" and listing.kind == "feed" else listing.kind
    nofollow = "nofollow" in sheet.robots
    found: dict[str, Link] = {}
    page = made.page
    own = urls.split(sheet.url)
    base = urls.Base(own) if own else None
    newest = max((entry.lastmod for entry in listing.entries if entry.lastmod), default="")
    for entry in listing.entries:
        href = base.href(entry.url) if base else None
        if href is None or href in found:
            continue
        if len(found) == limits.SITEMAP_URLS_MAX:
            page.links_cut += 1
            continue
        # 0.5 is what sitemaps.org gives a URL without a priority: it must mean the same as none.
        priority = 0.0 if entry.priority is None else round(entry.priority - 0.5, 3)
        if entry.lastmod:
            priority = round(priority + freshness(entry.lastmod, newest), 3)
        found[href] = Link(url=href, kind=kind, priority=priority, follow=not nofollow)
        if entry.lastmod:
            made.lastmods[href] = entry.lastmod
    made.links = list(found.values())
    page.links_found = len(found) + page.links_cut


def freshness(lastmod: str, newest: str) -> float:
    """Give points for a date beside the newest of its sitemap: 0 for that one, down to -FRESHNESS_POINTS for old ones.

    Both as w3c_date() gives them. A sitemap with one date for all says nothing.
    """
    days = _day(newest) - _day(lastmod)
    return -FRESHNESS_POINTS * (1.0 - float(0.5 ** (days / FRESHNESS_HALF_DAYS)))


def _day(written: str) -> int:
    """Count days; a year or month alone is its first day."""
    year, month, day = (int(part) for part in f"{written[:10]}-01-01".split("-")[:3])
    return datetime(year, month, day, tzinfo=UTC).toordinal()


class _Reader:
    """Goes through the tags of interest; all other markup is passed over."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.has_entities = "<!ENTITY" in text  # of its own: never expanded, what needs them is left out
        self.kind = ""
        self.items: tuple[str, ...] = ()
        self.cut = False
        self.prefix = ""
        self.item: dict[str, str] | None = None  # the fields of the item that is open
        self.begins: dict[str, int] = {}  # where the text of open fields begins; "" is the item itself

    def entries(self) -> Iterator[Entry]:
        """Give what is listed, in order; an item that nobody closed ends where the next one, or the text, does."""
        has_end = False
        for token in _TOKEN.finditer(self.text):
            name = (token[3] or "").lower()
            if not name:
                continue
            if not self.kind:
                self._root(name, token[2] or "")
            elif name in self.items and (token[2] or "") == self.prefix:
                yield from self._item(token)
            elif name in _ROOTS and token[1]:
                has_end = True
            elif self.item is not None and name in _FIELDS:
                if name == "loc" and not token[1] and "loc" in self.item:
                    yield from self._close(token.start())  # a second address in one item is an item of its own
                    self.item = {}
                self._field(name, token)
        if "loc" in self.begins:
            self._end_field("loc", self.text.find("<", self.begins["loc"]))
        yield from self._close(len(self.text))
        self.cut = bool(self.kind) and not has_end

    def _root(self, name: str, prefix: str) -> None:
        if name in _ROOTS:
            self.kind = _ROOTS[name]
            self.items = _ITEMS[self.kind]
            self.prefix = "" if name == "rdf" else prefix

    def _item(self, token: re.Match[str]) -> Iterator[Entry]:
        begin = self.begins.get("loc")
        if begin is not None and not token[1] and not self.text[begin : token.start()].strip():
            return  # <loc><url>…</url></loc>
        yield from self._close(token.start())
        if not token[1]:
            self.item, self.begins = {}, {"": token.end()}

    def _close(self, end: int) -> Iterator[Entry]:
        """End the open item at a place in the text."""
        if self.item is not None:
            if "loc" in self.begins:
                self._end_field("loc", end)
            elif not self.item and "" in self.begins:
                bare = self.text[self.begins[""] : end].strip()  # the address without its tag
                if bare.startswith("http") and "<" not in bare:
                    self.item["loc"] = bare
            entry = self._entry(self.item)
            if entry is not None:
                yield entry
        self.item, self.begins = None, {}

    def _field(self, name: str, token: re.Match[str]) -> None:
        """Take the text between a field's tags; of Atom's links the href of the page itself. The first value counts."""
        # dc:date and dcterms:modified are wanted, image:loc is not.
        if self.item is None or (name not in _DATES and (token[2] or "") != self.prefix):
            return
        attributes = token[4]
        if token[1]:
            self._end_field(name, token.start())
        elif name == "link" and "href" in attributes:
            found = {key.lower(): double or single for key, double, single in _ATTRIBUTE.findall(attributes)}
            if found.get("rel", "alternate") == "alternate" and found.get("href"):
                self.item.setdefault("link", found["href"])
        elif not attributes.endswith("/"):
            self.begins[name] = token.end()

    def _end_field(self, name: str, end: int) -> None:
        begin = self.begins.pop(name, None)
        if begin is not None and self.item is not None and end > begin:
            self.item.setdefault(name, self.text[begin:end])

    def _entry(self, fields: dict[str, str]) -> Entry | None:
        where = next((fields[name] for name in ("loc", "link", "guid") if fields.get(name, "").strip()), "")
        url = _plain(where)
        if not url or (_FOREIGN_ENTITY.search(where) and self.has_entities):
            return None
        if "loc" not in fields and "link" not in fields and not url.startswith("http"):
            return None  # a guid that is no address
        date = next((fields[name] for name in _DATES if name in fields), None)
        return Entry(url, w3c_date(_plain(date)) if date else None, _priority(fields.get("priority")))


def _plain(raw: str) -> str:
    """Give the text of an element: sections unwrapped, entities of XML undone once."""
    if "<" in raw:
        parts = _CDATA.split(raw)
        parts[::2] = [_unescaped(re.sub(r"<[^>]*>?", "", part)) for part in parts[::2]]
        return "".join(parts).strip()
    return _unescaped(raw).strip()


def _unescaped(text: str) -> str:
    return _ENTITY.sub(_sign, text) if "&" in text else text


def _sign(match: re.Match[str]) -> str:
    if match[3]:
        return _SIGNS[match[3]]
    code = int(match[1]) if match[1] else int(match[2], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code <= 0xDFFF else "\ufffd"


def _priority(text: str | None) -> float | None:
    match = re.fullmatch(r"\s*([01](?:\.\d{1,6})?|\.\d{1,6})\s*", text or "")
    return min(float(match[1]), 1.0) if match else None
