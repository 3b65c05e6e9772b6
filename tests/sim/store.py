"""The store port over dicts, with what a crash may take away: a turn's batch is there whole or not at all."""

from __future__ import annotations

import bisect

from crawltool.core.frontier.rows import Save, Table


class DictStore:
    """core/frontier/workbench.Port over dicts; keys are kept sorted per table."""

    def __init__(self) -> None:
        self.rows: dict[Table, dict[bytes, bytes]] = {table: {} for table in Table}
        self.keys: dict[Table, list[bytes]] = {table: [] for table in Table}

    def commit(self, save: Save) -> None:
        for table, key, value in save:
            rows, keys = self.rows[table], self.keys[table]
            if value is None:
                if rows.pop(key, None) is not None:
                    del keys[bisect.bisect_left(keys, key)]
            else:
                if key not in rows:
                    bisect.insort(keys, key)
                rows[key] = value

    def reopen(self) -> None:
        """A process that had it open is gone, and another one opens it."""

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.rows[Table.KNOWN].get(key) for key in keys]

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self.rows[table].get(key)

    def many(self, table: Table, keys: list[bytes]) -> list[bytes | None]:
        return [self.rows[table].get(key) for key in keys]

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        keys = self.keys[table]
        first = bisect.bisect_left(keys, start)
        last = bisect.bisect_left(keys, end)
        return [(key, self.rows[table][key]) for key in keys[first : min(last, first + at_most)]]
