"""The frontier's book: what it knows in memory, and what this turn must save.

The rooms that decide (core/frontier/admission, core/frontier/settling, core/frontier/release) write through it, so that
every change of a URL's state changes its row, its queue and the counters together (law 6), and all of it leaves in one
batch. Reads go through core/frontier/workbench.Port: a dict in tests, the store in life. What this turn wrote and the store
has not yet is held here.
"""

from __future__ import annotations

import heapq

from crawltool.core.frontier import rows
from crawltool.core.frontier.hosts import Host, State
from crawltool.core.frontier.ledger import Ledger, bump, ledger_of
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Entry, Lease, Save, Settled, Table
from crawltool.core.frontier.rulebook import Rulebook
from crawltool.core.frontier.workbench import Port, Workbench
from crawltool.core.urls import key as url_key
from crawltool.core.urls import split, split_once

PRIORITY_S = 3600.0  # a point of priority counts as much as being seen that much earlier
EXPIRIES_SPARE = 10_000  # places of ended leases that the heap of expiries may hold


class Book(Workbench):
    """All that the frontier knows. One owner: changed only within a turn."""

    def __init__(self, port: Port, policy: Policy) -> None:
        super().__init__(port, policy)
        self.ledger = Ledger()
        self.leases: dict[str, Lease] = {}
        self.expiries: list[tuple[float, str]] = []
        self.rulebook = Rulebook(port, self.put)
        self.waiting: list[tuple[float, bytes]] = []  # heap of (due, key) into `waiting_entries`
        self.waiting_entries: dict[bytes, Entry] = {}
        self.seq = 0  # crawl log
        self.lease_serial = 0
        self.fresh_rows: dict[bytes, bytes | None] = {}  # KNOWN rows of this turn; None: forgotten
        self.fresh_settled: dict[bytes, Settled] = {}  # SETTLED rows of this turn

    # --- writing ---

    def put(self, table: Table, key: bytes, value: bytes | None) -> None:
        """Save one row with this turn; None deletes it."""
        self.save.append((table, key, value))

    def begin(self, now: float) -> None:
        """Start a turn: what the last one saved is in the store now."""
        self.now = now
        for host in self.touched.values():
            for queue in host.queues:
                if queue is not None:
                    queue.committed()
        self.touched.clear()
        self.pushed.clear()
        self.pushed_to = 0
        self.met.clear()
        self.fresh_rows.clear()
        self.fresh_settled.clear()
        self.save = []
        self.forget_idle()
        self.evict()

    def finish(self) -> Save:
        """End a turn: pack the changed hosts and the counters; the result is one batch."""
        for name, host in self.touched.items():
            if host.dirty:
                self.put(Table.HOSTS, name.encode(), host.packed_row())
                host.dirty = False
            self._may_leave(host)
        if self.save:
            self.lengths.save_into(self.save)
            self.put(Table.META, b"ledger", rows.pack(self.ledger))
            self.put(Table.META, b"serials", b"%d %d %d" % (self.serial, self.host_numbers, self.seq))
        return self.save

    # --- URLs ---

    def known_now(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys, this turn's included."""
        fresh = self.fresh_rows
        missing = [key for key in keys if key not in fresh]
        found = dict(zip(missing, self.port.known(missing), strict=True)) if missing else {}
        return [fresh[key] if key in fresh else found[key] for key in keys]

    def set_known(self, key: bytes, row: bytes) -> None:
        """Change a URL's state row."""
        self.fresh_rows[key] = row
        self.put(Table.KNOWN, key, row)

    def unknow(self, key: bytes) -> None:
        """Remove a URL's state row: it was never known."""
        self.fresh_rows[key] = None
        self.put(Table.KNOWN, key, None)

    def accept(self, key: bytes, entry: Entry, name: str, bonus_s: float = 0.0) -> None:
        """Take a new URL of a host into the crawl: it is queued, `bonus_s` earlier in rank. The host need not be hot for it."""
        host = None
        number = self.room.cold.get(name)
        if number is None:
            host = self.hosts.get(name) or (self.host(name) if len(self.hosts) < self.hot_most else self._unless_cold(name))
            number = host.row.number if host is not None else self.room.cold[name]
        place, rank = self.rank(entry)
        rank -= bonus_s
        self.serial += 1
        queue_key = rows.queue_key(number, place, rank, self.serial)
        self.ledger.accepted += 1
        self.ledger.queued += 1
        self.fresh_rows[key] = row = rows.QUEUED + queue_key
        self.save.append((Table.KNOWN, key, row))
        if host is not None:
            self.push(host, queue_key, entry)
            return
        self.save.append((Table.QUEUE, queue_key, rows.pack_entry(entry)))
        if self.lengths.add(number, place, 1) == 1:
            self.room.wait_in_class(number, place, rank)

    def _unless_cold(self, name: str) -> Host | None:
        """Take a host in that is not in memory: cold, unless what it gets must fail at once."""
        row = self.stored(name)
        if row is None:
            row = self.met[name] = self.new_row()
            self.put(Table.HOSTS, name.encode(), rows.pack(row))
        elif row.state == State.CLOSED and row.closed_run == self.run:
            return self.remember(name, row, 0)
        self.room.name(row.number, name)
        self.room.cold[name] = row.number
        return None

    def queued_of(self, name: str) -> int:
        """Count what is queued for a host, wherever it is; 0 for one that is not in memory."""
        number = self.room.cold.get(name)
        if number is not None:
            return self.lengths.of_host(number)
        host = self.hosts.get(name)
        return host.queued if host is not None else 0

    def rank(self, entry: Entry) -> tuple[int, float]:
        """Give the class of an entry and its rank there: the earlier it was seen the lower, and each point counts as an hour."""
        if entry.priority == 0.0:
            return rows.NORMAL, entry.first_seen_at
        return rows.class_of(entry.priority), entry.first_seen_at - PRIORITY_S * entry.priority

    def refuse_new(self, key: bytes, entry: Entry, reason: str, now: float) -> None:
        """Accept a URL only to refuse it by a limit: its text and smallest depth stay."""
        self.ledger.accepted += 1
        bump(self.ledger.refused, reason)
        self._settle_row(key, entry, "refused", rows.REFUSED, reason, "", now)

    def enqueue(self, key: bytes, entry: Entry, host: Host, state: bytes, rank: float | None = None) -> None:
        """Put an entry into its host's queue; the counters say queued from now on."""
        place, own_rank = self.rank(entry)
        self.serial += 1
        queue_key = rows.queue_key(host.row.number, place, own_rank if rank is None else rank, self.serial)
        self.ledger.queued += 1
        self.set_known(key, state + queue_key)
        self.push(host, queue_key, entry)

    def push(self, host: Host, queue_key: bytes, entry: Entry) -> None:
        """Put an entry into a host's queue in memory and on disk."""
        row, place = rows.pack_entry(entry), queue_key[4]
        self.save.append((Table.QUEUE, queue_key, row))
        is_head = host.queue(place).push(queue_key, row)
        host.queued += 1
        is_only = self.lengths.add(host.row.number, place, 1) == 1
        self.touched[host.name] = host
        if entry.kind == "robots":
            # It goes before what waits for rules, and counts for no limit: else two hosts whose rules lie at each other
            # would wait for each other.
            host.parked = host.full = False
        elif not is_head and not is_only and host.state is not State.CLOSED:
            return  # it stands behind others: nothing that is scheduled changes
        if host.state is State.CLOSED:
            self.closing[host.name] = host
        elif host.state is State.NEW:
            if host.wants_address and is_only:
                self.room.wait_in_class(host.row.number, place, rows.rank_of(queue_key))
            self.resolve_at(host, host.row.rest_until)
        self.schedule(host)

    def head(self, host: Host, place: int) -> tuple[bytes, Entry] | None:
        """Give the first entry of a host's class."""
        queue = host.queues[place]
        head = queue.head(self.scan_queue) if queue is not None else None
        return (head[0], rows.entry_of(head[1])) if head is not None else None

    def first(self, host: Host) -> tuple[bytes, Entry]:
        """Give the first entry of a host's highest class; it has one."""
        found = next((head for place in range(rows.CLASSES) if (head := self.head(host, place)) is not None), None)
        assert found is not None, host.name
        return found

    def pop(self, host: Host, queue_key: bytes) -> None:
        """Take an entry that head() or first() gave out of its queue: it is queued no more."""
        queue = host.queues[queue_key[4]]
        assert queue is not None and queue.buffer[0][0] == queue_key, queue_key
        queue.pop()
        self._taken(host, queue_key)

    def _taken(self, host: Host, queue_key: bytes) -> None:
        host.queued -= 1
        self.lengths.add(host.row.number, queue_key[4], -1)
        self.put(Table.QUEUE, queue_key, None)
        self.touched[host.name] = host

    def drop_queued(self, host: Host, queue_key: bytes) -> None:
        """Take one entry out of the middle of a queue."""
        host.queue(queue_key[4]).remove(queue_key)
        self._taken(host, queue_key)
        self.schedule(host)

    def rank_again(self, key: bytes, state: bytes, bonus_s: float) -> None:
        """Move a queued URL to the rank that its new bonus gives it; what this turn queued stays where it is."""
        old = state[1:]
        raw = self.port.get(Table.QUEUE, old)
        if raw is None:
            return
        entry = rows.entry_of(raw)
        url = split_once(entry.url)
        assert url is not None, entry.url
        host, (place, rank) = self.hosts.get(url.host), self.rank(entry)
        self.serial += 1
        new = rows.queue_key(int.from_bytes(old[:4], "big"), place, rank - bonus_s, self.serial)
        self.set_known(key, state[:1] + new)
        self.put(Table.QUEUE, old, None)
        self.put(Table.QUEUE, new, raw)
        if host is not None:
            host.queue(place).remove(old)
            host.queue(place).push(new, raw)
            self.touched[host.name] = host
            self.schedule(host)

    def wait(self, key: bytes, entry: Entry, due_at: float) -> None:
        """Let a queued entry wait outside its host's queue until `due_at`."""
        self.serial += 1
        place = rows.waiting_key(due_at, self.serial)
        self.ledger.queued += 1
        self.set_known(key, rows.REQUEUED + place)
        self.put(Table.WAITING, place, rows.pack_entry(entry))
        self.remember_waiting(place, entry, due_at)

    def remember_waiting(self, place: bytes, entry: Entry, due_at: float) -> None:
        """Hold a waiting entry in memory."""
        self.waiting_entries[place] = entry
        heapq.heappush(self.waiting, (due_at, place))

    def stop_waiting(self, place: bytes) -> Entry:
        """Take an entry away from the waiting."""
        self.put(Table.WAITING, place, None)
        self.ledger.queued -= 1
        return self.waiting_entries.pop(place)

    def settle_done(self, key: bytes) -> None:
        """A URL got its answer: the line of the crawl log that was written last."""
        self.ledger.done += 1
        self.set_known(key, rows.DONE + self.seq.to_bytes(8, "big"))

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
        settled = self.fresh_settled[key] = Settled(word, reason, detail[:500], now, entry)
        self.put(Table.SETTLED, rows.settled_key(reason, key), rows.pack(settled))

    def settled(self, reason: str, key: bytes) -> Settled:
        """Give how a URL was settled with that reason."""
        found = self.fresh_settled.get(key)
        if found is None or found.reason != reason:
            raw = self.port.get(Table.SETTLED, rows.settled_key(reason, key))
            assert raw is not None, (reason, key)
            found = rows.settled_of(raw)
        return found

    def unsettle(self, key: bytes, settled: Settled) -> None:
        """Forget that a URL failed or was refused; the caller queues it again."""
        bump(self.ledger.failed if settled.state == "failed" else self.ledger.refused, settled.reason, -1)
        self.fresh_settled.pop(key, None)
        self.put(Table.SETTLED, rows.settled_key(settled.reason, key), None)

    # --- leases ---

    def lease(self, lease: Lease) -> str:
        """Write a lease down; the result is its id RUN-SERIAL."""
        self.lease_serial += 1
        name = f"{self.run}-{self.lease_serial}"
        self.remember_lease(name, lease)
        self.put(Table.LEASES, name.encode(), rows.pack(lease))
        return name

    def remember_lease(self, name: str, lease: Lease) -> None:
        """Hold a lease that is out until it ends or runs out."""
        self.leases[name] = lease
        heapq.heappush(self.expiries, (lease.expires_at, name))
        if len(self.expiries) > 2 * len(self.leases) + EXPIRIES_SPARE:
            self.expiries = sorted((lease.expires_at, name) for name, lease in self.leases.items())

    def next_expiry(self) -> tuple[float, str] | None:
        """Give the lease that runs out first, and when."""
        while self.expiries and self.expiries[0][1] not in self.leases:
            heapq.heappop(self.expiries)
        return self.expiries[0] if self.expiries else None

    def end_lease(self, name: str) -> Lease:
        """Strike a lease out."""
        self.put(Table.LEASES, name.encode(), None)
        return self.leases.pop(name)

    # --- start ---

    def load_meta(self) -> None:
        """Read the counters and serial numbers."""
        raw = self.port.get(Table.META, b"ledger")
        if raw is not None:
            self.ledger = ledger_of(raw)
        serials = self.port.get(Table.META, b"serials")
        if serials is not None:
            self.serial, self.host_numbers, self.seq = (int(part) for part in serials.split())
        self.lengths.load(self.port.get(Table.META, b"lengths"), rows.each(self.port.scan, Table.LENGTHS))

    def key_of(self, entry: Entry) -> bytes:
        """Give the key of an entry's URL."""
        url = split(entry.url)
        assert url is not None, entry.url
        return url_key(url)
