"""What happens to hosts: slots given back, addresses found, failures counted, hosts closed.

Called by core/settling (facts that came), core/release (facts of time) and core/frontier (start). All moves of a host's
state go through the table in core/hosts.
"""

from __future__ import annotations

from crawltool import limits
from crawltool.core import politeness, rows
from crawltool.core.book import Book, RobotsState
from crawltool.core.hosts import Fact, Host, State
from crawltool.core.rows import Entry, Lease, RobotsRow, Table
from crawltool.core.urls import split

SERVER_ERRORS_BEFORE_REST = 5  # 5xx in a row: one broken page is not a broken host
CLOSING_PER_TURN = 5_000  # entries failed in one turn when a host is closed


def give_slots(book: Book, lease: Lease, end: float, rest_s: float) -> Host:
    """Give a lease's slots back after an exchange that ended at `end`; the result is its host, which rests so long."""
    host, policy = book.host(lease.host), book.policy
    book.give_slots(host, lease, end + rest_s, end + policy.address_delay_s, end + policy.delay_s)
    if lease.entry.kind != "address":
        others_s = max(host.slots.latest() - book.now, 0.0) if policy.per_host > 1 else 0.0
        host.row.rest_s = max(rest_s, others_s)
    return host


def give_slots_unasked(book: Book, lease: Lease) -> Host:
    """Give the slots of a lease back with the times they had: nobody was asked."""
    host = book.host(lease.host)
    book.give_slots(host, lease, lease.slot_at, lease.ip_slot_at, lease.domain_slot_at)
    return host


def give_slots_rested(book: Book, lease: Lease, now: float) -> Host:
    """Give the slots of a lease back whose exchange nobody tells of: it may end just now."""
    return give_slots(
        book, lease, now, max(lease.rest_s, book.policy.delay_s)
    )  # the lease may be of a run with a shorter --delay


def waits_for_domain(book: Book, host: Host, now: float) -> bool:
    """Tell whether the host's registrable domain is busy; then the host has a turn of its own (--per-domain)."""
    domain = book.domain_of(host)
    if domain is None or domain.slots.ready_at() <= now:
        return False
    host.not_before = domain.turn(now, book.policy.delay_s)
    book.schedule(host)
    return True


def crawl_delay(book: Book, url: str) -> float:
    """Give the Crawl-delay of a URL's authority, or what the operator says if that is more.

    One that is too long refuses the host; it is no reason to rest for years.
    """
    parts = split(url)
    row = book.robots_of(parts.authority).row if parts is not None else None
    asked_s = min(row.crawl_delay_s or 0.0, float(limits.CRAWL_DELAY_S_MAX)) if row is not None else 0.0
    return max(asked_s, book.delays.get(parts.host, 0.0)) if book.delays and parts is not None else asked_s


def spread_of(name: str, step: int) -> float:
    """Give a number in 0…1 that differs between hosts: jitter without randomness."""
    return (sum(name.encode()) * 7919 + step * 104_729) % 1000 / 1000


def trouble(book: Book, host: Host, released_at: float, now: float, retry_after_s: float | None, reason: str) -> None:
    """Count a failure of the whole host and let it rest; the fifth in a row closes it.

    Exchanges that were in the air when the host failed tell the same failure again: they do not count.
    """
    row = host.row
    if released_at >= row.failed_at:
        row.streak += 1
        row.failed_at = now
    book.touch(host)
    is_hopeless = row.streak >= limits.HOST_FAILURES_MAX
    if retry_after_s is not None or not is_hopeless:  # a closed host is asked at once by the next run, unless it said when
        length_s = politeness.busy_rest(book.policy, retry_after_s, row.streak, spread_of(host.name, row.streak))
        host.rest_until(now + length_s, length_s)
    if is_hopeless:
        close(book, host, reason)


def server_error(book: Book, host: Host, now: float) -> None:
    """Count a 5xx; a row of them is a sick host, which rests on the ladder."""
    host.row.server_errors += 1
    step = host.row.server_errors - SERVER_ERRORS_BEFORE_REST + 1
    if step > 0:
        length_s = politeness.backoff(book.policy, step, spread_of(host.name, step))
        host.rest_until(now + length_s, length_s)


def resolved(book: Book, host: Host, addresses: list[str], until: float) -> None:
    """Addresses came: the current one stays if it is among them, else the first."""
    current = host.address.ip if host.address is not None else None
    host.row.addresses = addresses[: limits.ADDRESSES_OF_A_HOST_MAX]
    host.row.address_until = until
    host.meet(Fact.RESOLVED)
    if host.state is State.OPEN:
        book.attach(host, current if current in host.row.addresses else host.row.addresses[0])


def not_resolved(book: Book, host: Host, again_at: float) -> None:
    """No addresses yet: ask again at that time."""
    host.meet(Fact.NOT_RESOLVED)
    if host.state is State.NEW:
        book.resolve_at(host, again_at)


def rotate_address(book: Book, host: Host) -> None:
    """A connect failed: the host's next address is tried next time."""
    addresses = host.row.addresses
    if len(addresses) > 1 and host.state is State.OPEN:
        host.row.addresses = [*addresses[1:], addresses[0]]
        book.attach(host, host.row.addresses[0])


def stale(book: Book, host: Host, now: float) -> None:
    """The addresses are too old: the host asks for new ones before it is asked again."""
    host.meet(Fact.STALE)
    book.touch(host)
    book.resolve_at(host, now)
    book.schedule(host)


def close(book: Book, host: Host, reason: str) -> None:
    """Give a host up until the next run; its queue fails with that reason."""
    host.meet(Fact.HOPELESS)
    host.row.closed_for = host.row.closed_for or reason
    host.row.closed_run = book.run
    book.note_closed(host)
    book.touch(host)
    if host.queued:
        book.closing[host.name] = host
    book.schedule(host)


def unanswered(book: Book, host: Host, now: float) -> float:
    """Count an address or robots target that came to nothing; the result is when to try again.

    No host's fault, but a crawl must end (law 11): a fetch that gives all back makes no page.
    """
    host.row.unanswered += 1
    book.touch(host)
    if host.row.unanswered > limits.RETURNED_MAX:
        close(book, host, "host_unavailable")
    return now + politeness.returned_wait(host.row.unanswered)


def unpark(book: Book, state: RobotsState) -> None:
    """The rules came, or will be asked for again: the hosts that waited for them may go on."""
    state.pending = False
    for name in state.waiting:
        host = book.host(name)
        host.parked = False
        book.schedule(host)
    state.waiting.clear()


def park(book: Book, host: Host, state: RobotsState) -> None:
    """Let a host wait for rules that are under way."""
    host.parked = True
    state.waiting[host.name] = None
    book.schedule(host)


def robots_known(book: Book, authority: str, row: RobotsRow) -> None:
    """An authority's rules came: who waited for them goes on."""
    book.save_robots(authority, row)
    unpark(book, book.robots_of(authority))


def robots_failed(book: Book, authority: str, reason: str, now: float) -> None:
    """No rules: the authority is disallowed, and asked again when its host has rested on the ladder; the fifth time in a row is
    final for this run. Source: RFC 9309 section 2.3.1.4. Where another authority of the host answers, only this one waits.

    Rules that still hold (two fetches of them crossed) stay.
    """
    state = book.robots_of(authority)
    old = state.row
    if state.hold(now):
        unpark(book, state)
        return
    failures = (old.failures if old is not None and old.run == book.run else 0) + 1
    url = split(authority)
    assert url is not None, authority
    host = book.host(url.host)
    length_s = politeness.backoff(book.policy, failures, spread_of(host.name, failures))
    alone = answers_elsewhere(host, authority)
    again_at = now + length_s if alone else now
    robots_known(book, authority, RobotsRow("unreachable", now, again_at, [], None, failures, book.run, reason))
    if failures < limits.HOST_FAILURES_MAX and not alone:
        host.rest_until(now + length_s, length_s)
        book.touch(host)
    book.schedule(host)


def answers_elsewhere(host: Host, authority: str) -> bool:
    """Tell whether another authority of the host answered last: then a dead port is not a dead host."""
    return host.row.answers_at not in ("", authority)


def take_requeued(book: Book, host: Host, state: bytes) -> Entry | None:
    """Take a URL that waits for another try out of its queue: a late outcome brought its answer."""
    place = state[1:]
    if place in book.waiting_entries:
        return book.stop_waiting(place)
    raw = host.queue(place[4]).find(place) or book.port.get(Table.QUEUE, place)
    if raw is None:
        return None
    book.drop_queued(host, place)
    book.ledger.queued -= 1
    return rows.entry_of(raw)
