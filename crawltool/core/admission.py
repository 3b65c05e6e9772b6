"""Which found URLs become part of the crawl.

Called by core/frontier with all that a turn brought: candidates, and the links and redirects of outcomes. The scope and limits
are judged here; robots rules are not: they are judged at release, when they are fresh.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawltool import limits, records
from crawltool.core import rows
from crawltool.core.book import Book
from crawltool.core.ledger import bump
from crawltool.core.rows import Entry, Table
from crawltool.core.scope import Scope
from crawltool.core.urls import Url, key_of_form, split, why_not
from crawltool.core.urls import key as url_key

COUNT_MAX = 1_000_000  # of depth and hops: a line may claim any number
RECENT_MAX = 100_000  # URL texts of one generation that need no look-up


@dataclass(frozen=True)
class Bounds:
    """The operator's limits. None is no limit."""

    max_depth: int | None = 16
    max_url_bytes: int = 2048
    max_queued_host: int | None = 1_000_000
    max_pages_host: int | None = 10_000  # not for hosts the operator typed
    max_pages: int | None = None
    max_bytes: int | None = None
    shard: tuple[int, int] | None = None  # (i, n): only the hosts of share i of n, by hash of the name


@dataclass(slots=True)
class Offer:
    """A URL that somebody found."""

    url: str
    kind: str = "page"
    depth: int = 0
    hops: int = 0
    priority: float = 0.0
    via: str | None = None
    typed: bool = False  # the operator typed it: its host joins the scope, loopback included
    seed: bool = False  # typed, or led to by redirects from a typed one: its host joins the scope
    else_url: str | None = None
    prior: records.Prior | None = None
    tags: bytes | None = None


def offer_of(candidate: records.Candidate, *, operator: bool) -> Offer:
    """Turn a candidate line into an offer; only the operator's inbox can type a seed."""
    typed = operator and candidate.source == "seed"
    tags = bytes(candidate.tags) if candidate.tags is not None else None
    return Offer(
        candidate.url,
        candidate.kind if candidate.kind in ("page", "sitemap") else "page",
        candidate.depth,
        candidate.hops,
        candidate.priority,
        candidate.via,
        typed,
        typed,
        candidate.else_url,
        candidate.prior,
        tags if tags is None or len(tags) <= limits.TAGS_BYTES_MAX else None,
    )


class Admission:
    """The gate: scope, limits, and what is known already."""

    def __init__(self, book: Book, scope: Scope, bounds: Bounds) -> None:
        self.book = book
        self.scope = scope
        self.bounds = bounds
        self.recent: dict[str, None] = {}
        self.older: dict[str, None] = {}
        self.news: list[str] = []  # scope entries that this turn added, to be said

    def admit(self, offers: list[Offer], now: float) -> None:
        """Judge many offers with one look-up."""
        judged: list[tuple[Offer, Url, bytes]] = []
        for offer in offers:
            if not offer.typed and (offer.url in self.recent or offer.url in self.older):
                self.book.ledger.duplicates += 1
                continue
            url = split(offer.url)
            if url is None:
                bump(self.book.ledger.lines_refused, f"candidate: {why_not(offer.url)}")
            elif self._in_scope(offer, url):
                judged.append((offer, url, url_key(url)))
        states = self.book.known_now([key for _, _, key in judged])
        for (offer, url, key), state in zip(judged, states, strict=True):
            self._enter(offer, url, key, self.book.fresh.get(key, state), now)

    def _in_scope(self, offer: Offer, url: Url) -> bool:
        if offer.typed:
            host = self.book.host(url.host)
            if not host.row.typed:
                host.row.typed = True
                self.book.touch(host)
        if offer.seed:
            entry = self.scope.add(url)
            if entry is not None:
                self.book.put(Table.META, b"scope:" + entry.encode(), b"1")
                if not offer.typed:
                    self.news.append(f"{offer.via} redirects to {url.href}: {entry} joins the scope")
        reason = self.scope.judge(url) or self._other_shard(url.host)
        if reason is not None:
            self.book.ledger.out(reason, url.host)
        return reason is None

    def _other_shard(self, host: str) -> str | None:
        if self.bounds.shard is None:
            return None
        index, count = self.bounds.shard
        return None if int.from_bytes(key_of_form(host)[:8], "big") % count == index % count else "other_shard"

    def _enter(self, offer: Offer, url: Url, key: bytes, state: bytes | None, now: float) -> None:
        entry = Entry(
            url.href,
            kind=offer.kind,
            depth=min(max(offer.depth, 0), COUNT_MAX),
            hops=min(max(offer.hops, 0), COUNT_MAX),
            seed=offer.seed,
            priority=offer.priority,
            first_seen_at=now,
            via=offer.via,
            else_url=offer.else_url,
            prior=offer.prior,
            tags=offer.tags,
        )
        if state is not None and not self._lives_again(key, state, entry):
            self.book.ledger.duplicates += 1
            self._remember(offer.url, state)
            return
        reason = self.limit(entry, url)
        if reason is not None:
            self.book.refuse_new(key, entry, reason, now)
            return
        self.book.accept(key, entry, self.book.host(url.host), now)
        self._remember(offer.url, rows.QUEUED)

    def limit(self, entry: Entry, url: Url) -> str | None:
        """Name the limit that keeps a URL out, or None."""
        bounds = self.bounds
        if len(url.href) > bounds.max_url_bytes:
            return "url_too_long"
        if bounds.max_depth is not None and entry.depth > bounds.max_depth:
            return "too_deep"
        if entry.hops > limits.REDIRECT_HOPS_MAX:
            return "too_many_redirects"
        if bounds.max_queued_host is not None and self.book.host(url.host).row.queued >= bounds.max_queued_host:
            return "queue_full"
        return None

    def _lives_again(self, key: bytes, state: bytes, entry: Entry) -> bool:
        """A URL refused by a limit may come by a shorter path: the refusal is forgotten if the path is."""
        reason = state[1:].decode() if state[:1] == rows.REFUSED else ""
        if reason not in rows.LIMIT_REASONS:
            return False
        settled = self.book.settled(reason, key)
        if (entry.depth, entry.hops) >= (settled.entry.depth, settled.entry.hops):
            return False
        self.book.unsettle(key, settled)
        self.book.ledger.accepted -= 1
        return True

    def _remember(self, text: str, state: bytes) -> None:
        if state[:1] == rows.REFUSED:
            return
        self.recent[text] = None
        if len(self.recent) > RECENT_MAX:
            self.older, self.recent = self.recent, {}
