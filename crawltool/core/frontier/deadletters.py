"""What does the operator do to single URLs: hasten, refuse, queue again, forget?

Each function leaves the counters right (law 6) and touches no clock of a host: the operator may change what is asked, never how
soon a host is asked again (law 5). Called by core/frontier/steering and core/frontier/jobs.
"""

from __future__ import annotations

from math import inf

from crawltool.core.frontier import hosting, rows
from crawltool.core.frontier.admission import Admission
from crawltool.core.frontier.bans import Bans
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosts import Fact, Host, State, is_literal
from crawltool.core.frontier.rows import RobotsRow, Settled, Table
from crawltool.core.urls import Url, split

BANNED = "banned"
_DEAD = (rows.FAILED, rows.REFUSED, rows.DROPPED)
_WAITS = (rows.QUEUED, rows.REQUEUED)


def hasten(book: Book, key: bytes, url: Url, state: bytes, priority: float) -> str:
    """Put a known URL before all others of its host; the result says what was done."""
    word = state[:1]
    if word in _WAITS:
        entry = hosting.take_requeued(book, book.host(url.host), state)
        assert entry is not None, url
        entry.priority = max(entry.priority, priority)
        book.enqueue(key, entry, book.host(url.host), word)
        return "queued before all others of its host"
    if word in _DEAD:
        settled = book.settled(state[1:].decode(), key)
        settled.entry.priority = max(settled.entry.priority, priority)
        _queue_again(book, key, state, settled, url)
        return f"queued again (was {settled.state}: {settled.reason})"
    return "is being fetched" if word == rows.LEASED else "is done already"


def requeue(book: Book, admission: Admission, bans: Bans, key: bytes, state: bytes | None) -> str:
    """Queue one dead letter again; the result says what was done."""
    if state is None or state[:1] not in _DEAD:
        return f"is {rows.STATE_WORDS[state[:1]]}, no dead letter" if state is not None else "is not known"
    settled = book.settled(state[1:].decode(), key)
    if revive(book, admission, bans, b"?" + key, settled, "", ""):
        return f"queued again (was {settled.state}: {settled.reason})"
    return f"not queued: {settled.reason} still holds"


def revive(
    book: Book, admission: Admission, bans: Bans, place: bytes, settled: Settled, host_name: str, reason: str
) -> bool | None:
    """Queue a settled URL again if it is of that host and reason ('': of any). place: its SETTLED key.

    None: it is not meant. False: a limit or a ban keeps it out all the same.
    """
    url, key = split(settled.entry.url), place[1:]
    if url is None or (host_name and url.host != host_name) or (reason and settled.reason != reason):
        return None
    state = book.known_now([key])[0]
    if state is None or state[:1] not in _DEAD or state[1:].decode() != settled.reason:
        return None  # this turn changed it
    is_limit = settled.reason in rows.LIMIT_REASONS and admission.limit(settled.entry, url) is not None
    if is_limit or bans.judge(url) is not None:
        return False
    _queue_again(book, key, state, settled, url)
    return True


def _queue_again(book: Book, key: bytes, state: bytes, settled: Settled, url: Url) -> None:
    entry, host = settled.entry, book.host(url.host)
    reopen(book, host)
    if settled.reason == "robots_unreachable":
        ask_robots_again(book, url.authority)
    book.unsettle(key, settled)
    entry.attempt = entry.lost = entry.returned = entry.busy = 0
    book.enqueue(key, entry, host, rows.REQUEUED if state[:1] in rows.EVER_LEASED else rows.QUEUED)


def reopen(book: Book, host: Host) -> None:
    """Give a closed host another chance before the next run does; its rests stay."""
    if host.state is not State.CLOSED:
        return
    host.meet(Fact.REVIVED)
    host.row.streak, host.row.closed_for, host.row.address_until = 0, None, 0.0
    host.row.unanswered = 0
    book.closing.pop(host.name, None)
    book.closed.pop(host.name, None)
    if is_literal(host.name):
        hosting.resolved(book, host, [host.name.strip("[]")], inf)
    elif host.queued:
        book.resolve_at(host, host.row.rest_until)
    book.touch(host)


def ask_robots_again(book: Book, authority: str) -> None:
    """Forget that an authority's rules could not be had: they are asked for before its next page."""
    row = book.rulebook.of(authority).row
    if row is not None and row.availability == "unreachable" and not book.rulebook.of(authority).pending:
        book.rulebook.save(authority, RobotsRow("unreachable", row.fetched_at, book.now, run=book.run, reason=row.reason))


def refuse_banned(book: Book, bans: Bans, place: bytes, value: bytes, now: float) -> bool:
    """Refuse a queued URL that is banned. place and value: its QUEUE row."""
    entry = rows.entry_of(value)
    url = split(entry.url)
    line = bans.judge(url) if url is not None and entry.kind != "robots" else None
    if url is None or line is None:
        return False
    key = book.key_of(entry)
    state = book.known_now([key])[0]
    if state is None or state[:1] not in _WAITS or state[1:] != place:
        return False  # this turn took it
    host = book.host(url.host)
    taken = hosting.take_requeued(book, host, state)
    assert taken is not None, url
    book.settle_refused(key, taken, BANNED, line, now, leased=state[:1] == rows.REQUEUED)
    book.schedule(host)
    return True


# --- forgetting ---


def forget(book: Book, key: bytes, host_name: str) -> bool:
    """Remove a URL, whatever its state. A lease that is out stays out for its host only."""
    state = book.known_now([key])[0]
    if state is None:
        return False
    word, rest = state[:1], state[1:]
    if word in _WAITS:
        taken = hosting.take_requeued(book, book.host(host_name), state)
        assert taken is not None, host_name
    elif word in _DEAD:
        book.unsettle(key, book.settled(rest.decode(), key))
    elif word == rows.LEASED:
        lease = book.leases[rest.decode()]
        lease.settled = True
        book.put(Table.LEASES, rest, rows.pack(lease))
        book.ledger.leased -= 1
        book.ledger.pages_out -= lease.entry.kind == "page"
    else:
        book.ledger.done -= 1
    book.ledger.accepted -= 1
    book.unknow(key)
    return True


def forget_queued(book: Book, place: bytes, value: bytes) -> bool:
    """Remove a URL by its QUEUE row."""
    entry = rows.entry_of(value)
    url = split(entry.url)
    if entry.kind == "robots" or url is None:
        return False
    key = book.key_of(entry)
    state = book.known_now([key])[0]
    return state is not None and state[1:] == place and forget(book, key, url.host)


def forget_settled(book: Book, host_name: str, place: bytes, value: bytes) -> bool:
    """Remove a URL of a host by its SETTLED row."""
    url = split(rows.settled_of(value).entry.url)
    return url is not None and url.host == host_name and forget(book, place[1:], host_name)


def forget_held(book: Book, host_name: str) -> int:
    """Remove the URLs of a host that are out or wait for another try; the result counts them."""
    entries = [lease.entry for lease in book.leases.values() if lease.host == host_name and not lease.settled]
    entries += list(book.waiting_entries.values())
    gone = 0
    for entry in entries:
        url = split(entry.url)
        if url is not None and url.host == host_name and entry.kind in ("page", "sitemap"):
            gone += forget(book, book.key_of(entry), host_name)
    return gone
