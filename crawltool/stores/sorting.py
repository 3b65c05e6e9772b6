"""How are more lines sorted than fit into memory?

Lines are held up to limits.SORT_BYTES, then sorted into an unlinked temporary file; at the end all files are merged. The
order is that of the bytes, as with LC_ALL=C sort. Called by stores/warcverify and stores/warcindex.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO

from crawltool import limits
from crawltool.stores import atomic

_OVERHEAD = 60  # bytes of a bytes object and its place in a list


class Sorter:
    """add() lines, each with its newline; lines() gives them in order, once. A context manager: lets go of the disk."""

    def __init__(self, memory_bytes: int = limits.SORT_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._held: list[bytes] = []
        self._bytes = 0
        self._runs: list[IO[bytes]] = []

    def add(self, line: bytes) -> None:
        """Take a line. Raises DiskTrouble when the temporary folder is full."""
        self._held.append(line)
        self._bytes += len(line) + _OVERHEAD
        if self._bytes >= self._memory_bytes:
            self._held.sort()
            self._runs.append(self._written(iter(self._held)))
            self._held, self._bytes = [], 0
            if len(self._runs) >= limits.SORT_RUNS_MAX:
                merged = self._written(heapq.merge(*self._runs))
                self.close()
                self._runs = [merged]

    def lines(self) -> Iterator[bytes]:
        """Give all lines, sorted."""
        self._held.sort()
        yield from heapq.merge(self._held, *self._runs)

    def _written(self, lines: Iterator[bytes]) -> IO[bytes]:
        with atomic.disk(tempfile.gettempdir()):
            run = tempfile.TemporaryFile(prefix="crawltool-")  # noqa: SIM115 -- close() closes it
            run.writelines(lines)
            run.seek(0)
        return run

    def close(self) -> None:
        """Let go of all files."""
        for run in self._runs:
            run.close()
        self._runs.clear()

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
