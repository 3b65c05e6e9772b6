"""What an outcome does: the lease ends, the clocks move, the URL is settled or tried again (laws 3, 5, 8).

Called by core/frontier for each outcome line and for each lease that ran out. A fact is applied whoever reports it; what
an outcome found goes back to the caller as offers, to be admitted in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable

from crawltool import limits, records
from crawltool.core import hosting, politeness, rows
from crawltool.core.admission import Offer
from crawltool.core.book import Book
from crawltool.core.hosts import Host
from crawltool.core.ledger import bump
from crawltool.core.verdicts import availability
from crawltool.core.rows import Entry, Lease, RobotsRow, Table
from crawltool.core.urls import key as url_key
from crawltool.core.urls import split

DONE = frozenset(("ok", "not_modified", "too_large", "skipped_type"))
FINAL = frozenset(("gone", "client_error", "payment_required"))
HOST_TROUBLE = frozenset(("unreachable", "timeout", "tls_error", "busy"))
ROBOTS_RANK = -float(1 << 41)  # a robots target goes before every page
UNASKED = frozenset(("unreachable", "timeout", "tls_error", "dns_failure"))  # a seed's second spelling is tried


class Settling:
    """Applies outcomes to the book."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.by_kind: dict[str, Callable[[records.Outcome, Lease, Host, float], list[Offer]]] = {
            "address": self._address,
            "robots": self._robots,
            "sitemap": self._page,
            "page": self._page,
        }

    def outcome(self, outcome: records.Outcome, line: bytes, now: float) -> list[Offer]:
        """Apply one outcome; the result is what it found."""
        book = self.book
        lease = book.leases.get(outcome.lease)
        if lease is None or lease.entry.url != outcome.url or lease.entry.kind != outcome.kind:
            return self._late(outcome, line, now)
        book.end_lease(outcome.lease)
        self._log(outcome, line)
        host = book.host(lease.host)
        book.touch(host)
        self._free(lease, host, outcome, now)
        if outcome.verdict == "returned":
            self._returned(outcome, lease, host, now)
            return []
        offers = self.by_kind[outcome.kind](outcome, lease, host, now)
        book.schedule(host)
        return offers

    def expire(self, now: float) -> None:
        """End the leases that ran out: the URL is queued again, the host gets its whole rest."""
        book = self.book
        while book.expiries and book.expiries[0][0] <= now:
            name = hosting.pop_expiry(book)
            if name in book.leases:
                lease = book.end_lease(name)
                host = book.host(lease.host)
                book.touch(host)
                hosting.give_slots(book, lease, host, now + lease.rest_s, now + book.policy.address_delay_s, lease.rest_s)
                self._lost(lease, host, now)
                book.schedule(host)

    # --- what every outcome does ---

    def _log(self, outcome: records.Outcome, line: bytes) -> None:
        book = self.book
        asked = outcome.fetched_at is not None
        if asked or (outcome.kind == "address" and outcome.verdict != "ok"):
            book.seq += 1
            book.put(Table.OUTBOX, book.seq.to_bytes(8, "big"), records.splice(line, seq=book.seq))
        if asked:
            book.ledger.exchanges += 1
            book.ledger.bytes += outcome.body_bytes or 0

    def _free(self, lease: Lease, host: Host, outcome: records.Outcome, now: float) -> None:
        """Give the slots back: with the times they had when nobody was asked, else with the host's rest."""
        book = self.book
        if outcome.fetched_at is None:
            hosting.give_slots(book, lease, host, lease.slot_at, lease.ip_slot_at, 0.0)
            return
        end = politeness.exchange_end(outcome.fetched_at, outcome.elapsed_s, lease.released_at, now)
        rest_s = politeness.rest(book.policy, outcome.elapsed_s or 0.0, hosting.crawl_delay(book, lease.entry.url))
        hosting.give_slots(book, lease, host, end + rest_s, end + book.policy.address_delay_s, rest_s)
        if outcome.status is not None and outcome.verdict != "busy":
            host.row.streak = 0
        elif outcome.verdict == "unreachable":
            hosting.rotate_address(book, host)

    def _returned(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> None:
        """The target was not started: no attempt, no clock; but not offered again at once."""
        entry = lease.entry
        entry.returned += 1
        wait_s = min(2.0 ** (entry.returned - 1), float(limits.RETURNED_WAIT_S_MAX))
        if entry.kind == "address":
            hosting.not_resolved(self.book, host, now + wait_s)
        elif entry.kind == "robots":
            host.rest_until(now + min(wait_s, 1.0), 1.0)
            self._robots_again(entry, now)
        elif not lease.settled:
            self._unlease(entry)
            key = self.book.key_of(entry)
            if entry.returned > limits.RETURNED_MAX:
                self.book.settle_failed(key, entry, "returned", outcome.reason or "", now)
            else:
                self.book.wait(key, entry, now + wait_s)
        self.book.schedule(host)

    def _unlease(self, entry: Entry) -> None:
        self.book.ledger.leased -= 1
        if entry.kind == "page":
            self.book.ledger.pages_out -= 1

    def _lost(self, lease: Lease, host: Host, now: float) -> None:
        """A lease ran out. It counts in `lost`, not in `attempt`."""
        entry = lease.entry
        entry.lost += 1
        if entry.kind == "address":
            hosting.not_resolved(self.book, host, now + 1.0)
        elif entry.kind == "robots":
            if entry.for_ is not None:
                hosting.robots_failed(self.book, entry.for_, "lost", now)
        elif not lease.settled:
            self._unlease(entry)
            key = self.book.key_of(entry)
            if entry.lost > limits.LOST_MAX:
                self.book.settle_failed(key, entry, "lost", f"{entry.lost} leases ran out", now)
            else:
                self.book.enqueue(key, entry, host, rows.REQUEUED)

    # --- kind address ---

    def _address(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Offer]:
        reason = outcome.reason or ""
        if outcome.verdict == "ok" and outcome.addresses:
            hosting.resolved(self.book, host, outcome.addresses, now + (outcome.ttl_s or limits.ADDRESS_TTL_S))
        elif outcome.verdict == "blocked_address":
            hosting.close(self.book, host, "blocked_address")
        elif outcome.verdict == "dns_failure" and reason.startswith("no_such_name"):
            hosting.close(self.book, host, "dns_failure")
        else:
            hosting.trouble(self.book, host, lease.released_at, now, None, "host_unavailable")
            hosting.not_resolved(self.book, host, host.row.rest_until)
        return []

    # --- kind robots ---

    def _robots(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Offer]:
        book, authority = self.book, lease.entry.for_
        assert authority is not None
        if outcome.verdict == "redirect":
            return self._robots_redirect(outcome, lease, authority, now)
        kind = availability(outcome.verdict, outcome.status)
        if kind == "unreachable":
            if outcome.verdict in UNASKED and (second := self._second_spelling(host, authority, outcome, now)):
                return second
            hosting.robots_failed(
                self.book, authority, f"{outcome.verdict} {outcome.reason or outcome.status or ''}".strip(), now
            )
            hosting.trouble(book, host, lease.released_at, now, outcome.retry_after_s, "robots_unreachable")
            return []
        found = outcome.robots or records.Robots()
        fetched_at = outcome.fetched_at if outcome.fetched_at is not None and outcome.fetched_at <= now else now
        rest_s = politeness.rest(book.policy, outcome.elapsed_s or 0.0, found.crawl_delay_s)
        expires_at = politeness.robots_expiry(book.policy, fetched_at, found.max_age_s)
        if rest_s >= book.policy.robots_ttl_s:  # else they would be stale before any page may follow them (law 11)
            expires_at = now + rest_s + 1.0
        rules = found.rules if kind == "rules" else []
        row = RobotsRow(kind, fetched_at, expires_at, rules, found.crawl_delay_s, 0, book.run)
        hosting.robots_known(self.book, authority, row)
        self._crawl_delay(lease, host, found.crawl_delay_s, now)
        base = split(lease.entry.url)
        sitemaps = found.sitemaps if kind == "rules" and base is not None else []
        return [Offer(url, kind="sitemap", via=lease.entry.url) for url in sitemaps[: limits.SITEMAPS_MAX]]

    def _crawl_delay(self, lease: Lease, host: Host, crawl_delay_s: float | None, now: float) -> None:
        """Crawl-delay counts from the robots.txt fetch on, for all the host's slots."""
        if crawl_delay_s and crawl_delay_s <= limits.CRAWL_DELAY_S_MAX:
            host.rest_until(now + crawl_delay_s, crawl_delay_s)

    def _robots_redirect(self, outcome: records.Outcome, lease: Lease, authority: str, now: float) -> list[Offer]:
        """A robots redirect is a new target at its new host: exempt from scope and robots, never from politeness."""
        book, hops = self.book, lease.entry.hops + 1
        url = split(outcome.redirect) if outcome.redirect else None
        if url is None:
            hosting.robots_failed(self.book, authority, outcome.reason or "redirect without a usable Location", now)
        elif hops > limits.ROBOTS_HOPS_MAX:
            # RFC 9309 section 2.3.1.2: after five redirects the file may be taken as unavailable.
            expires_at = politeness.robots_expiry(book.policy, now, None)
            hosting.robots_known(
                self.book, authority, RobotsRow("allow_all", now, expires_at, run=book.run, reason="too many redirects")
            )
        else:
            entry = Entry(url.href, kind="robots", hops=hops, for_=authority, first_seen_at=now, via=outcome.url)
            book.serial += 1
            target_host = book.host(url.host)
            book.push(target_host, rows.queue_key(target_host.row.number, ROBOTS_RANK, book.serial), entry)
        return []

    def _robots_again(self, entry: Entry, now: float) -> None:
        """The robots target was given back unasked: the next release asks anew."""
        if entry.for_ is not None:
            state = self.book.robots_of(entry.for_)
            state.pending = False
            hosting.unpark(self.book, state)

    def _second_spelling(self, host: Host, authority: str, outcome: records.Outcome, now: float) -> list[Offer]:
        """Seeds that name a second spelling (https, then http) are not waited for: the first one failed."""
        book, offers = self.book, []
        while (head := book.head(host)) is not None and head[1].else_url:
            url = split(head[1].url)
            if url is None or url.authority != authority:
                break
            _, entry = book.take_head(host)
            book.ledger.queued -= 1
            book.settle_failed(book.key_of(entry), entry, outcome.verdict, outcome.reason or "", now)
            offers.append(second_offer(entry))
        if offers:
            self._robots_again(Entry("", for_=authority), now)
        return offers

    # --- kinds page and sitemap ---

    def _page(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Offer]:
        book, entry = self.book, lease.entry
        bump(book.ledger.verdicts, outcome.verdict)
        if entry.kind == "page" and outcome.status is not None:
            book.ledger.pages += 1
            host.row.pages += 1
            book.ledger.ok_pages += outcome.verdict in DONE
        trouble = outcome.verdict in HOST_TROUBLE and (outcome.status is None or outcome.verdict == "busy")
        if not lease.settled:
            self._unlease(entry)
            offers = self._settle_page(outcome, entry, host, now)
        else:
            offers = found_in(outcome, entry)
        if trouble:
            hosting.trouble(book, host, lease.released_at, now, outcome.retry_after_s, "host_unavailable")
        elif outcome.verdict == "server_error":
            hosting.server_error(book, host, now)
        elif outcome.status is not None:
            host.row.server_errors = 0
        return offers

    def _settle_page(self, outcome: records.Outcome, entry: Entry, host: Host, now: float) -> list[Offer]:
        book, verdict, key = self.book, outcome.verdict, self.book.key_of(entry)
        reason = outcome.reason or (str(outcome.status) if outcome.status else "")
        entry.returned = 0
        if verdict in DONE or (verdict == "redirect" and outcome.redirect):
            book.settle_done(key, now)
            return found_in(outcome, entry)
        if verdict in FINAL or verdict == "redirect":
            book.settle_failed(key, entry, "bad_redirect" if verdict == "redirect" else verdict, reason, now)
        elif verdict == "blocked_address":
            book.settle_refused(key, entry, verdict, reason, now, leased=True)
        elif verdict == "busy":
            entry.busy += 1
            self._again(key, entry, host, entry.busy > limits.BUSY_MAX, verdict, reason, now)
        else:
            entry.attempt += 1
            given_up = entry.attempt > book.policy.retries
            if verdict == "server_error" and not given_up:
                book.wait(key, entry, now + politeness.backoff(book.policy, entry.attempt, 0.0))
            else:
                self._again(key, entry, host, given_up, verdict, reason, now)
            if given_up and entry.else_url and verdict in UNASKED:
                return [second_offer(entry)]
        return []

    def _again(self, key: bytes, entry: Entry, host: Host, given_up: bool, verdict: str, reason: str, now: float) -> None:
        """Try again behind all that is queued at the host, or give the URL up."""
        if given_up:
            self.book.settle_failed(key, entry, verdict, reason, now)
        else:
            self.book.enqueue(key, entry, host, rows.REQUEUED, rank=now)

    # --- late and foreign outcomes (law 8) ---

    def _late(self, outcome: records.Outcome, line: bytes, now: float) -> list[Offer]:
        book = self.book
        url = split(outcome.url)
        if url is None or outcome.kind not in ("page", "sitemap"):
            bump(book.ledger.lines_refused, "outcome: no such lease")
            return []
        key = url_key(url)
        state = book.known_now([key])[0]
        if state is None or state[:1] not in rows.EVER_LEASED or outcome.verdict == "returned":
            bump(book.ledger.lines_refused, "outcome: never leased" if outcome.verdict != "returned" else "outcome: late return")
            return []
        book.ledger.late += 1
        self._log(outcome, line)
        host = book.host(url.host)
        if outcome.fetched_at is not None:
            end = min(outcome.fetched_at + (outcome.elapsed_s or 0.0), now)
            rest_s = politeness.rest(book.policy, outcome.elapsed_s or 0.0, hosting.crawl_delay(book, outcome.url))
            host.rest_until(end + rest_s, rest_s)
            book.touch(host)
        return self._settle_late(outcome, key, state, host, now)

    def _settle_late(self, outcome: records.Outcome, key: bytes, state: bytes, host: Host, now: float) -> list[Offer]:
        book = self.book
        good = outcome.verdict in DONE or outcome.verdict in FINAL or (outcome.verdict == "redirect" and outcome.redirect)
        if not good:
            return []
        entry = hosting.take_requeued(book, host, state) if state[:1] == rows.REQUEUED else None
        if state[:1] == rows.LEASED:
            lease = book.leases[state[1:].decode()]
            lease.settled, entry = True, lease.entry
            book.put(Table.LEASES, state[1:], rows.pack(lease))
            self._unlease(entry)
        if entry is None:  # settled before: its links are facts all the same
            return found_in(outcome, Entry(outcome.url, depth=max(outcome.depth, 0), hops=max(outcome.hops, 0)))
        return self._settle_page(outcome, entry, host, now)


def second_offer(entry: Entry) -> Offer:
    """Offer a seed's second spelling."""
    assert entry.else_url is not None
    return Offer(entry.else_url, entry.kind, entry.depth, 0, entry.priority, entry.url, entry.seed, entry.seed, tags=entry.tags)


def found_in(outcome: records.Outcome, entry: Entry) -> list[Offer]:
    """Give what an outcome found: its redirect (hops + 1, the same depth) and the links that policy follows."""
    offers = []
    if outcome.redirect and outcome.verdict == "redirect":
        offers.append(
            Offer(
                outcome.redirect,
                entry.kind,
                entry.depth,
                entry.hops + 1,
                entry.priority,
                entry.url,
                seed=entry.seed,
                tags=entry.tags,
            )
        )
    depth = entry.depth + 1
    for link in outcome.links:
        if link.follow:
            kind = "sitemap" if link.kind == "sitemap_index" else "page"
            offers.append(Offer(link.url, kind, depth, link.hops, link.priority, entry.url))
    return offers
