"""The queue of one class of one host: the head in memory, the rest in the store.

Called by core/frontier/book. The queue is ordered by key (rank, then serial). A few entries at its head are held here,
packed as they are in the store; what is pushed behind them goes to the store only. The last popped key bounds every read
from below: without it a read walks over all tombstones of what was popped before.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable

HELD = 32  # entries in memory

Scan = Callable[[bytes, bytes, int], list[tuple[bytes, bytes]]]  # (first key, end key, at most) -> rows


class HostQueue:
    """One queue. `scan` reads what was committed; what this turn pushed or took is in `fresh` and `gone`."""

    __slots__ = ("bound", "buffer", "fresh", "gone", "more", "prefix")

    def __init__(self, prefix: bytes, *, more: bool) -> None:
        self.prefix = prefix
        self.bound = prefix
        self.more = more  # the store may hold keys behind the buffer
        self.buffer: list[tuple[bytes, bytes]] = []
        self.fresh: dict[bytes, bytes] = {}
        self.gone: set[bytes] = set()

    def push(self, key: bytes, row: bytes) -> bool:
        """Add an entry; the caller saves it too. Tells whether it is the first now, as far as is known."""
        if key <= self.bound:  # an entry that came back from a void lease
            self.bound = self.prefix
        self.gone.discard(key)
        buffer = self.buffer
        if buffer and key > buffer[-1][0]:
            if self.more or len(buffer) >= HELD:
                self.fresh[key] = row
                self.more = True
            else:
                buffer.append((key, row))
            return False
        if self.more and not buffer:
            self.fresh[key] = row
            return True
        bisect.insort(buffer, (key, row))
        if len(buffer) > HELD:
            self.fresh.update(buffer[HELD:])
            del buffer[HELD:]
            self.more = True
        return buffer[0][0] == key

    def find(self, key: bytes) -> bytes | None:
        """Give an entry's row if it is in memory."""
        return self.fresh.get(key) or next((row for place, row in self.buffer if place == key), None)

    def head(self, scan: Scan) -> tuple[bytes, bytes] | None:
        """Give the first entry's key and row, or None when the queue is empty."""
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
        if self.fresh:
            self.fresh.clear()
        if self.gone:
            self.gone.clear()

    def _refill(self, scan: Scan) -> None:
        start = max(self.bound, self.prefix)
        end = (int.from_bytes(self.prefix, "big") + 1).to_bytes(len(self.prefix), "big")
        rows = scan(start, end, HELD + len(self.gone))
        found = {key: value for key, value in rows if key not in self.gone}
        full = len(rows) >= HELD + len(self.gone)
        last = max((key for key, _ in rows), default=b"")
        for key, row in self.fresh.items():
            if not full or key < last:
                found[key] = row
        self.buffer = sorted(found.items())
        self.fresh = {key: row for key, row in self.fresh.items() if key not in found}
        self.more = full
