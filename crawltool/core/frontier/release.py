"""Which targets leave now (law 5), judged by fresh robots rules.

Called by core/frontier/turn at the end of each turn. Only the heap of addresses, each with its heap of hosts, makes a host
fetchable; a target takes one slot of each and leaves a lease behind.
"""

from __future__ import annotations

import msgspec

from crawltool import limits, records
from crawltool.core.frontier import hosting, rows
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.hosts import Address, Fact, Host, State
from crawltool.core.frontier.rows import Entry, Lease
from crawltool.core.frontier.rulebook import RobotsState
from crawltool.core.frontier.steering import Steering
from crawltool.core.urls import Url, split

RANK_GRAIN_S = 2e-3  # ranks are kept in whole milliseconds
JUDGED_PER_TURN = 5_000  # refusals in one turn; a queue of disallowed URLs must not hold the others up


class Release:
    """Picks targets. `limit` names the crawl-wide limit that was reached, if any."""

    def __init__(self, book: Book, bounds: Bounds, steering: Steering) -> None:
        self.book = book
        self.steering = steering
        self.bounds = bounds
        self.judged = 0
        self.limit: str | None = None

    def targets(self, now: float, room: int) -> list[bytes]:
        """Give the target lines that may leave now, at most `room`; each has its lease in this turn's batch."""
        out: list[bytes] = []
        self.judged = 0
        self.limit = self._limit_reached()
        if self.limit is not None or room <= 0 or self.steering.paused:
            return out
        judged = -1
        while not out and self.limit is None and judged < self.judged < JUDGED_PER_TURN:
            judged = self.judged
            self._ask_addresses(out, now, room)
            self._ask_hosts(out, now, room)
        return out

    def _ask_hosts(self, out: list[bytes], now: float, room: int) -> None:
        while len(out) < room and self.judged < JUDGED_PER_TURN and (picked := self.book.pick()) is not None:
            line = self._from_host(*picked, now)
            if line is None:
                self.judged += 1
                continue
            out.append(line)
            self.limit = self._limit_reached()
            if self.limit is not None:
                break

    def _limit_reached(self) -> str | None:
        ledger, bounds = self.book.ledger, self.bounds
        if bounds.max_pages is not None and ledger.pages + ledger.pages_out >= bounds.max_pages:
            return "max_pages"
        if bounds.max_bytes is not None and ledger.bytes >= bounds.max_bytes:
            return "max_bytes"
        return None

    def _ask_addresses(self, out: list[bytes], now: float, room: int) -> None:
        """Release address targets: they contact no crawled host, so no clock holds them; half the room at most.

        Hosts are made hot by this, so no more than can soon be asked: urgent ones always.
        """
        book = self.book
        most = max(room // 2, 1)
        while len(out) < min(room, most) and self.judged < JUDGED_PER_TURN and book.may_wake():
            name = book.room.next(now)
            if name is None:
                return
            host = book.host(name)
            self.judged += 1
            if host.state is not State.NEW or host.row.rest_until > now:
                continue  # it was cold, and has an address or a rest
            host.meet(Fact.ASKED_ADDRESS)
            out.append(self._lease(host, None, Entry(book.first(host)[1].url, kind="address"), b"", now))

    def _from_host(self, host: Host, place: int, now: float) -> bytes | None:
        """Take what a host may send next; None when that was nothing, and the host has another place now."""
        book = self.book
        if host.row.address_until <= now:
            hosting.stale(book, host, now)
            return None
        if hosting.waits_for_domain(book, host, now):
            return None
        head = book.head(host, rows.URGENT) or book.head(host, place)
        assert head is not None
        if head[1].kind == "robots":
            return self._robots_entry(host, *head, now)
        if head[0][4] != place:
            head = book.head(host, place)
            assert head is not None
        key, entry = head
        url = split(entry.url)
        assert url is not None, entry.url
        if self.steering.bans.active and (line := self.steering.bans.judge(url)) is not None:
            self._refuse(host, key, entry, "banned", line, now)
            return None
        if entry.kind == "page" and self._host_is_full(host):
            host.full = True
            book.schedule(host)
            return None
        return self._judged(host, key, entry, url, now)

    def _host_is_full(self, host: Host) -> bool:
        most = self.book.budgets.get(host.name)
        if most is None and not host.row.typed:
            most = self.bounds.max_pages_host
        return most is not None and host.row.pages + host.leased >= most

    def _judged(self, host: Host, key: bytes, entry: Entry, url: Url, now: float) -> bytes | None:
        """Ask for rules first where they are missing or old; then release or refuse the head."""
        book = self.book
        state = book.rulebook.of(url.authority)
        row = state.row
        hopeless = row is not None and row.run == book.run and row.failures >= limits.HOST_FAILURES_MAX
        if not hopeless and not state.hold(now):
            if state.pending:
                hosting.park(book, host, state)
                return None
            if row is not None and row.availability == "unreachable" and row.run == book.run and now < row.expires_at:
                self._later(host, key, entry, row.expires_at, now)
                return None
            state.pending = True
            robots = Entry(robots_url(url), kind="robots", for_=url.authority, first_seen_at=now)
            return self._lease(host, host.address, robots, b"", now)
        state.is_unused = False
        refusal = refusal_of(state, url, hopeless)
        if refusal is not None:
            self._refuse(host, key, entry, *refusal, now)
            return None
        book.pop(host, key)
        book.ledger.queued -= 1
        book.ledger.leased += 1
        book.ledger.pages_out += entry.kind == "page"
        return self._lease(host, host.address, entry, key, now)

    def _later(self, host: Host, key: bytes, entry: Entry, at: float, now: float) -> None:
        """Let the head wait behind all others for its authority's rules; the host waits when only such heads are left."""
        book = self.book
        book.pop(host, key)
        book.ledger.queued -= 1
        if rows.rank_of(key) >= at - RANK_GRAIN_S:
            host.rest_until(at, at - now)
        book.enqueue(book.key_of(entry), entry, host, rows.REQUEUED if entry.was_leased else rows.QUEUED, rank=at)

    def _refuse(self, host: Host, key: bytes, entry: Entry, reason: str, detail: str, now: float) -> None:
        book = self.book
        book.pop(host, key)
        book.ledger.queued -= 1
        book.settle_refused(book.key_of(entry), entry, reason, detail, now, leased=entry.was_leased)
        book.schedule(host)

    def _robots_entry(self, host: Host, key: bytes, entry: Entry, now: float) -> bytes | None:
        """Release a robots redirect, unless nobody waits for it any more."""
        book = self.book
        book.pop(host, key)
        state, url = book.rulebook.of(entry.for_ or ""), split(entry.url)
        line = self.steering.bans.judge(url) if self.steering.bans.active and url is not None else None
        if line is not None:  # rules that lie at a banned place cannot be had
            hosting.robots_failed(book, entry.for_ or "", f"banned by {line}", now)
            book.schedule(host)
            return None
        if state.hold(now):  # others brought them, or a clock that had been set back caught up with them
            hosting.unpark(book, state)
            book.schedule(host)
            return None
        state.pending = True
        return self._lease(host, host.address, entry, key, now)

    def _lease(self, host: Host, address: Address | None, entry: Entry, key: bytes, now: float) -> bytes:
        """Take the slots, write the lease down, and give the target's line."""
        book, policy = self.book, self.book.policy
        delay_s = hosting.crawl_delay(book, entry.url)
        rest_s = max(policy.delay_s, delay_s, host.row.rest_s if policy.delay_factor > 0 else 0.0)
        lease = Lease(host.name, None, entry, key, now, now + policy.lease_s, rest_s)
        host.leased += 1
        if address is not None:
            book.take_slots(host, lease)
        name = book.lease(lease)  # tells after a crash that the host's earliest slot is taken: its row need not be written
        if entry.kind in ("page", "sitemap"):
            book.set_known(book.key_of(entry), rows.LEASED + name.encode())
        book.schedule(host)
        return records.encode(target_of(name, lease, host))


def refusal_of(state: RobotsState, url: Url, hopeless: bool) -> tuple[str, str] | None:
    """Tell why an authority's rules refuse a URL, as reason and detail; None when they allow it."""
    row = state.row
    assert row is not None
    if hopeless or row.availability == "unreachable":
        return "robots_unreachable", row.reason or ""
    if (row.crawl_delay_s or 0.0) > limits.CRAWL_DELAY_S_MAX:
        return "crawl_delay", f"Crawl-delay {row.crawl_delay_s:g} s"
    if row.availability == "rules":
        allowed, line = state.compiled().judge(url.target)
        return None if allowed else ("robots", line)
    return None


def robots_url(url: Url) -> str:
    """Give where an authority keeps its rules. Source: RFC 9309 section 2.3."""
    found = split(url.authority + "/robots.txt")
    assert found is not None, url
    return found.href


def target_of(name: str, lease: Lease, host: Host) -> records.Target:
    """Give the target record of a lease."""
    entry = lease.entry
    return records.Target(
        url=entry.url,
        lease=name,
        kind=entry.kind,  # type: ignore[arg-type]
        for_=entry.for_ if entry.kind == "robots" else None,
        address=lease.address,
        rest_s=lease.rest_s,
        typed=host.row.typed,
        depth=entry.depth,
        hops=entry.hops,
        attempt=entry.attempt,
        expires_at=lease.expires_at,
        prior=entry.prior,
        tags=msgspec.Raw(entry.tags) if entry.tags is not None else None,
    )


def drain_closing(book: Book, now: float) -> None:
    """Fail the queues of closed hosts, a bounded number of entries a turn."""
    left = hosting.CLOSING_PER_TURN
    for name, host in list(book.closing.items()):
        reason = host.row.closed_for or "host_unavailable"
        while left and host.queued:
            left -= 1
            queue_key, entry = book.first(host)
            book.pop(host, queue_key)
            if entry.kind == "robots":
                hosting.robots_failed(book, entry.for_ or "", "its host is closed", now)
                continue
            book.ledger.queued -= 1
            key = book.key_of(entry)
            if reason in ("robots_unreachable", "blocked_address"):
                book.settle_refused(key, entry, reason, "", now)
            else:
                book.settle_failed(key, entry, reason, "", now)
        if not host.queued:
            del book.closing[name]
