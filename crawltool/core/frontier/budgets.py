"""How many URLs may a directory, or a registrable domain, bring into the crawl?

Counted when a URL is admitted, kept beside the queue in the same batch, and asked before the next one. With
`--domain-budget auto` a domain gets more the more other domains link to it, so that a farm of hosts under one name cannot
outgrow what the rest of the web thinks of it. Source: Lee, Leonard, Wang, Loguinov, IRLbot (WWW 2008), section 6, with
distinct linking domains estimated by linear counting (Whang et al., 1990). Called by core/frontier/admission.
"""

from __future__ import annotations

from math import log

import msgspec

from crawltool.core.frontier.book import Book
from crawltool.core.frontier.bounds import AUTO, Bounds
from crawltool.core.frontier.rows import Entry, Table, pack
from crawltool.core.scope import registrable_domain
from crawltool.core.urls import Url, key_of_form, split

AUTO_BASE = 1000  # URLs of a domain that no other one links to
AUTO_EACH = 500  # more for each that does
SKETCH_BITS = 512
HELD = 50_000  # counts in memory


class DomainRow(msgspec.Struct, array_like=True):
    """A registrable domain: its URLs, and which other domains link to it (one bit each, by hash)."""

    urls: int = 0
    linked_from: bytes = bytes(SKETCH_BITS // 8)


_domain_of = msgspec.msgpack.Decoder(DomainRow).decode
_count_of = msgspec.msgpack.Decoder(int).decode


class Budgets:
    """The counts that budgets are asked of. Directories and domains are counted only where they have a limit."""

    def __init__(self, book: Book, bounds: Bounds) -> None:
        self.book = book
        self.bounds = bounds
        self.is_used = bounds.max_pages_dir is not None or bounds.domain_budget is not None
        self.counts_links = bounds.domain_budget == AUTO
        self.dirs: dict[bytes, int] = {}
        self.domains: dict[str, DomainRow] = {}
        self.changed_dirs: set[bytes] = set()
        self.changed_domains: set[str] = set()

    def full(self, url: Url, entry: Entry) -> str | None:
        """Name the budget that is used up for a URL, or None."""
        bounds = self.bounds
        if bounds.max_pages_dir is not None and self._dir(directory_key(url)) >= bounds.max_pages_dir:
            return "dir_full"
        if bounds.domain_budget is not None and not entry.seed:
            row = self._domain(registrable_domain(url.host))
            if row.urls >= (auto_budget(row) if bounds.domain_budget == AUTO else bounds.domain_budget):
                return "domain_full"
        return None

    def linked(self, url: Url, via: str | None) -> None:
        """Somebody links to a URL: a link from another domain counts for its domain's budget."""
        source = split(via) if via is not None else None
        if source is None or source.host == url.host:
            return
        domain, other = registrable_domain(url.host), registrable_domain(source.host)
        if domain != other:
            row, bit = self._domain(domain), int.from_bytes(key_of_form(other)[:4], "big") % SKETCH_BITS
            marks = bytearray(row.linked_from)
            if not marks[bit >> 3] & 1 << (bit & 7):
                marks[bit >> 3] |= 1 << (bit & 7)
                row.linked_from = bytes(marks)
                self.changed_domains.add(domain)

    def admitted(self, url: Url) -> None:
        """A URL was admitted."""
        if self.bounds.max_pages_dir is not None:
            key = directory_key(url)
            self.dirs[key] = self._dir(key) + 1
            self.changed_dirs.add(key)
        if self.bounds.domain_budget is not None:
            domain = registrable_domain(url.host)
            self._domain(domain).urls += 1
            self.changed_domains.add(domain)

    def save(self) -> None:
        """Write what this turn changed."""
        for key in sorted(self.changed_dirs):
            self.book.put(Table.BUDGETS, key, msgspec.msgpack.encode(self.dirs[key]))
        for name in sorted(self.changed_domains):
            self.book.put(Table.BUDGETS, domain_key(name), pack(self.domains[name]))
        self.changed_dirs.clear()
        self.changed_domains.clear()
        if len(self.dirs) > HELD:
            self.dirs.clear()
        if len(self.domains) > HELD:
            self.domains.clear()

    def _dir(self, key: bytes) -> int:
        count = self.dirs.get(key)
        if count is None:
            raw = self.book.port.get(Table.BUDGETS, key)
            count = self.dirs[key] = _count_of(raw) if raw is not None else 0
        return count

    def _domain(self, name: str) -> DomainRow:
        row = self.domains.get(name)
        if row is None:
            raw = self.book.port.get(Table.BUDGETS, domain_key(name))
            row = self.domains[name] = _domain_of(raw) if raw is not None else DomainRow()
        return row


def auto_budget(row: DomainRow) -> int:
    """Tell how many URLs a domain may have: AUTO_BASE, and AUTO_EACH more for each domain that links to it."""
    unset = SKETCH_BITS - sum(mark.bit_count() for mark in row.linked_from)
    return AUTO_BASE + int(AUTO_EACH * SKETCH_BITS * log(SKETCH_BITS / max(unset, 0.5)))


def directory_key(url: Url) -> bytes:
    """Give the key of a URL's directory: its authority and path up to the last slash."""
    path = url.target.partition("?")[0]
    return b"d" + (url.authority + path[: path.rindex("/") + 1]).encode()


def domain_key(name: str) -> bytes:
    """Give the key of a registrable domain."""
    return b"n" + name.encode()
