"""How long is each queue? The counts in memory, and how they survive a crash without a row for each host in each turn.

One count for each host and priority class, in one array: 16 bytes a host. A turn saves the counts that it changed as one
row; when enough such rows lie there, all counts are saved as one and the rows go. Called by core/frontier/book.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from crawltool.core.frontier.rows import CLASSES, Save, Table

ROWS_MAX = 10_000  # rows of turns before all counts are saved as one
CHANGES_MIN = 200_000  # changed counts before that; or twice as many as there are counts
_META = b"lengths"


class Lengths:
    """Counts by line: host number times CLASSES plus class."""

    def __init__(self) -> None:
        self.counts = array("I")
        self.longest = 0  # no count was ever larger: most crawls need not look at a host's queue to know that it is not full
        self.changed: set[int] = set()  # lines of this turn
        self._serial = 0
        self._saved: list[bytes] = []  # keys of the rows since the last whole save
        self._changes = 0

    def load(self, whole: bytes | None, changes: Iterable[tuple[bytes, bytes]]) -> None:
        """Take up what was saved: all counts, then the rows of turns in order."""
        self.counts = array("I", whole or b"")
        for key, row in changes:
            pairs = array("I", row)
            for line, count in zip(pairs[::2], pairs[1::2], strict=True):
                self.grow(line // CLASSES)
                self.counts[line] = count
            self._saved.append(key)
            self._changes += len(pairs) // 2
            self._serial = int.from_bytes(key, "big")
        self.longest = max(self.counts, default=0)

    def grow(self, host_number: int) -> None:
        """Have counts for all hosts up to that number."""
        missing = (host_number + 1) * CLASSES - len(self.counts)
        if missing > 0:
            self.counts.frombytes(bytes(missing * self.counts.itemsize))

    def add(self, host_number: int, place: int, by: int) -> int:
        """Change a count; the result is the new one."""
        line = host_number * CLASSES + place
        count = self.counts[line] + by
        self.counts[line] = count  # raises OverflowError below zero
        if count > self.longest:
            self.longest = count
        self.changed.add(line)
        return count

    def of_host(self, host_number: int) -> int:
        """Count all that is queued for a host."""
        counts, line = self.counts, host_number * CLASSES
        return counts[line] + counts[line + 1] + counts[line + 2] + counts[line + 3]

    def save_into(self, save: Save) -> None:
        """Add what this turn changed to its batch."""
        if not self.changed:
            return
        counts, pairs = self.counts, array("I")
        for line in self.changed:
            pairs.append(line)
            pairs.append(counts[line])
        self._changes += len(self.changed)
        self.changed.clear()
        if self._changes > max(CHANGES_MIN, 2 * len(counts)) or len(self._saved) >= ROWS_MAX:
            save.append((Table.META, _META, counts.tobytes()))
            save += [(Table.LENGTHS, key, None) for key in self._saved]
            self._saved.clear()
            self._changes = 0
            return
        self._serial += 1
        key = self._serial.to_bytes(8, "big")
        self._saved.append(key)
        save.append((Table.LENGTHS, key, pairs.tobytes()))
