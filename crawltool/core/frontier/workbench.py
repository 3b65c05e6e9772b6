"""Which hosts are in memory, and in which form?

A host in use is an object with its clocks and the heads of its queues (hot). One that only has a queue is a number in
core/frontier/waitingroom (cold) until its turn comes. A host without queue, lease and rest is in the store only. The base
of core/frontier/book, which keeps the URLs.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import Protocol

from crawltool import limits
from crawltool.core.frontier import rows
from crawltool.core.frontier.hosts import Address, Fact, Host, State, is_literal, restored_slots
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.politeness import TURN_S_MIN, Domain, Policy
from crawltool.core.frontier.rows import CLASSES, HostRow, Lease, Save, Table
from crawltool.core.frontier.timetable import Timetable
from crawltool.core.frontier.waitingroom import WaitingRoom
from crawltool.core.scope import registrable_domain

CLOSED_NAMED = 1000  # closed hosts of this run that can be named
HOT = 20_000  # hosts held as objects; those with a lease count, but stay
EVICTED_PER_TURN = 1000
SOON_S = 1.0
CALLED = 8  # waiting hosts of a domain that are called when a slot comes back, at most
DOMAIN_LOOK_S = 60.0  # a domain in use is looked at so often whether it may be forgotten
BUSY_ADDRESS_S = 1.0  # a host that was made cold looks again after that, where all slots of its address are taken


class Port(Protocol):
    """How the core reads what was committed."""

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        """Give one row."""

    def many(self, table: Table, keys: list[bytes]) -> list[bytes | None]:
        """Give many rows."""

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        """Give rows with start <= key < end, in order."""


class Workbench(Timetable):
    """The hosts that the frontier works on, and those that wait to be."""

    def __init__(self, port: Port, policy: Policy) -> None:
        super().__init__(policy)
        self.port = port
        self.run = 0
        self.scan_queue = self._scan_queue
        self.hot_most = HOT
        self.hosts: dict[str, Host] = {}  # hot
        self.lengths = Lengths()
        self.room = WaitingRoom(self.hosts, self.lengths)
        self.met: dict[str, HostRow] = {}  # hosts that this turn made, and left cold
        self.save: Save = []  # what this turn must save
        self.pushed: dict[int, list[tuple[bytes, bytes | None]]] = {}  # what this turn did to queues, by number, as far as
        self.pushed_to = 0  # this place in `save`: few hosts that get something in a turn are also woken in it
        self.delays: dict[str, float] = {}  # host -> seconds it rests at least, by the operator (core/frontier/steering)
        self.budgets: dict[str, int] = {}  # host -> pages at most, by the operator
        self.reputations: dict[str, float] = {}  # host -> factor of its pace, by the operator
        self.closing: dict[str, Host] = {}  # closed hosts whose queue is not failed yet
        self.closed: dict[str, str] = {}  # hosts closed in this run, and why
        self.touched: dict[str, Host] = {}  # hosts with queues or rows changed in this turn
        self.host_numbers = 0

    def _scan_queue(self, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        return self.port.scan(Table.QUEUE, start, end, at_most)

    # --- hosts ---

    def host(self, name: str) -> Host:
        """Give a host, from memory, from the store, or new; it is hot from now on."""
        host = self.hosts.get(name)
        if host is not None:
            return host
        row = self.stored(name)
        host = self.remember(name, row or self.new_row(), 0)
        if row is None:
            self.touch(host)
        return host

    def stored(self, name: str) -> HostRow | None:
        """Give a host's row as it was committed, or as this turn made it."""
        if name in self.met:
            return self.met[name]
        raw = self.port.get(Table.HOSTS, name.encode())
        return rows.host_row_of(raw) if raw is not None else None

    def new_row(self) -> HostRow:
        """Give the row of a host that is met for the first time."""
        self.host_numbers += 1
        return HostRow(number=self.host_numbers)

    def is_host_known(self, name: str) -> bool:
        """Tell whether this crawl ever had to do with a host."""
        return name in self.hosts or name in self.room.cold or self.stored(name) is not None

    def remember(self, name: str, row: HostRow, taken: int) -> Host:
        """Hold a host as an object, as far as its row still holds; `taken` of its slots are taken by leases that run."""
        was = (*row.slots, row.rest_until)
        renew(row, self.now)
        number = row.number
        self.room.name(number, name)
        self.room.cold.pop(name, None)
        lengths = self.lengths.counts[number * CLASSES : (number + 1) * CLASSES]
        host = Host(name, row, restored_slots(row, self.policy.per_host, taken, self.now), lengths)
        self.hosts[name] = host
        if host.queued:
            self._take_pushed(host)
        if host.state is State.CLOSED and row.closed_run != self.run:
            host.meet(Fact.REVIVED)
            row.streak, row.closed_for, row.address_until = 0, None, 0.0
            self.touch(host)
        if was != (*host.slots.free, row.rest_until):  # the clock was set back: it counts from now on
            self.touch(host)
        self._place(host)
        self._may_leave(host)
        return host

    def _take_pushed(self, host: Host) -> None:
        """Give a host that was cold what this turn did to its queues: reads do not see it yet."""
        for table, key, value in self.save[self.pushed_to :]:
            if table is Table.QUEUE:
                self.pushed.setdefault(int.from_bytes(key[:4], "big"), []).append((key, value))
        self.pushed_to = len(self.save)
        for key, value in self.pushed.pop(host.row.number, ()):
            queue = host.queue(key[4])
            queue.remove(key)
            if value is not None:
                queue.gone.discard(key)
                queue.fresh[key] = value
            self.touched[host.name] = host

    def _place(self, host: Host) -> None:
        """Put an open host at its address; a literal address needs no look-up."""
        row = host.row
        if host.state is State.NEW and is_literal(host.name):
            row.addresses, row.address_until = [host.name.strip("[]")], inf
            host.meet(Fact.RESOLVED)
        if host.state is State.OPEN and row.addresses:
            self._move(host, row.addresses[0])
            if host.queued:
                self.schedule(host)

    def touch(self, host: Host) -> None:
        """Mark a host's row as changed."""
        host.dirty = True
        self.touched[host.name] = host

    # --- waiting for an address ---

    def resolve_at(self, host: Host, at: float) -> None:
        """Let a host without an address ask for one at `at`."""
        if not host.wants_address:
            host.wants_address = True
            self.room.wait(host.row.number, at, self.now)

    def may_wake(self) -> bool:
        """Tell whether one more host may become hot: where enough are, and one of them is ready soon, only an urgent one."""
        if len(self.hosts) < self.hot_most or self.next_at() > self.now + SOON_S:
            return True
        return self.room.has_urgent(self.now)

    # --- addresses ---

    def attach(self, host: Host, ip: str) -> None:
        """Move a host to an address."""
        self._move(host, ip)
        self.schedule(host)

    def _move(self, host: Host, ip: str) -> None:
        old, new = host.address, self.address(ip)
        if old is new:
            return
        host.address = new
        new.members += 1
        host.scheduled_at, host.ranks = inf, [inf] * CLASSES  # its place at the old address is void, and must not be met
        if old is not None:
            self._leave_address(old)

    def _leave_address(self, address: Address) -> None:
        address.members -= 1
        self.schedule_address(address)
        self._may_go(address)

    def domain_of(self, host: Host) -> Domain | None:
        """Give the clock of a host's registrable domain, if domains have one."""
        return self.domain(registrable_domain(host.name)) if self.policy.per_domain is not None else None

    def take_slots(self, host: Host, lease: Lease) -> None:
        """Take a slot of a host, of its address and of its domain for a lease."""
        super().take_slots(host, lease)
        domain = self.domain_of(host)
        if domain is not None:
            domain.waiting.pop(host.name, None)
            host.not_before = 0.0
            lease.domain_slot_at = domain.slots.take()

    def hold_slots(self, host: Host, lease: Lease) -> None:
        """Take the slots of a lease of an earlier run at its address and domain; its host's are taken already."""
        if lease.address is not None:
            self.address(lease.address).slots.hold()
            domain = self.domain_of(host)
            if domain is not None:
                domain.slots.hold()
                lease.domain_slot_at = max(lease.domain_slot_at, self.domains_from)  # that run may have had no such clocks

    def give_slots(self, host: Host, lease: Lease, next_at: float, ip_next_at: float, domain_next_at: float) -> None:
        """Give a lease's slots back with their next times; the caller schedules the host. An address target holds none."""
        host.leased -= 1
        host.full = False  # a page that got no status gives its place back; release looks again
        self.touch(host)
        if lease.address is not None:
            host.slots.give(next_at)
            address = self.address(lease.address)
            address.slots.give(ip_next_at)
            if address is not host.address:  # else it is scheduled with its host
                self.schedule_address(address)
            self._may_go(address)
            domain = self.domain_of(host)
            if domain is not None:
                domain.slots.give(domain_next_at)
                self._call(domain, domain_next_at)

    def _call(self, domain: Domain, at: float) -> None:
        """A slot of a domain can be used from `at` on: its first waiting host that can do so has the next turn."""
        at = max(at, domain.slots.ready_at(), self.now)
        if at == inf:  # slots became fewer than the leases that are out: one that comes back later calls
            return
        for _ in range(min(len(domain.waiting), CALLED)):
            name = next(iter(domain.waiting))
            del domain.waiting[name]
            host = self.hosts.get(name)
            if host is not None:
                host.not_before = at
                self.schedule(host)
                if host.ready_at() <= at:
                    return

    # --- forgetting ---

    def _may_leave(self, host: Host) -> None:
        """Note when an idle host may be forgotten."""
        if host.queued == 0 and host.leased == 0 and not host.is_leaving:
            host.is_leaving = True
            self.leave_later(max(host.slots.latest(), host.row.rest_until), host)

    def _may_go(self, address: Address) -> None:
        """Note when an address without hosts may be forgotten."""
        if address.members == 0 and address.slots.taken == 0:
            self.leave_later(address.quiet_at(), address)

    def forget_idle(self) -> None:
        """Drop what has no queue, no lease and no rest any more; only what is in the store (called between turns)."""
        while self.leaving and self.leaving[0][0] <= self.now:
            _, _, what = heapq.heappop(self.leaving)
            if isinstance(what, Host):
                what.is_leaving = False
                if self.hosts.get(what.name) is not what:
                    continue
                if what.dirty:
                    self.touch(what)  # finish() saves it and lets it leave
                elif self._is_done(what):
                    self._drop(what)
                    self.room.name(what.row.number, None)
                else:
                    self._may_leave(what)
            elif isinstance(what, Address):
                self._forget_address(what)
            elif what.is_idle(self.now):
                del self.domains[what.name]
            else:
                self.leave_later(max(what.slots.latest(), self.now + DOMAIN_LOOK_S), what)

    def _forget_address(self, address: Address) -> None:
        if address.members or address.slots.taken or self.addresses.get(address.ip) is not address:
            return
        if address.quiet_at() > self.now:
            self._may_go(address)
            return
        del self.addresses[address.ip]
        if address.row is not None:
            self.save.append((Table.META, rows.address_key(address.ip), None))

    def _is_done(self, host: Host) -> bool:
        return not (host.queued or host.leased) and host.row.rest_until <= self.now and host.slots.latest() <= self.now

    def _drop(self, host: Host) -> None:
        """Forget a host's object; its row is in the store."""
        del self.hosts[host.name]
        host.scheduled_at, host.ranks = inf, [inf] * CLASSES
        if host.address is not None:
            self._leave_address(host.address)
        if self.domains and (domain := self.domains.get(registrable_domain(host.name))) is not None:
            domain.waiting.pop(host.name, None)

    def evict(self) -> None:
        """Make hosts cold where too many are hot: those that were met longest ago and have no lease (called between turns)."""
        over = min(len(self.hosts) - self.hot_most, EVICTED_PER_TURN)
        if over <= 0:
            return
        for name in list(self.hosts)[: 2 * over]:
            host = self.hosts[name]
            if host.leased or host.parked or host.dirty or name in self.closing or not host.queued:
                self.hosts[name] = self.hosts.pop(name)  # to the end: the others are looked at first next time
                continue
            at = self._comes_back_at(host)
            self._drop(host)
            self.room.cold[name] = host.row.number
            if not host.full:  # a full one waits for the next run, or for a higher limit
                self.room.wait(host.row.number, at, self.now)

    def _comes_back_at(self, host: Host) -> float:
        """Guess when a host's turn may come: behind those that are ready at its address."""
        at, address = max(host.slots.ready_at(), host.row.rest_until, host.not_before), host.address
        if address is None:
            return at
        step_s = max(self.policy.address_delay_s, TURN_S_MIN) / self.policy.address_slots
        free_at = address.ready_at() if address.slots.free else self.now + max(step_s, BUSY_ADDRESS_S)
        return max(at, free_at + step_s * max(len(enrolled) for enrolled in address.ready))

    def note_closed(self, host: Host) -> None:
        """Remember a closed host's name for people."""
        if len(self.closed) < CLOSED_NAMED:
            self.closed[host.name] = host.row.closed_for or ""


def renew(row: HostRow, now: float) -> None:
    """Make a stored row fit a clock that may have been set back since: nothing waits longer than its recorded length."""
    row.rest_until = min(row.rest_until, now + row.backoff_s)
    row.failed_at, row.rested_at = min(row.failed_at, now), min(row.rested_at, now + row.backoff_s)
    if row.address_until < inf:
        row.address_until = min(row.address_until, now + limits.ADDRESS_TTL_S_MAX)
