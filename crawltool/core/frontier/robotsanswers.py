"""What an answer to /robots.txt does: rules for an authority, a redirect to follow, or a host that must rest.

Called by core/frontier/settling for outcomes of kind robots. The law: an authority without an answer is disallowed, one that has
no rules allows all (RFC 9309 section 2.3.1); a redirect is a new target, exempt from scope and rules, never from politeness.
"""

from __future__ import annotations

from crawltool import limits, records
from crawltool.core.frontier import hosting, politeness, rows
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosting import Failure
from crawltool.core.frontier.hosts import Host
from crawltool.core.frontier.rows import Entry, Lease, RobotsRow
from crawltool.core.urls import split
from crawltool.core.verdicts import availability

ROBOTS_RANK = -1e10  # seconds: a robots target goes before every page
UNASKED = frozenset(("unreachable", "timeout", "tls_error", "dns_failure"))  # a seed's second spelling is tried


def settle(book: Book, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Entry]:
    """Apply the outcome of a robots target; the result is what it found: sitemaps, or a seed's second spelling."""
    authority = lease.entry.for_
    assert authority is not None
    if outcome.verdict == "redirect":
        hosting.answered(host)
        _redirect(book, outcome, lease, authority, now)
        return []
    kind = availability(outcome.verdict, outcome.status)
    if kind == "unreachable":
        return _unreachable(book, outcome, lease, host, now)
    hosting.answered(host)
    host.row.troubles = 0
    found, fetched_at = outcome.robots or records.Robots(), fetched(outcome, now)
    expires_at = politeness.robots_expiry(book.policy, fetched_at, found.max_age_s)
    rules = found.rules if kind == "rules" else []
    row = RobotsRow(kind, fetched_at, expires_at, rules, found.crawl_delay_s, 0, book.run)
    hosting.robots_known(book, authority, row)
    _crawl_delay(book, authority, found.crawl_delay_s, now)
    sitemaps = found.sitemaps if kind == "rules" else []
    return [Entry(url, kind="sitemap", via=lease.entry.url, for_=authority) for url in sitemaps[: limits.SITEMAPS_MAX]]


def ask_again(book: Book, entry: Entry) -> None:
    """The robots target came to nothing: the next release asks anew."""
    if entry.for_ is not None:
        hosting.unpark(book, book.rulebook.of(entry.for_))


def _unreachable(book: Book, outcome: records.Outcome, lease: Lease, host: Host, now: float) -> list[Entry]:
    """No rules came: the host that was asked is in trouble, and the authority is disallowed until it is asked again."""
    authority, reason = lease.entry.for_, f"{outcome.verdict} {outcome.reason or outcome.status or ''}".strip()
    assert authority is not None
    if outcome.verdict in UNASKED and (second := _second_spelling(book, host, authority, outcome, now)):
        return second
    hosting.robots_failed(book, authority, reason, now)
    failure = Failure(lease.released_at, now, "robots_unreachable", outcome.retry_after_s, lease.address)
    if outcome.verdict == "blocked_address":
        hosting.close(book, host, "blocked_address")
    elif outcome.verdict == "busy":
        hosting.complaint(book, host, failure)
    elif outcome.status is not None or not hosting.answers_elsewhere(host, authority_of(lease.entry.url)):
        hosting.trouble(book, host, failure)
    return []


def _crawl_delay(book: Book, authority: str, crawl_delay_s: float | None, now: float) -> None:
    """Crawl-delay counts from the robots.txt fetch on, for all slots of the host whose rules these are."""
    url = split(authority)
    if crawl_delay_s and crawl_delay_s <= limits.CRAWL_DELAY_S_MAX and url is not None:
        host = book.host(url.host)
        host.rest_until(now + crawl_delay_s, crawl_delay_s)
        book.touch(host)
        book.schedule(host)


def _redirect(book: Book, outcome: records.Outcome, lease: Lease, authority: str, now: float) -> None:
    """A robots redirect is a new target at its new host."""
    hops = lease.entry.hops + 1
    url = split(outcome.redirect) if outcome.redirect else None
    if url is None:
        hosting.robots_failed(book, authority, outcome.reason or "redirect without a usable Location", now)
    elif hops > limits.ROBOTS_HOPS_MAX:
        # RFC 9309 section 2.3.1.2: after five redirects the file may be taken as unavailable.
        at = fetched(outcome, now)
        expires_at = politeness.robots_expiry(book.policy, at, None)
        row = RobotsRow("allow_all", at, expires_at, run=book.run, reason="too many redirects")
        hosting.robots_known(book, authority, row)
    else:
        entry = Entry(url.href, kind="robots", hops=hops, for_=authority, first_seen_at=now, via=outcome.url)
        book.serial += 1
        target_host = book.host(url.host)
        book.push(target_host, rows.queue_key(target_host.row.number, rows.URGENT, ROBOTS_RANK, book.serial), entry)


def _second_spelling(book: Book, host: Host, authority: str, outcome: records.Outcome, now: float) -> list[Entry]:
    """Seeds that name a second spelling (https, then http) are not waited for: the first one failed."""
    found = []
    while host.queued and (head := book.first(host))[1].else_url:
        url = split(head[1].url)
        if url is None or url.authority != authority:
            break
        queue_key, entry = head
        book.pop(host, queue_key)
        book.ledger.queued -= 1
        book.settle_failed(book.key_of(entry), entry, outcome.verdict, outcome.reason or "", now)
        found.append(second_spelling(entry))
    if found:
        ask_again(book, Entry("", for_=authority))
    return found


def second_spelling(entry: Entry) -> Entry:
    """Give a seed's second spelling."""
    assert entry.else_url is not None
    return Entry(
        entry.else_url,
        entry.kind,
        entry.depth,
        seed=entry.seed,
        priority=entry.priority,
        via=entry.url,
        tags=entry.tags,
        typed=entry.typed,
    )


def fetched(outcome: records.Outcome, now: float) -> float:
    """Tell when an exchange began; a confused clock does not make what it brought younger than it is."""
    return outcome.fetched_at if outcome.fetched_at is not None and outcome.fetched_at <= now else now


def authority_of(href: str) -> str:
    """Give the authority of a target's URL."""
    url = split(href)
    assert url is not None, href
    return url.authority
