"""Which hosts wait for their turn to ask for an address, and which of them is next?

Most hosts of a large crawl do nothing but wait. They stand here, hot or cold, as numbers: by class and rank those that may ask
now, by time those that must rest. A number and its rank are one integer: a million waiting hosts take 0.2 GB, names included.
Called by core/frontier/workbench, which makes a host hot when it is its turn.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping
from math import inf

from crawltool.core.frontier import rows
from crawltool.core.frontier.hosts import Host, State
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.rows import CLASSES
from crawltool.core.frontier.turnstile import Turnstile

_LOW = (1 << 32) - 1
_ZERO = 1 << 60  # ranks are signed


class WaitingRoom:
    """Hosts by number. What stands here twice, or is void, is struck out when it is met."""

    def __init__(self, hosts: Mapping[str, Host], lengths: Lengths) -> None:
        """hosts: those that are hot. lengths: of the queues of all."""
        self.hosts = hosts
        self.lengths = lengths
        self.cold: dict[str, int] = {}  # name -> number of the hosts that have a queue and are not hot
        self.names: list[str | None] = []  # by number: of the hosts in memory, hot and cold
        self.due = array("d")  # by number: when it may ask
        self.fresh: tuple[list[int], ...] = ([], [], [], [])  # by class: (rank, number) of those that may ask
        self.resting: list[int] = []  # (time, number) of those that may not yet
        self.turnstile = Turnstile()

    def name(self, number: int, name: str | None) -> None:
        """Note under which number a host in memory is queued; None: it is not in memory any more."""
        missing = number + 1 - len(self.names)
        if missing > 0:
            self.names.extend([None] * missing)
            self.due.frombytes(bytes(missing * self.due.itemsize))
            self.lengths.grow(number)
        self.names[number] = name

    def wait(self, number: int, at: float, now: float) -> None:
        """Let a host wait until `at`, then for its turn in each class of its queue."""
        if at > now:
            self._rest(number, at)
            return
        line = number * CLASSES
        for place in range(CLASSES):
            if self.lengths.counts[line + place]:
                heapq.heappush(self.fresh[place], _item(at, number))

    def wait_in_class(self, number: int, place: int, rank: float) -> None:
        """Let a host wait for its turn in one class more."""
        heapq.heappush(self.fresh[place], _item(rank, number))

    def _rest(self, number: int, until: float) -> None:
        """Let a host wait for a time; what stands of it among the fresh ones, or for an earlier time, is void."""
        if self.due[number] != until:
            self.due[number] = until
            heapq.heappush(self.resting, _item(until, number))

    def next(self, now: float) -> str | None:
        """Give the name of the host whose turn it is; it stays first until its state changes."""
        resting = self.resting
        while resting and _time(resting[0]) <= now:
            item = heapq.heappop(resting)
            if self.due[item & _LOW] <= now:
                self.wait(item & _LOW, min(_time(item), now), now)
        present = [place for place in range(CLASSES) if self._first(place, now) is not None]
        return self._first(self.turnstile.next(present), now) if present else None

    def has_urgent(self, now: float) -> bool:
        """Tell whether a host may ask for something more than normal."""
        return any(self._first(place, now) is not None for place in range(rows.NORMAL))

    def next_at(self, now: float) -> float:
        """Tell when a host may ask next."""
        if any(self._first(place, now) is not None for place in range(CLASSES)):
            return now
        while self.resting:
            number = self.resting[0] & _LOW
            name = self.names[number]
            host = self.hosts.get(name or "")
            if name is not None and self.lengths.of_host(number) and (host is None or host.state is State.NEW):
                return max(_time(self.resting[0]), self.due[number])
            heapq.heappop(self.resting)
            self.due[number] = 0.0
        return inf

    def _first(self, place: int, now: float) -> str | None:
        """Give the name of the first host of a class that still wants an address; others are struck out."""
        heap = self.fresh[place]
        while heap:
            number = heap[0] & _LOW
            name = self.names[number]
            if name is not None and self.lengths.counts[number * CLASSES + place] and self.due[number] <= now:
                host = self.hosts.get(name)
                if host is None or (host.state is State.NEW and host.row.rest_until <= now):
                    return name
                if host.state is State.NEW:
                    self._rest(number, host.row.rest_until)
            heapq.heappop(heap)
        return None


def _item(at: float, number: int) -> int:
    """Pack a time or rank, in whole microseconds and never earlier, with a host number: tuples take thrice as much."""
    micros = int(at * 1e6)
    while micros / 1e6 < at:
        micros += 1
    return (micros + _ZERO) << 32 | number


def _time(item: int) -> float:
    return ((item >> 32) - _ZERO) / 1e6
