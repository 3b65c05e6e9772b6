"""What an outcome does: the lease ends, the clocks move, the URL is settled or tried again (laws 3, 5, 8).

Called by core/frontier/turn for each outcome line and for each lease that ran out. A fact is applied whoever reports it; what
an outcome found goes back to the caller, to be admitted in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from crawltool import limits, records
from crawltool.core.frontier import hosting, politeness, robotsanswers, rows
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosting import Failure
from crawltool.core.frontier.hosts import Host
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.robotsanswers import UNASKED, authority_of, second_spelling
from crawltool.core.frontier.rows import Entry, Lease, Table
from crawltool.core.urls import Url, split
from crawltool.core.urls import key as url_key

DONE = frozenset(("ok", "not_modified", "too_large", "skipped_type"))
FINAL = frozenset(("gone", "client_error", "payment_required"))
HOST_TROUBLE = frozenset(("unreachable", "timeout", "tls_error"))
COUNT_MAX = 1 << 50  # of a body's bytes: a line may claim any number


class Settling:
    """Applies outcomes to the book."""

    def __init__(
        self,
        book: Book,
        unmet: Callable[[Sequence[records.Link]], list[records.Link]],
        hear: Callable[[records.Outcome, Entry, Host, list[Entry]], None],
    ) -> None:
        """unmet: gives those of many links that are followed and worth a look.

        hear: is told of each page that was settled, and what was found on it.
        """
        self.book = book
        self.unmet = unmet
        self.hear = hear
        self.by_kind: dict[str, Callable[[records.Outcome, Lease, Host, float], list[Entry]]] = {
            "address": self._address,
            "robots": partial(robotsanswers.settle, book),
            "sitemap": self._page,
            "page": self._page,
        }

    def outcome(self, outcome: records.Outcome, line: bytes, now: float) -> list[Entry]:
        """Apply one outcome; the result is what it found."""
        book = self.book
        lease = book.leases.get(outcome.lease)
        if lease is None or lease.entry.url != outcome.url or lease.entry.kind != outcome.kind:
            return self._late(outcome, line, now)
        book.end_lease(outcome.lease)
        self._log(outcome, line, lease.entry.via)
        host = self._free(lease, outcome, now)
        if outcome.verdict == "returned":
            self._returned(outcome, lease, host, now)
            return []
        host.row.unanswered = 0
        found = self.by_kind[outcome.kind](outcome, lease, host, now)
        book.schedule(host)
        return found

    def expire(self, now: float) -> None:
        """End the leases that ran out: the URL is queued again, the host gets its whole rest."""
        book = self.book
        while (first := book.next_expiry()) is not None and first[0] <= now:
            lease = book.end_lease(first[1])
            host = hosting.give_slots_rested(book, lease, now)
            self._lost(lease, host, now)
            book.schedule(host)

    # --- what every outcome does ---

    def _log(self, outcome: records.Outcome, line: bytes, via: str | None) -> None:
        book = self.book
        asked = outcome.fetched_at is not None
        settles = outcome.verdict in DONE or bool(outcome.redirect)  # dump tells of a settled URL by its line
        if asked or (outcome.verdict != "ok" if outcome.kind == "address" else settles):
            book.seq += 1
            extra = {"seq": book.seq} if via is None else {"seq": book.seq, "via": via}
            book.put(Table.OUTBOX, book.seq.to_bytes(8, "big"), records.splice(line, **extra))
        if asked:
            book.ledger.exchanges += 1
            book.ledger.bytes += min(max(outcome.body_bytes or 0, 0), COUNT_MAX)

    def _free(self, lease: Lease, outcome: records.Outcome, now: float) -> Host:
        """Give the slots back: with the times they had when nobody was asked, else with the host's rest."""
        book = self.book
        if outcome.fetched_at is None and (outcome.verdict == "returned" or outcome.kind == "address"):
            return hosting.give_slots_unasked(book, lease)
        end = politeness.exchange_end(outcome.fetched_at, outcome.elapsed_s, lease.released_at, now)
        rest_s = politeness.rest(book.policy, outcome.elapsed_s or 0.0, hosting.crawl_delay(book, lease.entry.url))
        host = hosting.give_slots(book, lease, end, rest_s)
        failed = outcome.status is None or outcome.verdict in ("busy", "server_error")
        host.row.conduct.exchange(outcome.elapsed_s or 0.0, host.row.rest_s, failed=failed)
        if outcome.status is not None:
            host.row.answers_at = authority_of(lease.entry.url)
        elif outcome.verdict in ("unreachable", "timeout"):
            hosting.rotate_address(book, host)
        return host

    def _returned(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> None:
        """The target was not started: no attempt, no clock; but not offered again at once."""
        entry = lease.entry
        entry.returned += 1
        if entry.kind == "address":
            hosting.not_resolved(self.book, host, hosting.unanswered(self.book, host, now))
        elif entry.kind == "robots":
            again_at = hosting.unanswered(self.book, host, now)
            host.rest_until(again_at, again_at - now)
            robotsanswers.ask_again(self.book, entry)
        elif not lease.settled:
            self._unlease(entry)
            key = self.book.key_of(entry)
            if entry.returned > limits.RETURNED_MAX:
                self.book.settle_failed(key, entry, "returned", outcome.reason or "", now)
            else:
                self.book.wait(key, entry, now + politeness.returned_wait(entry.returned))
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
            hosting.not_resolved(self.book, host, hosting.unanswered(self.book, host, now))
        elif entry.kind == "robots":
            hosting.unanswered(self.book, host, now)
            robotsanswers.ask_again(self.book, entry)
        elif not lease.settled:
            self._unlease(entry)
            key = self.book.key_of(entry)
            if entry.lost > limits.LOST_MAX:
                self.book.settle_failed(key, entry, "lost", f"{entry.lost} leases ran out", now)
            else:
                self.book.enqueue(key, entry, host, rows.REQUEUED)

    # --- kind address ---

    def _address(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Entry]:
        reason = outcome.reason or ""
        if outcome.verdict == "ok" and outcome.addresses:
            ttl_s = min(max(outcome.ttl_s or limits.ADDRESS_TTL_S, limits.ADDRESS_TTL_S_MIN), limits.ADDRESS_TTL_S_MAX)
            hosting.resolved(self.book, host, outcome.addresses, now + ttl_s)
        elif outcome.verdict == "blocked_address":
            hosting.close(self.book, host, "blocked_address")
        elif outcome.verdict == "dns_failure" and reason.startswith("no_such_name"):
            hosting.close(self.book, host, "dns_failure")
        else:
            hosting.trouble(self.book, host, Failure(lease.released_at, now, "host_unavailable"))
            hosting.not_resolved(self.book, host, host.row.rest_until)
        return []

    # --- kinds page and sitemap ---

    def _page(self, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Entry]:
        entry = lease.entry
        self._count(outcome, host)
        if not lease.settled:
            self._unlease(entry)
            found = self._settle_page(outcome, entry, host, now)
            if outcome.status is not None:
                self.hear(outcome, entry, host, found)
        else:
            found = self._found(outcome, entry)
        self._health(outcome, host, lease.released_at, now, lease.address)
        return found

    def _count(self, outcome: records.Outcome, host: Host) -> None:
        """Count an answer: budgets are of page exchanges that got a status."""
        ledger = self.book.ledger
        bump(ledger.verdicts, outcome.verdict)
        if outcome.kind == "page" and outcome.status is not None:
            ledger.pages += 1
            host.row.pages += 1
            ledger.ok_pages += outcome.verdict in DONE

    def _health(self, outcome: records.Outcome, host: Host, released_at: float, now: float, ip: str | None) -> None:
        """Learn from an exchange how its host, and the address where it was asked, are."""
        failure = Failure(released_at, now, "host_unavailable", outcome.retry_after_s, ip)
        if outcome.verdict == "busy":
            hosting.complaint(self.book, host, failure)
        elif outcome.verdict in HOST_TROUBLE and outcome.status is None:
            hosting.trouble(self.book, host, failure)
        elif outcome.status is not None:
            hosting.answered(host)
            if outcome.verdict == "server_error":
                hosting.server_error(self.book, host, released_at, now)
            else:
                host.row.server_errors = host.row.troubles = 0

    def _settle_page(self, outcome: records.Outcome, entry: Entry, host: Host, now: float) -> list[Entry]:
        book, verdict, key = self.book, outcome.verdict, self.book.key_of(entry)
        reason = outcome.reason or (str(outcome.status) if outcome.status else "")
        entry.returned = 0
        if verdict in DONE or (verdict == "redirect" and outcome.redirect):
            book.settle_done(key)
            return self._found(outcome, entry)
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
                return [second_spelling(entry)]
        return []

    def _again(self, key: bytes, entry: Entry, host: Host, given_up: bool, verdict: str, reason: str, now: float) -> None:
        """Try again behind all that is queued at the host, or give the URL up."""
        if given_up:
            self.book.settle_failed(key, entry, verdict, reason, now)
        else:
            self.book.enqueue(key, entry, host, rows.REQUEUED, rank=now)

    def _found(self, outcome: records.Outcome, entry: Entry) -> list[Entry]:
        """Give what an outcome found: its redirect (hops + 1, the same depth) and the links that policy follows."""
        found = []
        if outcome.redirect and outcome.verdict == "redirect":
            same = (entry.priority, entry.seed)
            found.append(Entry(outcome.redirect, entry.kind, entry.depth, entry.hops + 1, entry.url, 0.0, *same, tags=entry.tags))
        depth, via = entry.depth + 1, entry.url
        for link in self.unmet(outcome.links):
            kind = "sitemap" if link.kind == "sitemap_index" else "page"
            found.append(Entry(link.url, kind, depth, link.hops, priority=link.priority, via=via))
        return found

    # --- late and foreign outcomes (law 8) ---

    def _late(self, outcome: records.Outcome, line: bytes, now: float) -> list[Entry]:
        """Apply what is told of a lease that is not out any more. It frees nothing and shortens nothing."""
        book = self.book
        url = split(outcome.url)
        key = url_key(url) if url is not None else b""
        state = book.known_now([key])[0]
        why_not = self._not_ours(outcome, url, state)
        if why_not is not None or url is None:
            bump(book.ledger.lines_refused, f"outcome: {why_not}")
            return []
        book.ledger.late += 1
        self._log(outcome, line, self._via_of(state))
        host = book.host(url.host)
        book.touch(host)
        self._rest_late(outcome, host, now)
        found = self._settle_late(outcome, key, state, host, now) if outcome.kind != "robots" and state is not None else []
        book.schedule(host)
        return found

    def _via_of(self, state: bytes | None) -> str | None:
        """Tell where a URL that is not settled yet was found."""
        place = state[1:] if state is not None else b""
        if state is not None and state[:1] == rows.LEASED:
            return self.book.leases[place.decode()].entry.via
        if place in self.book.waiting_entries:
            return self.book.waiting_entries[place].via
        raw = self.book.port.get(Table.QUEUE, place) if len(place) == rows.QUEUE_KEY_BYTES else None
        return rows.entry_of(raw).via if raw is not None else None

    def _not_ours(self, outcome: records.Outcome, url: Url | None, state: bytes | None) -> str | None:
        """Tell why nothing may come of an outcome without a lease, or None."""
        if url is None or outcome.kind not in ("page", "sitemap", "robots"):
            return "no such lease"
        if outcome.kind == "robots":
            ours = self.book.is_host_known(url.host)
        else:
            ours = state is not None and state[:1] in rows.EVER_LEASED
        if not ours:
            return "never leased"
        return "late return" if outcome.fetched_at is None and outcome.verdict == "returned" else None

    def _rest_late(self, outcome: records.Outcome, host: Host, now: float) -> None:
        """An exchange that is told late may lengthen its host's rest (law 8)."""
        if outcome.fetched_at is None:
            return
        end = min(outcome.fetched_at + max(outcome.elapsed_s or 0.0, 0.0), now)
        rest_s = politeness.rest(self.book.policy, outcome.elapsed_s or 0.0, hosting.crawl_delay(self.book, outcome.url))
        host.rest_until(end + rest_s, rest_s)
        if outcome.verdict in HOST_TROUBLE or outcome.verdict == "busy":
            ip = host.address.ip if host.address is not None else None
            self._health(outcome, host, outcome.fetched_at, now, ip)

    def _settle_late(self, outcome: records.Outcome, key: bytes, state: bytes, host: Host, now: float) -> list[Entry]:
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
            return self._found(outcome, Entry(outcome.url, depth=max(outcome.depth, 0), hops=max(outcome.hops, 0)))
        self._count(outcome, host)
        return self._settle_page(outcome, entry, host, now)
