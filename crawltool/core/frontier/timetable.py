"""Who may be asked now, and who next? The clocks of hosts and addresses as heaps.

Part of law 5: nothing else makes a host fetchable. Addresses wait in a heap by time; so do the hosts of each. A host whose time
came is enrolled at its address by class and rank, and so is an address whose slot is free, so that core/frontier/turnstile can
choose the class and rank chooses within it. Old places stay in the heaps and are skipped when they are met. The base of
core/frontier/workbench, which knows which hosts there are.
"""

from __future__ import annotations

import heapq
from math import inf

from crawltool.core.frontier import rows
from crawltool.core.frontier.hosts import Address, Host
from crawltool.core.frontier.politeness import Domain, Policy, Slots
from crawltool.core.frontier.queue import Scan
from crawltool.core.frontier.rows import CLASSES, Lease
from crawltool.core.frontier.turnstile import Turnstile

PLACES = range(CLASSES)
ENROLLED = -inf  # Host.scheduled_at of a host whose time came


class Timetable:
    """The clocks and heaps."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0.0  # of this turn
        self.addresses_from = 0.0  # an address that is met first in this run may be asked from then on
        self.domains_from = 0.0  # and a domain
        self.addresses: dict[str, Address] = {}
        self.domains: dict[str, Domain] = {}
        self.heap: list[tuple[float, int, Address]] = []  # addresses by time
        self.ready: tuple[list[tuple[float, int, Address]], ...] = ([], [], [], [])  # those whose time came, by rank
        self.turnstile = Turnstile()
        self.leaving: list[tuple[float, int, Host | Address | Domain]] = []  # heap of what may be forgotten, by time
        self.serial = 0  # queue keys and ties
        self.scan_queue: Scan = lambda start, end, at_most: []

    # --- where hosts stand ---

    def address(self, ip: str) -> Address:
        """Give an address and its clock."""
        address = self.addresses.get(ip)
        if address is None:
            slots = Slots.all_free(self.policy.address_slots, self.addresses_from)
            address = self.addresses[ip] = Address(ip, slots)
        return address

    def schedule(self, host: Host) -> None:
        """Put a host where its clocks, and the heads of its queues, say."""
        at, address = host.ready_at(), host.address
        if host.scheduled_at == ENROLLED:
            if at <= self.now and address is not None:
                self._enrol(host, address)
            else:
                host.ranks = [inf] * CLASSES
                host.scheduled_at = inf
        if host.scheduled_at not in (ENROLLED, at):
            host.scheduled_at = at
            if at < inf and address is not None:
                self.serial += 1
                heapq.heappush(address.hosts, (at, self.serial, host))
        if address is not None:
            self.schedule_address(address)

    def _enrol(self, host: Host, address: Address) -> None:
        """Let a host whose time came stand in the class of each of its queues by the rank of its head."""
        host.scheduled_at = ENROLLED
        for place, queue in enumerate(host.queues):
            if queue is None and host.ranks[place] == inf:
                continue
            head = queue.head(self.scan_queue) if queue is not None else None
            rank = rows.rank_of(head[0]) if head is not None else inf
            if rank != host.ranks[place]:
                host.ranks[place] = rank
                if rank < inf:
                    self.serial += 1
                    heapq.heappush(address.ready[place], (rank, self.serial, host))

    def schedule_address(self, address: Address) -> None:
        """Put an address where its clock and its hosts say: among the ready ones, and where its next host becomes ready."""
        free_at, hosts, now = address.ready_at(), address.hosts, self.now
        while hosts and (
            hosts[0][0] <= now >= free_at or hosts[0][2].scheduled_at != hosts[0][0] or hosts[0][2].address is not address
        ):
            at, _, host = heapq.heappop(hosts)
            if host.scheduled_at == at and host.address is address:
                self._enrol(host, address)
        waits = False  # for a slot, with a host that is ready
        for place, enrolled in enumerate(address.ready):
            if not enrolled and address.ranks[place] == inf:
                continue  # nearly all
            while enrolled and (enrolled[0][2].ranks[place] != enrolled[0][0] or enrolled[0][2].address is not address):
                heapq.heappop(enrolled)
            waits = waits or bool(enrolled)
            rank = enrolled[0][0] if enrolled and free_at <= now else inf
            if rank != address.ranks[place]:
                address.ranks[place] = rank
                if rank < inf:
                    self.serial += 1
                    heapq.heappush(self.ready[place], (rank, self.serial, address))
        at = free_at if waits and free_at > now else max(free_at, hosts[0][0]) if hosts else inf
        if at != address.scheduled_at:
            address.scheduled_at = at
            if at < inf:
                self.serial += 1
                heapq.heappush(self.heap, (at, self.serial, address))

    # --- who is next ---

    def pick(self) -> tuple[Host, int] | None:
        """Give a host that may be asked now, and the class of its queue whose turn it is."""
        while True:
            self._wake()
            present = [place for place in PLACES if self.ready[place] and self._first(place) is not None]
            if not present:
                return None
            place = self.turnstile.next(present)
            address = self.ready[place][0][2]
            host = address.ready[place][0][2]
            if host.ready_at() <= self.now and address.ready_at() <= self.now:
                return host, place
            self.schedule(host)  # the clock was set back

    def _wake(self) -> None:
        """Look again at the addresses whose time came."""
        heap = self.heap
        while heap and heap[0][0] <= self.now:
            at, _, address = heapq.heappop(heap)
            if address.scheduled_at == at:
                address.scheduled_at = inf
                self.schedule_address(address)

    def _first(self, place: int) -> Address | None:
        ready = self.ready[place]
        while ready and ready[0][2].ranks[place] != ready[0][0]:
            heapq.heappop(ready)
        return ready[0][2] if ready else None

    def next_at(self) -> float:
        """Tell when a host may be asked next; a time that has come when one is ready."""
        self._wake()
        if any(self._first(place) is not None for place in range(CLASSES)):
            return self.now
        heap = self.heap
        while heap and heap[0][2].scheduled_at != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else inf

    # --- slots ---

    def domain(self, name: str) -> Domain:
        """Give the clock of a registrable domain."""
        found = self.domains.get(name)
        if found is None:
            assert self.policy.per_domain is not None
            found = self.domains[name] = Domain(name, self.policy.per_domain, self.domains_from)
            self.leave_later(max(self.domains_from, self.now), found)
        return found

    def leave_later(self, at: float, what: Host | Address | Domain) -> None:
        """Look at `at` whether something may be forgotten."""
        self.serial += 1
        heapq.heappush(self.leaving, (at, self.serial, what))

    def take_slots(self, host: Host, lease: Lease) -> None:
        """Take a slot of a host, of its address and of its domain for a lease."""
        address = host.address
        assert address is not None
        lease.address = address.ip
        lease.slot_at = host.slots.take()
        lease.ip_slot_at = address.slots.take()
