"""A host's life as a table, and hosts and addresses as they are in memory.

The law: everything that moves a host from one state to another is a row of TRANSITIONS, nothing else may. Whether a
host in state `open` may be asked at this instant is not a state but a fact of its clocks (core/frontier/politeness).
crawltool-frontier(1) prints the table. Called by core/frontier/book and the rooms that decide on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import inf

from crawltool import limits
from crawltool.core.frontier.politeness import Slots
from crawltool.core.frontier.queue import HostQueue
from crawltool.core.frontier.rows import CLASSES, AddressRow, HostRow, pack, queue_prefix


class State(StrEnum):
    """Where a host is in its life."""

    NEW = "new"  # its address is not known, or too old
    RESOLVING = "resolving"  # an address target is out
    OPEN = "open"  # may be asked when its clocks say so
    CLOSED = "closed"  # not asked again in this run: its queue failed


class Fact(StrEnum):
    """What can happen to a host."""

    ASKED_ADDRESS = "address target released"
    RESOLVED = "addresses came"
    NOT_RESOLVED = "the look-up failed for now"
    STALE = "the addresses are too old"
    HOPELESS = "no such name, blocked address, or too many failures in a row"
    REVIVED = "next run, or the operator"


TRANSITIONS: dict[tuple[State, Fact], State] = {
    (State.NEW, Fact.ASKED_ADDRESS): State.RESOLVING,
    (State.RESOLVING, Fact.RESOLVED): State.OPEN,
    (State.RESOLVING, Fact.NOT_RESOLVED): State.NEW,
    (State.OPEN, Fact.STALE): State.NEW,
    (State.NEW, Fact.RESOLVED): State.OPEN,  # a late answer, or a literal address
    (State.NEW, Fact.HOPELESS): State.CLOSED,
    (State.RESOLVING, Fact.HOPELESS): State.CLOSED,
    (State.OPEN, Fact.HOPELESS): State.CLOSED,
    (State.CLOSED, Fact.REVIVED): State.NEW,
}
FACTS_IGNORED: frozenset[tuple[State, Fact]] = frozenset(
    {
        (State.OPEN, Fact.RESOLVED),  # a late answer to an address lease that ran out
        (State.OPEN, Fact.NOT_RESOLVED),
        (State.NEW, Fact.NOT_RESOLVED),
        (State.CLOSED, Fact.RESOLVED),
        (State.CLOSED, Fact.NOT_RESOLVED),
        (State.CLOSED, Fact.HOPELESS),
    }
)


class Address:
    """One IP address: its clock, its hosts that are not ready by time, and its ready ones by class and rank."""

    __slots__ = ("hosts", "ip", "members", "ranks", "ready", "row", "scheduled_at", "slots")

    def __init__(self, ip: str, slots: Slots) -> None:
        self.ip = ip
        self.row: AddressRow | None = None  # hosts here complained
        self.slots = slots
        self.members = 0  # hosts in memory that are asked here
        self.hosts: list[tuple[float, int, Host]] = []
        self.ready: tuple[list[tuple[float, int, Host]], ...] = ([], [], [], [])
        self.scheduled_at = inf  # its valid place in the heap of addresses by time
        self.ranks = [inf] * CLASSES  # its valid places among the ready addresses

    def ready_at(self) -> float:
        """Tell when a slot may be used."""
        return self.slots.ready_at() if self.row is None else max(self.slots.ready_at(), self.row.rest_until)

    def quiet_at(self) -> float:
        """Tell when it may be forgotten, if no host is asked here any more."""
        return self.slots.latest() if self.row is None else max(self.slots.latest(), remembered_until(self.row))

    def complain(self, name: str, now: float, length_s: float) -> AddressRow:
        """Note that a host here said 429 or 503 and rests so long. Where several do, the address itself is in trouble."""
        row = self.row = self.row or AddressRow()
        row.complaints.pop(name, None)
        row.complaints[name] = now
        if len(row.complaints) > limits.COMPLAINING_HOSTS:
            del row.complaints[next(iter(row.complaints))]
        since = now - limits.COMPLAINING_S
        if sum(at >= since for at in row.complaints.values()) >= limits.COMPLAINING_HOSTS and now + length_s > row.rest_until:
            row.rest_until, row.rest_s = now + length_s, length_s  # never shortened (law 8)
        return row


class Host:
    """One host name in memory: its durable row, its queues, and what is out."""

    __slots__ = (
        "address",
        "dirty",
        "full",
        "is_leaving",
        "leased",
        "name",
        "not_before",
        "parked",
        "queued",
        "queues",
        "ranks",
        "row",
        "scheduled_at",
        "slots",
        "state",
        "wants_address",
    )

    def __init__(self, name: str, row: HostRow, slots: Slots, lengths: Sequence[int]) -> None:
        """lengths: what is queued in each class, all of it in the store."""
        self.name = name
        self.row = row
        self.state = State(row.state)
        self.queues: list[HostQueue | None] = [None] * CLASSES
        self.queued = 0
        for place, length in enumerate(lengths):
            if length:
                self.queued += length
                self.queue(place).more = True
        self.slots = slots
        self.address: Address | None = None
        self.leased = 0
        self.parked = False  # waits for rules that are under way
        self.full = False  # its page limit is reached, leases that are out included
        self.not_before = 0.0  # its turn among the hosts of its registrable domain
        self.scheduled_at = inf  # its valid place in its address's heap
        self.ranks = [inf] * CLASSES  # its valid places among the ready hosts of its address
        self.dirty = False
        self.wants_address = False  # stands among the unresolved
        self.is_leaving = False  # stands among those that may be forgotten

    def queue(self, place: int) -> HostQueue:
        """Give the queue of a class."""
        found = self.queues[place]
        if found is None:
            found = self.queues[place] = HostQueue(queue_prefix(self.row.number, place), more=False)
        return found

    def meet(self, fact: Fact) -> None:
        """Move by the table; a fact that the table does not know in this state is a bug."""
        pair = (self.state, fact)
        if pair in FACTS_IGNORED:
            return
        self.state = TRANSITIONS[pair]
        self.wants_address = self.wants_address and self.state is State.NEW
        self.dirty = True

    def ready_at(self) -> float:
        """Tell when its next target may leave; infinity while it waits for something else than time."""
        if self.queued == 0 or self.parked or self.full or self.state is not State.OPEN:
            return inf
        return max(self.slots.ready_at(), self.row.rest_until, self.not_before)

    def rest_until(self, until: float, length_s: float) -> None:
        """Rest the whole host; a rest is never shortened (law 8)."""
        if until > self.row.rest_until:
            self.row.rest_until, self.row.backoff_s = until, length_s
            self.dirty = True

    def packed_row(self) -> bytes:
        """Give its row as it is saved."""
        row = self.row
        row.state = self.state.value
        row.slots = list(self.slots.free)
        return pack(row)


def remembered_until(row: AddressRow) -> float:
    """Tell when nothing follows any more from what was said at an address."""
    return max(row.rest_until, max(row.complaints.values(), default=0.0) + limits.COMPLAINING_S)


def is_literal(name: str) -> bool:
    """Tell whether a host name is an IP address (as WHATWG writes it: dotted quad, or IPv6 in brackets)."""
    return name.startswith("[") or (name.replace(".", "").isdigit() and name.count(".") == 3)


def restored_slots(row: HostRow, count: int, taken: int, now: float) -> Slots:
    """Give a host's clocks after a restart: no stored rest exceeds its recorded length, counted from now.

    `taken` slots are held by leases that still run. Where slots became fewer the latest times stay; where they became
    more the new ones wait as long as the others.
    """
    wanted = max(count - taken, 0)
    latest = now + row.rest_s
    times = [min(at, latest) for at in sorted(row.slots)]
    fewer = max(len(times) - wanted, 0)
    floor, times = max(times[:fewer], default=0.0), times[fewer:]
    while len(times) < wanted:
        times.append(max(times, default=latest if row.rest_s else 0.0))
    return Slots(count, times, taken, floor)
