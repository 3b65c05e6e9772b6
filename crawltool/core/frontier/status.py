"""What people and status.json are told about a running crawl: counts and forecasts from the book.

Called by stages/frontier each second. Names are the same in status.json and the manual.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from math import inf
from operator import itemgetter

from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosts import State

LISTED = 20  # hosts named
SURVEYED_PER_S = 1000  # hosts looked at in a second, on average


class Survey:
    """What was seen when all hosts in memory were looked at last. With many of them that is not each second: it would keep a
    crawl busy that only waits (2 us a host)."""

    def __init__(self) -> None:
        self.at, self.again_at = inf, 0.0
        self.told: dict[str, object] = {}

    def of(self, book: Book, now: float) -> dict[str, object]:
        """Give it, looking again when it is time."""
        if now >= self.again_at or now < self.at:
            self.at, self.again_at = now, now + len(book.hosts) / SURVEYED_PER_S
            self.told = survey(book, now)
        return self.told


def survey(book: Book, now: float) -> dict[str, object]:
    """Look at all hosts. `expected_s` is how long the queue takes at their present rests."""
    ready = waiting = held_back = 0
    expected_s = 0.0
    slowest = ""
    for host in book.hosts.values():
        held_back += host.queued if host.full else 0
        if host.queued and host.state is not State.CLOSED:
            at = host.ready_at()
            ready += at <= now
            waiting += at > now
            rest_s = max(book.policy.delay_s, host.row.rest_s)
            length_s = host.queued * rest_s / book.policy.per_host + max(host.row.rest_until - now, 0.0)
            if length_s > expected_s:
                expected_s, slowest = length_s, host.name
    return {
        "hosts_ready": ready,
        "hosts_waiting": waiting,
        "expected_s": round(expected_s, 1),
        "slowest_host": slowest,
        "held_back": {"max_pages_host": held_back} if held_back else {},  # queued, at hosts that had all their pages
        "hosts_resting": resting_hosts(book, now),
        "addresses_resting": resting_addresses(book, now),
    }


def status(book: Book, now: float, seen: Survey) -> dict[str, object]:
    """Give the counts of this crawl, and what is seen of its hosts."""
    ledger = book.ledger
    return {
        "pages": ledger.pages,
        "ok_pages": ledger.ok_pages,
        "bytes": ledger.bytes,
        "exchanges": ledger.exchanges,
        "accepted": ledger.accepted,
        "queued": ledger.queued,
        "leased": ledger.leased,
        "done": ledger.done,
        "failed": ledger.failed,
        "refused": ledger.refused,
        "verdicts": ledger.verdicts,
        "duplicates": ledger.duplicates,
        "out_of_scope": ledger.out_of_scope,
        "lines_refused": ledger.lines_refused,
        "late": ledger.late,
        "leases_out": len(book.leases),
        "hosts_closed": closed_hosts(book),
    } | seen.of(book, now)


def closed_hosts(book: Book) -> dict[str, str]:
    """Name hosts that were given up in this run, and why."""
    return dict(list(book.closed.items())[:LISTED])


def resting_hosts(book: Book, now: float) -> dict[str, float]:
    """Name hosts with a queue that rest after failures, and for how many seconds yet."""
    rests = ((host.name, host.row.rest_until - now) for host in book.hosts.values() if host.queued)
    return _longest(pair for pair in rests if pair[1] > 0)


def resting_addresses(book: Book, now: float) -> dict[str, float]:
    """Name addresses that rest because several of their hosts complained, and for how many seconds yet."""
    rests = ((ip, address.row.rest_until - now) for ip, address in book.addresses.items() if address.row is not None)
    return _longest(pair for pair in rests if pair[1] > 0)


def _longest(rests: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {name: round(rest_s, 1) for name, rest_s in nlargest(LISTED, rests, key=itemgetter(1))}
