"""How do records wait on disk between stages, with many writers and many readers, so that no kill loses one?

A spool is a directory of segments, each a file of whole lines that moves by rename(2): tmp/ new/ cur/ gone, or bad/.
STEPS and STATES below are the contract; crawltool-spool(5) prints them. It keeps law 4: a reader lets go of a segment
only when its own output is published. Targets are the exception (take): delivered at most once. Nothing here waits:
stages/feeds and stages/outlets do, for the trigger, for a rescan or for room. This file holds the contract and the
writer, stores/spoolread the reader. Called by stages/outlets and stages/sinks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from crawltool import limits, records
from crawltool.errors import CannotHold
from crawltool.stores import atomic

STEPS: tuple[str, ...] = (
    "A writer holds a shared flock(2) on DIR/.writers for as long as it lives, and writes whole records to tmp/NAME.",
    f"The segment is closed at the first whole record after {limits.SEGMENT_RECORDS_MAX} records, "
    f"{limits.SEGMENT_BYTES_MAX // limits.MIB} MiB or {limits.SEGMENT_AGE_S * 1000:.0f} ms (a segment of targets: "
    f"{limits.TARGET_SEGMENT_RECORDS_MAX} records); links sent ahead as candidates stay with their outcome. It is synced.",
    "tmp/NAME is renamed to new/NAME and the folder synced: the segment is published.",
    "The writer pokes one byte into the FIFO DIR/trigger without waiting. A lost poke costs a reader "
    f"{limits.SPOOL_RESCAN_S:g} s, after which it looks by itself.",
    "A reader, who holds an exclusive flock on owners/OWNER, renames new/NAME to cur/NAME.OWNER: the segment is its own. "
    "A segment of targets is unlinked now, before the first target is acted on.",
    "When the reader has published its own output and saved its memory, it unlinks cur/NAME.OWNER. A segment that cannot be "
    "read goes to bad/NAME, with the reason in bad/NAME.reason.",
)
# (where the segment is, what that means, what it costs when the machine or the process dies right there)
STATES: tuple[tuple[str, str, str], ...] = (
    (
        "tmp/NAME",
        "being written",
        "Nothing was promised: the input it was made from was not let go. Removed by the next writer that finds no other alive.",
    ),
    ("new/NAME", "published, nobody's", "Nothing. At worst the poke is missing, and a reader comes by its own clock."),
    (
        "cur/NAME.OWNER",
        "claimed by a living reader",
        "Once the owner's flock is gone another reader claims it again, and its records are worked on a second time. "
        "Targets are not: their segment is set aside in bad/, and their leases expire.",
    ),
    ("(gone)", "done", "Nothing: what was made from it had been published before."),
    ("bad/NAME", "set aside, reason in bad/NAME.reason", "Nothing. It stays until a person moves it back to new/ or removes it."),
)
_FOLDERS = ("tmp", "new", "cur", "bad", "owners")
_AHEAD = frozenset({"candidate", "text"})  # lines that belong to the outcome behind them


def create(path: Path | str) -> Path:
    """Make a spool where there is none, or complete one; safe while others do the same."""
    path = Path(path)
    with atomic.disk(path):
        for name in _FOLDERS:
            (path / name).mkdir(parents=True, exist_ok=True)
        if (path / "trigger").exists():
            return path
        # A file system without FIFOs only costs readers the rescan time.
        with contextlib.suppress(OSError):
            os.mkfifo(path / "trigger", 0o644)
        atomic.sync_folder(path)
        atomic.sync_folder(path.parent)
    return path


def depth(path: Path | str) -> int:
    """Count the segments that wait in new/."""
    return len(listing(Path(path) / "new"))


def writers_alive(path: Path | str) -> bool:
    """Tell whether a writer holds the spool open, by its flock."""
    try:
        atomic.lock(Path(path) / ".writers").release()
    except CannotHold:
        return True
    return False


def listing(folder: Path) -> list[str]:
    """Give the names in a folder, oldest first; those that begin with a dot are not ours."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


class SpoolWriter:
    """Publish lines into a spool.

    records_max bounds a segment; depth_max is what full() compares with, None for an inbox; durable=False leaves out
    fsync, for segments whose loss costs no more than a kill does (targets).
    """

    def __init__(
        self,
        path: Path | str,
        *,
        records_max: int = limits.SEGMENT_RECORDS_MAX,
        depth_max: int | None = None,
        durable: bool = True,
    ) -> None:
        self.path = create(path)
        self.records_max, self.depth_max, self.durable = records_max, depth_max, durable
        self._id = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._serial, self._stamp = 0, 0
        self._lock = self._hold()
        (self.path / ".end").unlink(missing_ok=True)

    def _hold(self) -> atomic.Lock:
        with contextlib.suppress(CannotHold), atomic.lock(self.path / ".writers"):
            for torn in (self.path / "tmp").iterdir():  # nobody else writes: what lies there has lost its writer
                torn.unlink(missing_ok=True)
        return atomic.lock(self.path / ".writers", shared=True, wait=True)

    def publish(self, lines: Sequence[bytes]) -> None:
        """Put lines, each with its newline, into new/ as one segment or several. Raises DiskTrouble; then none or some are in."""
        if not lines:
            return
        assert lines[-1].endswith(b"\n"), lines[-1][-40:]
        written: list[Path] = []
        with atomic.disk(self.path):
            try:
                for piece in cut(lines, self.records_max):
                    written.append(self.path / "tmp" / self._name())
                    self._write(written[-1], b"".join(piece))
            except BaseException:  # a full disk: give back what the other pieces took
                for path in written:
                    path.unlink(missing_ok=True)
                raise
            for path in written:
                path.rename(self.path / "new" / path.name)
            if self.durable:
                atomic.sync_folder(self.path / "new")
        self._poke()

    def full(self) -> bool:
        """Tell whether a forward spool holds as many segments as it may; the caller waits, then asks again."""
        return self.depth_max is not None and depth(self.path) >= self.depth_max

    def close(self, *, end: bool = False) -> None:
        """Let go. With end the spool is over once it is empty and its last writer has gone."""
        if end:
            atomic.write_file(self.path / ".end", b"", durable=self.durable)
        self._lock.release()
        self._poke()

    def _name(self) -> str:
        # Readers take names in order; a wall clock that steps back must not turn one writer's order round.
        self._stamp = max(self._stamp + 1, time.time_ns())
        self._serial += 1
        return f"{self._stamp:020d}-{self._id}-{self._serial:06d}.jsonl"

    def _write(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            atomic.write_all(descriptor, data)
            if self.durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _poke(self) -> None:
        # ENXIO: nobody listens. EAGAIN: the FIFO is full of pokes already. A lost one is made good by the rescan.
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path / "trigger", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"\0")
            finally:
                os.close(descriptor)


def cut(lines: Sequence[bytes], records_max: int) -> list[Sequence[bytes]]:
    """Cut lines into segments, never between a candidate or text line and the outcome that it was sent ahead of."""
    if len(lines) <= records_max and sum(map(len, lines)) <= limits.SEGMENT_BYTES_MAX:
        return [lines]
    pieces: list[Sequence[bytes]] = []
    piece: list[bytes] = []
    size = 0
    for group in _groups(lines):
        piece += group
        size += sum(map(len, group))
        if len(piece) >= records_max or size >= limits.SEGMENT_BYTES_MAX:
            pieces.append(piece)
            piece, size = [], 0
    return [*pieces, piece] if piece else pieces


def _groups(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    ahead: list[bytes] = []
    for line in lines:
        kind = records.type_of(line)
        if kind in _AHEAD:
            ahead.append(line)
            continue
        if kind == "outcome":
            yield [*ahead, line]
        else:
            yield from ([one] for one in ahead)
            yield [line]
        ahead = []
    yield from ([one] for one in ahead)
