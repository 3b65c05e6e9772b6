"""Which hosts and addresses are in memory, and who may be asked next?

Part of law 5: the heap holds addresses by the time they may be asked, each with a heap of its hosts; nothing else makes a
host fetchable. A host is held only while it has a queue, a lease or a rest; what is met again is read from the store. The
base of core/book, which keeps the URLs.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import Protocol

from crawltool import limits
from crawltool.core import rows
from crawltool.core.hosts import Address, Fact, Host, State, is_literal, restored_slots
from crawltool.core.politeness import Policy, Slots
from crawltool.core.queue import HostQueue
from crawltool.core.rows import HostRow, Lease, Table

CLOSED_NAMED = 1000  # closed hosts of this run that can be named


class Port(Protocol):
    """How the core reads what was committed."""

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        """Give one row."""

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        """Give rows with start <= key < end, in order."""


class Workbench:
    """The hosts and addresses that the frontier works on."""

    def __init__(self, port: Port, policy: Policy) -> None:
        self.port = port
        self.policy = policy
        self.run = 0
        self.now = 0.0  # of this turn
        self.addresses_from = 0.0  # an address that is met first in this run may be asked from then on
        self.hosts: dict[str, Host] = {}
        self.addresses: dict[str, Address] = {}
        self.heap: list[tuple[float, int, Address]] = []
        self.unresolved: list[tuple[float, int, Host]] = []  # heap of hosts that need an address target, by time
        self.leaving: list[tuple[float, int, Host | Address]] = []  # heap of what may be forgotten, by time
        self.closing: dict[str, Host] = {}  # closed hosts whose queue is not failed yet
        self.closed: dict[str, str] = {}  # hosts closed in this run, and why
        self.touched: dict[str, None] = {}  # hosts with queues or rows changed in this turn
        self.serial = 0  # queue keys and ties
        self.host_numbers = 0

    # --- hosts ---

    def host(self, name: str) -> Host:
        """Give a host, from memory, from the store, or new."""
        host = self.hosts.get(name)
        if host is not None:
            return host
        raw = self.port.get(Table.HOSTS, name.encode())
        if raw is not None:
            return self.remember(name, rows.host_row_of(raw), 0)
        self.host_numbers += 1
        return self.remember(name, HostRow(number=self.host_numbers), 0)

    def is_host_known(self, name: str) -> bool:
        """Tell whether this crawl ever had to do with a host."""
        return name in self.hosts or self.port.get(Table.HOSTS, name.encode()) is not None

    def remember(self, name: str, row: HostRow, taken: int) -> Host:
        """Hold a host in memory, as far as its row still holds; `taken` of its slots are taken by leases that run."""
        renew(row, self.now)
        prefix = rows.queue_prefix(row.number)
        queue = HostQueue(prefix, row.bound or prefix, more=row.queued > 0)
        host = Host(name, row, queue, restored_slots(row, self.policy.per_host, taken, self.now))
        self.hosts[name] = host
        if host.state is State.CLOSED and row.closed_run != self.run:
            host.meet(Fact.REVIVED)
            row.streak, row.closed_for, row.address_until = 0, None, 0.0
            self.touch(host)
        self._place(host)
        self._may_leave(host)
        return host

    def _place(self, host: Host) -> None:
        """Put an open host at its address; a literal address needs no look-up."""
        row = host.row
        if host.state is State.NEW and is_literal(host.name):
            row.addresses, row.address_until = [host.name.strip("[]")], inf
            host.meet(Fact.RESOLVED)
        if host.state is State.OPEN and row.addresses:
            self._move(host, row.addresses[0])

    def touch(self, host: Host) -> None:
        """Mark a host's row as changed."""
        host.dirty = True
        self.touched[host.name] = None

    def resolve_at(self, host: Host, at: float) -> None:
        """Let a host without an address ask for one at `at`."""
        if not host.wants_address:
            host.wants_address = True
            self.serial += 1
            heapq.heappush(self.unresolved, (at, self.serial, host))

    def next_unresolved(self) -> tuple[float, Host] | None:
        """Give the host that may ask for its address first, and when."""
        heap = self.unresolved
        while heap:
            at, _, host = heap[0]
            if host.state is State.NEW and host.row.queued:
                if host.row.rest_until <= at:
                    return at, host
                heapq.heapreplace(heap, (host.row.rest_until, heap[0][1], host))
                continue
            heapq.heappop(heap)
            host.wants_address = False
            self._may_leave(host)
        return None

    # --- addresses and clocks ---

    def address(self, ip: str) -> Address:
        """Give an address and its clock."""
        address = self.addresses.get(ip)
        if address is None:
            slots = Slots.all_free(self.policy.address_slots, self.addresses_from)
            address = self.addresses[ip] = Address(ip, slots)
        return address

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
        host.scheduled_at = inf  # its place at the old address is void, and must not be met
        if old is not None:
            self._leave_address(old)

    def _leave_address(self, address: Address) -> None:
        address.members -= 1
        self.schedule_address(address)
        self._may_go(address)

    def schedule(self, host: Host) -> None:
        """Put a host where its clocks say into its address's heap. Old places stay and are skipped when met."""
        at = host.ready_at()
        if at != host.scheduled_at:
            host.scheduled_at = at
            if at < inf and host.address is not None:
                self.serial += 1
                heapq.heappush(host.address.hosts, (at, self.serial, host))
        if host.address is not None:
            self.schedule_address(host.address)

    def schedule_address(self, address: Address) -> None:
        """Put an address where its clock and its first host say into the heap."""
        hosts = address.hosts
        while hosts and (hosts[0][2].scheduled_at != hosts[0][0] or hosts[0][2].address is not address):
            heapq.heappop(hosts)
        at = max(address.slots.ready_at(), hosts[0][0]) if hosts else inf
        if at != address.scheduled_at:
            address.scheduled_at = at
            if at < inf:
                self.serial += 1
                heapq.heappush(self.heap, (at, self.serial, address))

    def next_address(self) -> tuple[float, Address] | None:
        """Give the address that may be asked first, and when."""
        heap = self.heap
        while heap and heap[0][2].scheduled_at != heap[0][0]:
            heapq.heappop(heap)
        return (heap[0][0], heap[0][2]) if heap else None

    def take_slots(self, host: Host, lease: Lease) -> None:
        """Take a slot of a host and of its address for a lease."""
        address = host.address
        assert address is not None
        lease.address = address.ip
        lease.slot_at = host.slots.take()
        lease.ip_slot_at = address.slots.take()

    def give_slots(self, host: Host, lease: Lease, next_at: float, ip_next_at: float) -> None:
        """Give a lease's slots back with their next times. An address target holds none."""
        host.leased -= 1
        host.full = False  # a page that got no status gives its place back; release looks again
        self.touch(host)
        if lease.address is not None:
            host.slots.give(next_at)
            address = self.address(lease.address)
            address.slots.give(ip_next_at)
            self.schedule_address(address)
            self._may_go(address)

    # --- forgetting ---

    def _may_leave(self, host: Host) -> None:
        """Note when an idle host may be forgotten."""
        if host.row.queued == 0 and host.leased == 0 and not host.is_leaving and not host.wants_address:
            host.is_leaving = True
            self.serial += 1
            heapq.heappush(self.leaving, (max(host.slots.latest(), host.row.rest_until), self.serial, host))

    def _may_go(self, address: Address) -> None:
        """Note when an address without hosts may be forgotten."""
        if address.members == 0 and address.slots.taken == 0:
            self.serial += 1
            heapq.heappush(self.leaving, (address.slots.latest(), self.serial, address))

    def forget_idle(self) -> None:
        """Drop what has no queue, no lease and no rest any more; only what is in the store (called between turns)."""
        while self.leaving and self.leaving[0][0] <= self.now:
            _, _, what = heapq.heappop(self.leaving)
            if isinstance(what, Host):
                what.is_leaving = False
                if what.dirty:
                    self.touch(what)  # finish() saves it and lets it leave
                elif self._is_done(what):
                    del self.hosts[what.name]
                    if what.address is not None:
                        self._leave_address(what.address)
                else:
                    self._may_leave(what)
            elif what.members == 0 and what.slots.taken == 0 and what.slots.latest() <= self.now:
                self._forget_address(what)

    def _forget_address(self, address: Address) -> None:
        if self.addresses.get(address.ip) is address:
            del self.addresses[address.ip]

    def _is_done(self, host: Host) -> bool:
        row = host.row
        busy = row.queued or host.leased or host.wants_address
        return not busy and row.rest_until <= self.now and host.slots.latest() <= self.now

    def note_closed(self, host: Host) -> None:
        """Remember a closed host's name for people."""
        if len(self.closed) < CLOSED_NAMED:
            self.closed[host.name] = host.row.closed_for or ""


def renew(row: HostRow, now: float) -> None:
    """Make a stored row fit a clock that may have been set back since: nothing waits longer than its recorded length."""
    row.rest_until = min(row.rest_until, now + row.backoff_s)
    row.failed_at = min(row.failed_at, now)
    if row.address_until < inf:
        row.address_until = min(row.address_until, now + limits.ADDRESS_TTL_S_MAX)
