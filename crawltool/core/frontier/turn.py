"""The heart: one pure method that takes what came and says what to save and what may leave.

`turn(events, now, room) -> Turn(save, targets, wakeup)`. `save` must be durable before `targets` may leave (law 1); an outcome's
links are in the same `save` as its end (law 3). No clock, disk or socket here: time is an argument, reads go through
core/frontier/workbench.Port. stages/frontier calls it in life, the simulator and the scenarios in tests.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import NamedTuple

from crawltool import limits, records
from crawltool.core.frontier import hosting, rows
from crawltool.core.frontier.admission import Admission, entry_of
from crawltool.core.frontier.bans import Bans
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.channels import OPERATOR, Channels, Rule
from crawltool.core.frontier.hosts import Fact, State
from crawltool.core.frontier.importance import Importance, root_of
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.lessons import Lessons
from crawltool.core.frontier.ordering import Order
from crawltool.core.frontier.politeness import Policy, backoff
from crawltool.core.frontier.release import Release, drain_closing
from crawltool.core.frontier.rows import Entry, Lease, Save, Table
from crawltool.core.frontier.settling import Settling
from crawltool.core.frontier.steering import Steering
from crawltool.core.frontier.workbench import Port
from crawltool.core.scope import Scope
from crawltool.core.urls import split

BREADTH_FIRST = Order()


class Event(NamedTuple):
    """One input line: the record, its bytes, and the channel it came through, which alone gives trust."""

    record: records.Record
    line: bytes
    channel: str = ""  # '' the input, OPERATOR the inbox, else NAME of inbox.d/NAME

    @property
    def operator(self) -> bool:
        """Tell whether the operator says so."""
        return self.channel == OPERATOR


@dataclass(slots=True)
class Turn:
    """What one turn decided."""

    save: Save
    targets: list[bytes]
    wakeup: float  # call again at the latest then; infinity when only input can change something
    idle: bool  # no lease out and nothing queued that a limit still lets go
    next_release_at: float = inf  # when a host may be asked next, if nothing comes in
    limit: str | None = None  # the crawl-wide limit that was reached
    news: list[str] = field(default_factory=list)  # lines for people


class Frontier:
    """The one owner of what the crawl knows."""

    def __init__(
        self,
        port: Port,
        policy: Policy,
        bounds: Bounds,
        scope: Scope,
        order: Order = BREADTH_FIRST,
        bans: Bans | None = None,
        channels: Mapping[str, Rule] | None = None,
    ) -> None:
        self.book = Book(port, policy)
        root = root_of(port.get(Table.META, b"importance"))
        importance = Importance(order.kind, root) if order.kind != "breadth" else None
        bans = bans if bans is not None else Bans()
        self.lessons = Lessons(self.book, scope, importance)
        self.channels = Channels(self.book, channels)
        bonus_s = self.lessons.bonus_s if importance is not None else None
        self.admission = Admission(self.book, scope, bounds, order, bonus_s, bans, self.channels)
        self.settling = Settling(self.book, self.admission.unmet, self.lessons.hear)
        self.steering = Steering(self.book, self.admission, bans)
        self.book.delays, self.book.budgets = self.steering.delays, self.steering.budgets
        self.book.reputations = self.steering.reputations
        self.release = Release(self.book, bounds, self.steering)

    @property
    def leases_out(self) -> int:
        """Tell how many targets are out."""
        return len(self.book.leases)

    # --- start ---

    def start(self, run: int, now: float, *, void_leases: bool) -> Save:
        """Take up where the last run stopped; the result must be saved before the first turn.

        void_leases: no fetch is alive that could still hold a lease: their URLs are queued again at once, each host is
        asked no earlier than now + its whole rest. Otherwise leases run to their end.
        """
        book = self.book
        book.begin(now)
        book.run = run
        if book.port.get(Table.META, b"run") is not None:  # an exchange of the last run may have ended just now
            book.addresses_from = now + book.policy.address_delay_s
            book.domains_from = now + book.policy.delay_s
        book.load_meta()
        self.lessons.load()
        longer_s = self._longer_delay()
        self.admission.scope.restore([key[6:].decode() for key, _ in rows.each(book.port.scan, Table.META, b"scope:", b"scope;")])
        hosting.restore_addresses(book, now)
        leases = {key.decode(): rows.lease_of(value) for key, value in rows.each(book.port.scan, Table.LEASES)}
        self._load_hosts(leases, now, longer_s)
        self._load_waiting(now)
        self._load_leases(leases, now, void_leases)
        self._revive()
        self.steering.start()
        for host in book.hosts.values():
            if host.state is State.NEW and host.queued:
                book.resolve_at(host, max(now, host.row.rest_until))
            book.schedule(host)
        book.ledger.check()
        self.admission.budgets.save()
        book.put(Table.META, b"run", b"%d" % run)
        return book.finish()

    def _longer_delay(self) -> float:
        """Tell by how much --delay is longer than in the last run: the stored times were made with that one."""
        delay_s, before = self.book.policy.delay_s, self.book.port.get(Table.META, b"delay")
        self.book.put(Table.META, b"delay", b"%r" % delay_s)
        return max(delay_s - float(before), 0.0) if before is not None else 0.0

    def _load_hosts(self, leases: dict[str, Lease], now: float, longer_s: float) -> None:
        """Hold the hosts that have a queue, a lease or a rest; the others are read when they are met."""
        book = self.book
        taken = Counter(lease.host for lease in leases.values() if lease.address is not None)
        asking = {lease.host for lease in leases.values() if lease.address is None}
        for key, value in rows.each(book.port.scan, Table.HOSTS):
            name, row = key.decode(), rows.host_row_of(value)
            queued = book.lengths.of_host(row.number)
            is_out = name in taken or name in asking
            if longer_s > 0 and (queued or is_out or max(row.slots, default=now) + longer_s > now):
                row.slots, row.rest_s = [at + longer_s for at in row.slots], row.rest_s + longer_s
                book.put(Table.HOSTS, key, rows.pack(row))
                book.met[name] = row
            if is_out or (queued and len(book.hosts) < book.hot_most):
                host = book.remember(name, row, taken[name])
                if host.state is State.RESOLVING and name not in asking:
                    host.meet(Fact.NOT_RESOLVED)
            elif queued:
                book.room.name(row.number, name)
                book.room.cold[name] = row.number
                book.room.wait(row.number, min(row.rest_until, now + row.backoff_s), now)

    def _load_waiting(self, now: float) -> None:
        """Hold what waits for another try: no longer than it was meant to, whatever the clock says now."""
        for place, value in rows.each(self.book.port.scan, Table.WAITING):
            entry = rows.entry_of(value)
            longest_s = max(float(limits.RETURNED_WAIT_S_MAX), backoff(self.book.policy, entry.attempt, 0.0))
            self.book.remember_waiting(place, entry, min(int.from_bytes(place[:8], "big") / 1e6, now + longest_s))

    def _load_leases(self, leases: dict[str, Lease], now: float, void: bool) -> None:
        book = self.book
        for name, lease in leases.items():
            host = book.host(lease.host)
            host.leased += 1
            book.hold_slots(host, lease)
            if lease.released_at > now:  # the clock was set back
                lease.released_at, lease.expires_at = now, now + lease.expires_at - lease.released_at
            book.remember_lease(name, lease)
        for name, lease in leases.items():
            if void:
                self._void(name, lease, now)
            elif lease.entry.kind == "robots" and lease.entry.for_:
                book.rulebook.of(lease.entry.for_).pending = True

    def _void(self, name: str, lease: Lease, now: float) -> None:
        """Take a lease back whose fetch is dead: attempt unchanged, the host rests as if it was asked just now."""
        book, entry = self.book, lease.entry
        book.end_lease(name)
        host = hosting.give_slots_rested(book, lease, now)
        if entry.kind == "address":
            hosting.not_resolved(book, host, now)
        elif entry.kind == "robots" and lease.queue_key:
            book.push(host, lease.queue_key, entry)
        elif entry.kind != "robots" and not lease.settled:
            book.ledger.leased -= 1
            book.ledger.pages_out -= entry.kind == "page"
            book.ledger.queued += 1
            book.set_known(book.key_of(entry), rows.REQUEUED + lease.queue_key)
            book.push(host, lease.queue_key, entry)

    def _revive(self) -> None:
        """Judge again what the last run gave up for reasons of a run or of its limits. (Hosts: Workbench.remember.)"""
        book = self.book
        for place, value in rows.each(book.port.scan, Table.SETTLED, b"0", b"1"):
            settled = rows.settled_of(value)
            entry, url = settled.entry, split(settled.entry.url)
            if url is None or (settled.reason in rows.LIMIT_REASONS and self.admission.limit(entry, url) is not None):
                continue
            book.unsettle(place[1:], settled)
            state = rows.REQUEUED if settled.state == "failed" or entry.was_leased else rows.QUEUED
            entry.attempt = entry.lost = entry.returned = entry.busy = 0
            book.enqueue(place[1:], entry, book.host(url.host), state)
            if settled.reason in rows.ENTRY_REASONS and self.admission.budgets.is_used:
                self.admission.budgets.admitted(url)

    # --- the turn ---

    def turn(self, events: Sequence[Event], now: float, room: int, *, caught_up_at: float | None = None) -> Turn:
        """Apply what came, then say what to save and what may leave.

        room: how many leases may be out; those that end in this turn make room for its targets. caught_up_at: all input
        that was readable then has been read; leases that ran out before it expire (None: now).
        """
        book = self.book
        book.begin(now)
        offered: list[Entry] = []
        found: list[list[Entry]] = [offered]
        for event in events:
            record = event.record
            if type(record) is records.Candidate:
                offered += self._offered(record, event)
            elif type(record) is records.Outcome:
                found.append(self.settling.outcome(record, event.line, now))
            elif isinstance(record, records.Control):
                offered += self._control(record, event, now)
            else:
                bump(book.ledger.lines_refused, f"{type(record).__name__.lower()}: not for the frontier")
        self.lessons.weigh()
        self.admission.counts_new = bool(self.lessons.lessons)
        self.admission.admit(list(chain.from_iterable(found)), now)
        self.admission.news += self.lessons.draw(self.admission.new_from)
        self.admission.new_from.clear()
        self.admission.budgets.save()
        self.settling.expire(min(now, caught_up_at if caught_up_at is not None else now))
        self._wake_waiting(now)
        self.steering.step(now)
        drain_closing(book, now)
        targets = self.release.targets(now, room - len(book.leases))
        news, self.admission.news = self.admission.news, []
        save = book.finish()
        book.ledger.check()
        next_at = self._next_release_at()
        return Turn(
            save,
            targets,
            self._wakeup(next_at, now, room - len(book.leases)),
            self._is_idle(next_at),
            next_at,
            self.release.limit,
            news,
        )

    def _offered(self, record: records.Candidate, event: Event) -> list[Entry]:
        """Turn a candidate into what may be admitted: its channel's trust, and a sitemap's bounds, are upon it."""
        if not event.channel and self.admission.met_lately(record.url):
            return []
        entry = entry_of(record, operator=event.operator)
        if event.channel:
            if not event.operator:
                entry.channel, entry.priority = event.channel, self.channels.priority(event.channel, entry.priority)
        elif record.source == "sitemap":
            return self.lessons.sent_ahead(entry)
        return [entry]

    def _control(self, control: records.Control, event: Event, now: float) -> list[Entry]:
        """Let the operator steer; nobody else may."""
        if event.operator:
            return self.steering.apply(control, now)
        bump(self.book.ledger.lines_refused, "control: not from the operator")
        return []

    def _wake_waiting(self, now: float) -> None:
        book = self.book
        while book.waiting and (book.waiting[0][0] <= now or book.waiting[0][1] not in book.waiting_entries):
            _, place = heapq.heappop(book.waiting)
            if place in book.waiting_entries:
                entry = book.stop_waiting(place)
                url = split(entry.url)
                assert url is not None, entry.url
                book.enqueue(book.key_of(entry), entry, book.host(url.host), rows.REQUEUED)

    def _next_release_at(self) -> float:
        book = self.book
        if self.release.limit is not None or self.steering.paused:
            return inf
        waiting_at = book.waiting[0][0] if book.waiting else inf
        fresh_at = book.room.next_at(book.now) if book.may_wake() else inf
        return min(book.next_at(), fresh_at, waiting_at)

    def _wakeup(self, next_at: float, now: float, room_left: int) -> float:
        if self.book.closing or self.steering.jobs:
            return now
        first = self.book.next_expiry()
        lease_end = first[0] if first is not None else inf
        return lease_end if room_left <= 0 else min(next_at, lease_end)

    def _is_idle(self, next_at: float) -> bool:
        return not self.book.leases and not self.book.closing and next_at == inf and not self.steering.is_busy
