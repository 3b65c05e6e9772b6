"""What people and status.json are told about a running crawl: counts and forecasts from the book.

Called by stages/frontier each second. Names are the same in status.json and the manual.
"""

from __future__ import annotations

from crawltool.core.book import Book
from crawltool.core.hosts import State

LISTED = 20  # hosts named


def status(book: Book, now: float) -> dict[str, object]:
    """Give the counts of this crawl. `expected_s` is how long the queue takes at the hosts' present rests."""
    ledger = book.ledger
    ready = waiting = 0
    expected_s = 0.0
    slowest = ""
    for host in book.hosts.values():
        if host.queued and host.state is not State.CLOSED:
            at = host.ready_at()
            ready += at <= now
            waiting += at > now
            rest_s = max(book.policy.delay_s, host.row.rest_s)
            length_s = host.queued * rest_s / book.policy.per_host + max(host.row.rest_until - now, 0.0)
            if length_s > expected_s:
                expected_s, slowest = length_s, host.name
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
        "hosts_ready": ready,
        "hosts_waiting": waiting,
        "expected_s": round(expected_s, 1),
        "slowest_host": slowest,
        "hosts_closed": closed_hosts(book),
        "hosts_resting": resting_hosts(book, now),
    }


def closed_hosts(book: Book) -> dict[str, str]:
    """Name hosts that were given up in this run, and why."""
    return dict(list(book.closed.items())[:LISTED])


def resting_hosts(book: Book, now: float) -> dict[str, float]:
    """Name hosts with a queue that rest after failures, and for how many seconds yet."""
    found = {h.name: round(h.row.rest_until - now, 1) for h in book.hosts.values() if h.queued and h.row.rest_until > now}
    return dict(sorted(found.items(), key=lambda pair: -pair[1])[:LISTED])
