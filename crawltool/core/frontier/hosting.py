"""What happens to hosts: slots given back, addresses found, failures counted, hosts closed.

Called by core/frontier/settling (facts that came), core/frontier/release (facts of time) and core/frontier/turn (start).
All moves of a host's state go through the table in core/frontier/hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawltool import limits
from crawltool.core.frontier import politeness, rows
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosts import Fact, Host, State
from crawltool.core.frontier.reputation import reputation
from crawltool.core.frontier.rows import Entry, HostRow, Lease, RobotsRow, Table
from crawltool.core.frontier.rulebook import RobotsState
from crawltool.core.urls import split

SERVER_ERRORS_BEFORE_REST = 5  # 5xx in a row: one broken page is not a broken host
CLOSING_PER_TURN = 5_000  # entries failed in one turn when a host is closed


def give_slots(book: Book, lease: Lease, end: float, rest_s: float) -> Host:
    """Give a lease's slots back after an exchange that ended at `end`; the result is its host, which rests so long."""
    host, policy = book.host(lease.host), book.policy
    rest_s = paced(book, host, rest_s)
    book.give_slots(host, lease, end + rest_s, end + policy.address_delay_s, end + policy.delay_s)
    if lease.entry.kind != "address":
        others_s = max(host.slots.latest() - book.now, 0.0) if policy.per_host > 1 else 0.0
        host.row.rest_s = max(rest_s, others_s)
    return host


def paced(book: Book, host: Host, rest_s: float) -> float:
    """Lengthen a rest by the host's reputation: one of 0.1 is asked at a tenth of the pace.

    The operator's number goes before the formula; a host he typed keeps its pace.
    """
    factor = book.reputations.get(host.name)
    if factor is None:
        if host.row.typed:
            return rest_s
        factor = reputation(host.row.conduct)
    return max(rest_s, min(rest_s / factor, limits.PACE_S_MAX))


def give_slots_unasked(book: Book, lease: Lease) -> Host:
    """Give the slots of a lease back with the times they had: nobody was asked."""
    host = book.host(lease.host)
    book.give_slots(host, lease, lease.slot_at, lease.ip_slot_at, lease.domain_slot_at)
    return host


def give_slots_rested(book: Book, lease: Lease, now: float) -> Host:
    """Give the slots of a lease back whose exchange nobody tells of: it may end just now."""
    rest_s = max(lease.rest_s, book.policy.delay_s)  # the lease may be of a run with a shorter --delay
    return give_slots(book, lease, now, rest_s)


def waits_for_domain(book: Book, host: Host, now: float) -> bool:
    """Tell whether the host must wait for its registrable domain (--per-domain): it is busy, or others came before.

    Who had a turn is not sent to the end of the line by others: else a host that was called could be overtaken for ever.
    """
    domain = book.domain_of(host)
    if domain is None:
        return False
    if domain.slots.ready_at() <= now and (host.not_before > 0 or not domain.waiting):
        domain.waiting.pop(host.name, None)
        return False
    host.not_before = domain.turn(host.name, now, book.policy.delay_s)
    book.schedule(host)
    return True


def crawl_delay(book: Book, url: str) -> float:
    """Give the Crawl-delay of a URL's authority, or what the operator says if that is more.

    One that is too long refuses the host; it is no reason to rest for years.
    """
    parts = split(url)
    row = book.rulebook.of(parts.authority).row if parts is not None else None
    asked_s = min(row.crawl_delay_s or 0.0, float(limits.CRAWL_DELAY_S_MAX)) if row is not None else 0.0
    return max(asked_s, book.delays.get(parts.host, 0.0)) if book.delays and parts is not None else asked_s


def spread_of(name: str, step: int) -> float:
    """Give a number in 0…1 that differs between hosts: jitter without randomness."""
    return (sum(name.encode()) * 7919 + step * 104_729) % 1000 / 1000


@dataclass(frozen=True)
class Failure:
    """How the whole host failed. `ip`: where it was asked, if anywhere; `reason`: what its queue fails with when it is closed."""

    released_at: float
    now: float
    reason: str
    retry_after_s: float | None = None
    ip: str | None = None


def trouble(book: Book, host: Host, failure: Failure) -> None:
    """No connection, no answer in time, or no robots.txt: the host rests on the ladder of such troubles."""
    if counts(host.row, failure.released_at, failure.now):
        host.row.troubles += 1
        host.row.streak += 1
    _rest(book, host, host.row.troubles, failure)


def complaint(book: Book, host: Host, failure: Failure) -> None:
    """429 or 503: the host rests as long as it asks, else on the ladder of complaints.

    An answer in between does not end that ladder: what was too fast a minute ago is too fast again. Only time does. Where
    three hosts of an address complain within ten minutes it is the machine that is tired: the address rests as long.
    """
    if counts(host.row, failure.released_at, failure.now):
        host.row.complaints += 1
        host.row.streak += 1
    length_s = _rest(book, host, host.row.complaints, failure)
    address = book.addresses.get(failure.ip) if failure.ip is not None else None
    if address is not None:
        row = address.complain(host.name, failure.now, length_s)
        book.put(Table.META, rows.address_key(address.ip), rows.pack(row))
        book.schedule_address(address)


def counts(row: HostRow, released_at: float, now: float) -> bool:
    """Tell whether a failure is a new one; exchanges that were in the air when the host failed tell the same one again.

    A host that was quiet for half an hour after its last rest begins both ladders anew; not the row of failures that
    closes it, which an answer ends: with many hosts, half an hour may pass between any two tries (law 11).
    """
    if now >= row.rested_at + limits.FORGIVEN_S:
        row.troubles = row.complaints = 0
    if released_at < row.failed_at:
        return False
    row.failed_at = now
    return True


def _rest(book: Book, host: Host, step: int, failure: Failure) -> float:
    """Let a host rest after a failure, the fifth in a row closes it; the result is the length of the rest."""
    book.touch(host)
    length_s = politeness.failure_rest(book.policy, failure.retry_after_s, step, spread_of(host.name, step))
    host.row.rested_at = max(host.row.rested_at, failure.now + length_s)
    is_hopeless = host.row.streak >= limits.HOST_FAILURES_MAX
    if failure.retry_after_s is not None or not is_hopeless:  # the next run asks a closed host at once, unless it said when
        host.rest_until(failure.now + length_s, length_s)
    if is_hopeless:
        close(book, host, failure.reason)
    return length_s


def server_error(book: Book, host: Host, released_at: float, now: float) -> None:
    """Count a 5xx of a page; a row of them is a sick host, which rests on the ladder of troubles."""
    row = host.row
    row.server_errors += 1
    if row.server_errors >= SERVER_ERRORS_BEFORE_REST:
        row.troubles += counts(row, released_at, now)
        length_s = politeness.backoff(book.policy, row.troubles, spread_of(host.name, row.troubles))
        row.rested_at = max(row.rested_at, now + length_s)
        host.rest_until(now + length_s, length_s)


def answered(host: Host) -> None:
    """The host answered: it is there, and its next failure is the first."""
    host.row.streak = 0


def resolved(book: Book, host: Host, addresses: list[str], until: float) -> None:
    """Addresses came: the one that was to be asked next stays first if it is there; one that failed does not come first again."""
    current = host.row.addresses[0] if host.row.addresses else None
    found = addresses[: limits.ADDRESSES_OF_A_HOST_MAX]
    host.row.addresses = [current, *(ip for ip in found if ip != current)] if current in found else found
    host.row.address_until = until
    host.meet(Fact.RESOLVED)
    if host.state is State.OPEN:
        book.attach(host, host.row.addresses[0])


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
    book.rulebook.save(authority, row)
    unpark(book, book.rulebook.of(authority))


def robots_failed(book: Book, authority: str, reason: str, now: float) -> None:
    """No rules: the authority is disallowed, and asked again when its host has rested on the ladder; the fifth time in a row is
    final for this run. Source: RFC 9309 section 2.3.1.4. Where another authority of the host answers, only this one waits.

    Rules that still hold (two fetches of them crossed) stay.
    """
    state = book.rulebook.of(authority)
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


def restore_addresses(book: Book, now: float) -> None:
    """Hold the addresses that rest, or where hosts complained of late; no stored rest exceeds its recorded length."""
    for key, value in rows.each(book.port.scan, Table.META, rows.ADDRESS_PREFIX, rows.ADDRESS_END):
        row = rows.address_row_of(value)
        row.rest_until = min(row.rest_until, now + row.rest_s)
        row.complaints = {name: min(at, now) for name, at in row.complaints.items()}
        address = book.address(key[len(rows.ADDRESS_PREFIX) :].decode())
        address.row = row
        book.leave_later(address.quiet_at(), address)


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
