"""The frontier's book: what it knows in memory, and what this turn must save.

The rooms that decide (core/admission, core/settling, core/release) write through it, so that every change of a URL's
state changes its row, its queue and the counters together (law 6), and all of it leaves in one batch. Reads go
through `Port`: a dict in tests, the store in life. What this turn wrote and the store has not yet is held here.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import Protocol

import msgspec

from crawltool.core import rows
from crawltool.core.hosts import Address, Fact, Host, State, is_literal
from crawltool.core.ledger import Ledger, bump
from crawltool.core.politeness import Policy, Slots
from crawltool.core.queue import HostQueue
from crawltool.core.robots import Rules
from crawltool.core.rows import Entry, HostRow, Lease, RobotsRow, Save, Settled, Table
from crawltool.core.urls import key as url_key
from crawltool.core.urls import split
from crawltool.records import Robots

ROBOTS_HELD = 20_000  # parsed rules in memory; the oldest used goes first
_ledger_of = msgspec.msgpack.Decoder(Ledger).decode


class Port(Protocol):
    """How the core reads what was committed."""

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        """Give one row."""

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        """Give rows with start <= key < end, in order."""


class RobotsState:
    """One authority's rules in memory: its row, the compiled rules, and whether a fetch of them is under way."""

    __slots__ = ("pending", "row", "rules", "waiting")

    def __init__(self, row: RobotsRow | None) -> None:
        self.row = row
        self.rules: Rules | None = None
        self.pending = False
        self.waiting: set[str] = set()  # hosts parked until the answer

    def compiled(self) -> Rules:
        """Give the compiled rules."""
        assert self.row is not None
        if self.rules is None:
            self.rules = Rules(Robots(rules=self.row.rules))
        return self.rules


class Book:
    """All that the frontier knows. One owner, no waiting: changed only within a turn."""

    def __init__(self, port: Port, policy: Policy) -> None:
        self.port = port
        self.policy = policy
        self.ledger = Ledger()
        self.hosts: dict[str, Host] = {}
        self.addresses: dict[str, Address] = {}
        self.leases: dict[str, Lease] = {}
        self.expiries: list[tuple[float, str]] = []
        self.robots: dict[str, RobotsState] = {}
        self.heap: list[tuple[float, int, Address]] = []
        self.unresolved: list[tuple[float, int, Host]] = []  # heap of hosts that need an address target, by time
        self.resolving = 0
        self.closing: dict[str, Host] = {}  # closed hosts whose queue is not failed yet
        self.waiting: list[tuple[float, bytes]] = []  # heap of (due, key) into `waiting_entries`
        self.waiting_entries: dict[bytes, Entry] = {}
        self.serial = 0  # queue keys and ties
        self.host_numbers = 0
        self.seq = 0  # crawl log
        self.run = 0
        self.lease_serial = 0
        self.save: Save = []
        self.fresh: dict[bytes, bytes] = {}  # KNOWN rows of this turn
        self.touched: set[str] = set()  # hosts with queues or rows changed in this turn

    # --- writing ---

    def put(self, table: Table, key: bytes, value: bytes | None) -> None:
        """Save one row with this turn; None deletes it."""
        self.save.append((table, key, value))

    def begin(self) -> None:
        """Start a turn: what the last one saved is in the store now."""
        for name in self.touched:
            host = self.hosts.get(name)
            if host is not None:
                host.queue.committed()
        self.touched.clear()
        self.fresh.clear()
        self.save = []

    def finish(self) -> Save:
        """End a turn: pack the changed hosts and the counters; the result is one batch."""
        for name in self.touched:
            host = self.hosts[name]
            if host.dirty:
                host.row.slots = list(host.slots.free)
                host.row.bound = host.queue.bound
                self.put(Table.HOSTS, name.encode(), rows.pack(host.row))
                host.dirty = False
        if self.save:
            self.put(Table.META, b"ledger", rows.pack(self.ledger))
            self.put(Table.META, b"serials", b"%d %d %d" % (self.serial, self.host_numbers, self.seq))
        return self.save

    # --- URLs ---

    def known_now(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys, this turn's included."""
        fresh = self.fresh
        missing = [key for key in keys if key not in fresh]
        found = dict(zip(missing, self.port.known(missing), strict=True)) if missing else {}
        return [fresh[key] if key in fresh else found[key] for key in keys]

    def set_known(self, key: bytes, row: bytes) -> None:
        """Change a URL's state row."""
        self.fresh[key] = row
        self.put(Table.KNOWN, key, row)

    def accept(self, key: bytes, entry: Entry, host: Host, now: float) -> None:
        """Take a new URL into the crawl: it is queued."""
        self.ledger.accepted += 1
        entry.first_seen_at = now
        self.enqueue(key, entry, host, rows.QUEUED)

    def refuse_new(self, key: bytes, entry: Entry, reason: str, now: float) -> None:
        """Accept a URL only to refuse it by a limit: its text and smallest depth stay."""
        self.ledger.accepted += 1
        bump(self.ledger.refused, reason)
        self._settle_row(key, entry, "refused", rows.REFUSED, reason, "", now)

    def enqueue(self, key: bytes, entry: Entry, host: Host, state: bytes, rank: float | None = None) -> None:
        """Put an entry into its host's queue; the counters say queued from now on."""
        place = entry.first_seen_at - entry.priority if rank is None else rank
        self.serial += 1
        queue_key = rows.queue_key(host.row.number, place, self.serial)
        self.ledger.queued += 1
        self.set_known(key, state + queue_key)
        self.push(host, queue_key, entry)

    def push(self, host: Host, queue_key: bytes, entry: Entry) -> None:
        """Put an entry into a host's queue in memory and on disk."""
        self.put(Table.QUEUE, queue_key, rows.pack(entry))
        host.queue.push(queue_key, entry)
        host.row.queued += 1
        self.touch(host)
        if host.state is State.CLOSED:
            self.closing[host.name] = host
        elif host.state is State.NEW:
            self.resolve_at(host, host.row.rest_until)
        self.schedule(host)

    def take_head(self, host: Host) -> tuple[bytes, Entry]:
        """Pop a host's first entry from memory and disk."""
        head = self.head(host)
        assert head is not None
        host.queue.pop()
        host.row.queued -= 1
        self.put(Table.QUEUE, head[0], None)
        self.touch(host)
        return head

    def head(self, host: Host) -> tuple[bytes, Entry] | None:
        """Give a host's first entry."""
        head = host.queue.head(self.scan_queue)
        assert (head is None) == (host.row.queued == 0), (host.name, host.row.queued)
        return head

    def scan_queue(self, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        """Read queue rows that were committed."""
        return self.port.scan(Table.QUEUE, start, end, at_most)

    def drop_queued(self, host: Host, queue_key: bytes) -> None:
        """Take one entry out of the middle of a queue."""
        host.queue.remove(queue_key)
        host.row.queued -= 1
        self.put(Table.QUEUE, queue_key, None)
        self.touch(host)
        self.schedule(host)

    def wait(self, key: bytes, entry: Entry, due_at: float) -> None:
        """Let a queued entry wait outside its host's queue until `due_at`."""
        self.serial += 1
        place = rows.waiting_key(due_at, self.serial)
        self.ledger.queued += 1
        self.set_known(key, rows.REQUEUED + place)
        self.put(Table.WAITING, place, rows.pack(entry))
        self.remember_waiting(place, entry)

    def remember_waiting(self, place: bytes, entry: Entry) -> None:
        """Hold a waiting entry in memory."""
        self.waiting_entries[place] = entry
        heapq.heappush(self.waiting, (int.from_bytes(place[:8], "big") / 1e6, place))

    def stop_waiting(self, place: bytes) -> Entry:
        """Take an entry away from the waiting."""
        self.put(Table.WAITING, place, None)
        self.ledger.queued -= 1
        return self.waiting_entries.pop(place)

    def settle_done(self, key: bytes, now: float) -> None:
        """A URL got its answer."""
        self.ledger.done += 1
        self.set_known(key, rows.DONE + int(now * 1000).to_bytes(8, "big"))

    def settle_failed(self, key: bytes, entry: Entry, reason: str, detail: str, now: float) -> None:
        """A URL failed for good."""
        bump(self.ledger.failed, reason)
        self._settle_row(key, entry, "failed", rows.FAILED, reason, detail, now)

    def settle_refused(self, key: bytes, entry: Entry, reason: str, detail: str, now: float, *, leased: bool = False) -> None:
        """A URL that was accepted is refused by rules."""
        bump(self.ledger.refused, reason)
        self._settle_row(key, entry, "refused", rows.DROPPED if leased else rows.REFUSED, reason, detail, now)

    def _settle_row(self, key: bytes, entry: Entry, word: str, state: bytes, reason: str, detail: str, now: float) -> None:
        self.set_known(key, state + reason.encode())
        self.put(Table.SETTLED, rows.settled_key(reason, key), rows.pack(Settled(word, reason, detail[:500], now, entry)))

    def unsettle(self, key: bytes, settled: Settled) -> None:
        """Forget that a URL failed or was refused; the caller queues it again."""
        bump(self.ledger.failed if settled.state == "failed" else self.ledger.refused, settled.reason, -1)
        self.put(Table.SETTLED, rows.settled_key(settled.reason, key), None)

    # --- hosts, addresses, clocks ---

    def host(self, name: str) -> Host:
        """Give a host, from memory, from the store, or new."""
        host = self.hosts.get(name)
        if host is not None:
            return host
        raw = self.port.get(Table.HOSTS, name.encode())
        if raw is not None:
            return self.remember(name, rows.host_row_of(raw), None)
        self.host_numbers += 1
        return self.remember(name, HostRow(number=self.host_numbers), None)

    def remember(self, name: str, row: HostRow, slots: Slots | None) -> Host:
        """Hold a host in memory with its clocks (all free when None is given)."""
        prefix = rows.queue_prefix(row.number)
        queue = HostQueue(prefix, row.bound or prefix, more=row.queued > 0)
        host = Host(name, row, queue, slots or Slots.all_free(self.policy.per_host))
        self.hosts[name] = host
        self.place(host)
        return host

    def place(self, host: Host) -> None:
        """Put an open host at its address; a literal address needs no look-up."""
        row = host.row
        if host.state is State.NEW and is_literal(host.name):
            row.addresses, row.address_until = [host.name.strip("[]")], inf
            host.meet(Fact.RESOLVED)
        if host.state is State.OPEN and row.addresses:
            host.address = self.address(row.addresses[0])

    def resolve_at(self, host: Host, at: float) -> None:
        """Let a host without an address ask for one at `at`."""
        if not host.wants_address:
            host.wants_address = True
            self.serial += 1
            heapq.heappush(self.unresolved, (at, self.serial, host))

    def attach(self, host: Host, ip: str) -> None:
        """Move a host to an address."""
        host.address = self.address(ip)
        host.scheduled_at = inf
        self.schedule(host)

    def touch(self, host: Host) -> None:
        """Mark a host's row as changed."""
        host.dirty = True
        self.touched.add(host.name)

    def address(self, ip: str) -> Address:
        """Give an address and its clock."""
        address = self.addresses.get(ip)
        if address is None:
            address = self.addresses[ip] = Address(ip, Slots.all_free(self.policy.address_slots))
        return address

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

    def robots_of(self, authority: str) -> RobotsState:
        """Give the rules of an authority as they are known."""
        state = self.robots.get(authority)
        if state is None:
            raw = self.port.get(Table.ROBOTS, authority.encode())
            state = self.robots[authority] = RobotsState(rows.robots_row_of(raw) if raw else None)
            self._forget_robots()
        return state

    def save_robots(self, authority: str, row: RobotsRow) -> None:
        """Change the rules of an authority."""
        state = self.robots_of(authority)
        state.row, state.rules, state.pending = row, None, False
        self.put(Table.ROBOTS, authority.encode(), rows.pack(row))

    def _forget_robots(self) -> None:
        if len(self.robots) > ROBOTS_HELD:
            for authority in list(self.robots)[: ROBOTS_HELD // 10]:
                state = self.robots[authority]
                if not state.pending and not state.waiting:
                    del self.robots[authority]

    # --- leases ---

    def lease(self, lease: Lease) -> str:
        """Write a lease down; the result is its id RUN-SERIAL."""
        self.lease_serial += 1
        name = f"{self.run}-{self.lease_serial}"
        self.leases[name] = lease
        heapq.heappush(self.expiries, (lease.expires_at, name))
        self.put(Table.LEASES, name.encode(), rows.pack(lease))
        return name

    def end_lease(self, name: str) -> Lease:
        """Strike a lease out."""
        self.put(Table.LEASES, name.encode(), None)
        return self.leases.pop(name)

    # --- start ---

    def load_meta(self) -> None:
        """Read the counters and serial numbers."""
        raw = self.port.get(Table.META, b"ledger")
        if raw is not None:
            self.ledger = _ledger_of(raw)
        serials = self.port.get(Table.META, b"serials")
        if serials is not None:
            self.serial, self.host_numbers, self.seq = (int(part) for part in serials.split())

    def key_of(self, entry: Entry) -> bytes:
        """Give the key of an entry's URL."""
        url = split(entry.url)
        assert url is not None, entry.url
        return url_key(url)
