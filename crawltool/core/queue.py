"""The queue of one class of one host: the head in memory, the rest in the store.

Called by core/book. The queue is ordered by key (rank, then serial). A few entries at its head are held here; what is
pushed behind them goes to the store only. The last popped key bounds every read from below: without it a read walks
over all tombstones of what was popped before.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable

from crawltool.core.rows import Entry, entry_of

HELD = 64  # entries in memory after a refill; twice as many at most

Scan = Callable[[bytes, bytes, int], list[tuple[bytes, bytes]]]  # (first key, end key, at most) -> rows


class HostQueue:
    """One queue. `scan` reads what was committed; what this turn pushed or took is in `fresh` and `gone`."""

    __slots__ = ("bound", "buffer", "fresh", "gone", "more", "prefix")

    def __init__(self, prefix: bytes, *, more: bool) -> None:
        self.prefix = prefix
        self.bound = prefix
        self.more = more  # the store may hold keys behind the buffer
        self.buffer: list[tuple[bytes, Entry]] = []
        self.fresh: dict[bytes, Entry] = {}
        self.gone: set[bytes] = set()

    def push(self, key: bytes, entry: Entry) -> None:
        """Add an entry; the caller saves it too."""
        if key <= self.bound:  # an entry that came back from a void lease
            self.bound = self.prefix
        self.gone.discard(key)
        if self.more and not (self.buffer and key < self.buffer[-1][0]):
            self.fresh[key] = entry
            return
        bisect.insort(self.buffer, (key, entry), key=lambda pair: pair[0])
        if len(self.buffer) > 2 * HELD:
            self.fresh.update(self.buffer[HELD:])
            del self.buffer[HELD:]
            self.more = True

    def find(self, key: bytes) -> Entry | None:
        """Give an entry that is in memory."""
        return self.fresh.get(key) or next((entry for place, entry in self.buffer if place == key), None)

    def head(self, scan: Scan) -> tuple[bytes, Entry] | None:
        """Give the first entry, or None when the queue is empty."""
        if not self.buffer and (self.more or self.fresh):
            self._refill(scan)
        return self.buffer[0] if self.buffer else None

    def pop(self) -> None:
        """Take the first entry away; the caller deletes it from the store too."""
        key, _ = self.buffer.pop(0)
        self.gone.add(key)
        self.bound = max(self.bound, key)

    def remove(self, key: bytes) -> None:
        """Take any entry away."""
        self.gone.add(key)
        self.fresh.pop(key, None)
        self.buffer = [pair for pair in self.buffer if pair[0] != key]

    def committed(self) -> None:
        """The turn is in the store: reads see it now."""
        self.fresh.clear()
        self.gone.clear()

    def _refill(self, scan: Scan) -> None:
        start = max(self.bound, self.prefix)
        end = (int.from_bytes(self.prefix, "big") + 1).to_bytes(len(self.prefix), "big")
        rows = scan(start, end, HELD + len(self.gone))
        found = {key: entry_of(value) for key, value in rows if key not in self.gone}
        full = len(rows) >= HELD + len(self.gone)
        last = max((key for key, _ in rows), default=b"")
        for key, entry in self.fresh.items():
            if not full or key < last:
                found[key] = entry
        self.buffer = sorted(found.items(), key=lambda pair: pair[0])
        self.fresh = {key: entry for key, entry in self.fresh.items() if key not in found}
        self.more = full
