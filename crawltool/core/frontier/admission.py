"""Which found URLs become part of the crawl.

Called by core/frontier/turn with all that a turn brought: candidates, and the links and redirects of outcomes. The scope
and limits are judged here; robots rules are not: they are judged at release, when they are fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crawltool import limits, records
from crawltool.core.frontier import rows
from crawltool.core.frontier.bans import Bans
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.budgets import Budgets
from crawltool.core.frontier.channels import Channels
from crawltool.core.frontier.confirmed import Confirmed, Texts
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.ordering import Order, Preferences, bounded
from crawltool.core.frontier.rows import Entry, Table
from crawltool.core.scope import Scope
from crawltool.core.urls import Url, key_of_form, split_once, why_not
from crawltool.core.urls import key as url_key

COUNT_MAX = 1_000_000  # of depth and hops: a line may claim any number


def entry_of(candidate: records.Candidate, *, operator: bool) -> Entry:
    """Turn a candidate line into an entry that may be admitted; only the operator's inbox can type a seed."""
    typed = operator and candidate.source == "seed"
    tags = bytes(candidate.tags) if candidate.tags is not None else None
    return Entry(
        candidate.url,
        candidate.kind if candidate.kind in ("page", "sitemap") else "page",
        candidate.depth,
        candidate.hops,
        seed=typed,
        priority=candidate.priority,
        via=candidate.via,
        else_url=candidate.else_url,
        prior=candidate.prior,
        tags=tags if tags is None or len(tags) <= limits.TAGS_BYTES_MAX else None,
        typed=typed,
    )


class Admission:
    """The gate: scope, limits, and what is known already."""

    def __init__(
        self,
        book: Book,
        scope: Scope,
        bounds: Bounds,
        order: Order,
        bonus_s: Callable[[bytes, bool], float] | None,
        bans: Bans,
        channels: Channels,
    ) -> None:
        """bonus_s: how much earlier a new URL is ranked for its importance, by key and whether it is a seed."""
        self.book = book
        self.bonus_s = bonus_s
        self.preferences = Preferences(order)
        self.bans, self.channels = bans, channels
        self.scope = scope
        self.bounds = bounds
        self.budgets = Budgets(book, bounds)
        self.confirmed = Confirmed()
        self.texts = Texts()
        self.news: list[str] = []  # scope entries that this turn added, to be said
        self.counts_new = False  # a page was settled in this turn
        self.new_from: dict[str, int] = {}  # new URLs of this turn that lie at the host of the page they were found on

    def unmet(self, links: Sequence[records.Link]) -> list[records.Link]:
        """Give the links that are followed, without those whose text is certainly known; these are counted."""
        followed = [link for link in links if link.follow]
        if self.bonus_s is not None or self.budgets.counts_links:
            return followed
        unmet = [link for link in followed if link.url not in self.texts]
        self.book.ledger.duplicates += len(followed) - len(unmet)
        return unmet

    def met_lately(self, text: str) -> bool:
        """Tell whether a URL's text is certainly known, and count it if so: the cheapest look."""
        met = text in self.texts and not self.budgets.counts_links
        self.book.ledger.duplicates += met
        return met

    def admit(self, found: list[Entry], now: float) -> None:
        """Judge many found URLs with one look-up."""
        texts, confirmed, duplicates = self.texts, self.confirmed, 0
        judged: list[tuple[Entry, Url, bytes]] = []
        counts_links = self.budgets.counts_links
        for entry in found:
            text = entry.url
            if text in texts and not entry.typed and not counts_links:
                duplicates += 1
                continue
            url = split_once(text)
            if url is None:
                bump(self.book.ledger.lines_refused, f"candidate: {why_not(text)}")
            elif self._in_scope(entry, url):
                key = url_key(url)
                if counts_links:
                    self.budgets.linked(url, entry.via)
                if key in confirmed:
                    duplicates += 1
                    texts.add(text)
                else:
                    judged.append((entry, url, key))
        states, fresh = self.book.known_now([key for _, _, key in judged]), self.book.fresh_rows
        for (entry, url, key), state in zip(judged, states, strict=True):
            known = fresh.get(key, state)
            if known is None or (known[:1] == rows.REFUSED and self._lives_again(key, known, entry, url)):
                self._enter(entry, url, key, now)
                continue
            duplicates += 1
            if known[:1] != rows.REFUSED:
                confirmed.add(key)
                texts.add(entry.url)
        self.book.ledger.duplicates += duplicates

    def forget_texts(self) -> None:
        """Drop what need not be looked up: a URL was forgotten."""
        self.texts, self.confirmed = Texts(), Confirmed()

    def _in_scope(self, entry: Entry, url: Url) -> bool:
        if entry.seed:
            self._widen(entry, url)
        reason = self.scope.judge(url)
        if reason is None and self.bounds.shard is not None:
            reason = self._other_shard(url.host, *self.bounds.shard)
        if reason is None and self.bans.active and self.bans.judge(url) is not None:
            reason = "banned"
        if reason is not None:
            self.book.ledger.out(reason, url.host)
        return reason is None

    def _widen(self, found: Entry, url: Url) -> None:
        """Let a seed's host join the scope; one that the operator typed counts as typed."""
        if found.typed:
            host = self.book.host(url.host)
            if not host.row.typed:
                host.row.typed = True
                self.book.touch(host)
        entry = self.scope.add(url)
        if entry is not None:
            self.book.put(Table.META, b"scope:" + entry.encode(), b"1")
            if not found.typed:
                self.news.append(f"{found.via} redirects to {url.href}: {entry} joins the scope")

    def _other_shard(self, host: str, index: int, count: int) -> str | None:
        return None if int.from_bytes(key_of_form(host)[:8], "big") % count == index % count else "other_shard"

    def _enter(self, entry: Entry, url: Url, key: bytes, now: float) -> None:
        if entry.channel:
            if self.channels.is_full(entry.channel):
                bump(self.book.ledger.lines_refused, f"candidate: over the quota of inbox.d/{entry.channel}")
                return
            self.channels.count(entry.channel)
        entry.url, entry.first_seen_at = url.href, now
        if entry.priority and not entry.typed:
            entry.priority = bounded(entry.priority)
        if self.preferences:
            entry.priority += self.preferences.points(url)
        if not 0 <= entry.depth <= COUNT_MAX or not 0 <= entry.hops <= COUNT_MAX:
            entry.depth, entry.hops = min(max(entry.depth, 0), COUNT_MAX), min(max(entry.hops, 0), COUNT_MAX)
        reason = self.limit(entry, url)
        if reason is not None:
            self.book.refuse_new(key, entry, reason, now)
            return
        if self.budgets.is_used:
            self.budgets.admitted(url)
        via = entry.via if self.counts_new else None
        if via is not None and via.startswith(url.href[: len(url.href) - len(url.target) + 1]):
            self.new_from[via] = self.new_from.get(via, 0) + 1
        self.book.accept(key, entry, url.host, self.bonus_s(key, entry.seed) if self.bonus_s is not None else 0.0)

    def limit(self, entry: Entry, url: Url) -> str | None:
        """Name the limit that keeps a URL out, or None."""
        bounds = self.bounds
        if len(url.href) > bounds.max_url_bytes:
            return "url_too_long"
        if bounds.max_depth is not None and entry.depth > bounds.max_depth:
            return "too_deep"
        if entry.hops > limits.REDIRECT_HOPS_MAX:
            return "too_many_redirects"
        if bounds.max_segments is not None and url.target.count("/") > bounds.max_segments:
            return "too_many_segments"
        most = bounds.max_queued_host
        if most is not None and self.book.lengths.longest * rows.CLASSES >= most and self.book.queued_of(url.host) >= most:
            return "queue_full"
        return self.budgets.full(url, entry) if self.budgets.is_used else None

    def _lives_again(self, key: bytes, state: bytes, entry: Entry, url: Url) -> bool:
        """A URL refused by a limit may come by a shorter path, or when there is room again: then the refusal is forgotten."""
        reason = state[1:].decode()
        if reason not in rows.ENTRY_REASONS or self.limit(entry, url) is not None:
            return False
        self.book.unsettle(key, self.book.settled(reason, key))
        self.book.ledger.accepted -= 1
        return True
