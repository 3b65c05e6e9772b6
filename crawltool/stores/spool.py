"""How do records wait on disk between stages, with many writers and many readers, so that no kill loses one?

A spool is a directory of segments, each a file of whole lines that moves by rename(2): tmp/ new/ cur/ gone, or bad/.
STEPS and STATES below are the contract; crawltool-spool(5) prints them. It keeps law 4: a reader lets go of a segment
only when its own output is published. Targets are the exception (take): delivered at most once. Nothing here waits:
stages/sources and stages/sinks do, for the trigger, for a rescan or for room. Called by them, and by the frontier for
its inbox.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from crawltool import limits, records
from crawltool.errors import CannotHold, NoInput
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
        # A file system without FIFOs only costs readers the rescan time.
        with contextlib.suppress(FileExistsError, PermissionError, OSError):
            os.mkfifo(path / "trigger", 0o644)
    return path


def depth(path: Path | str) -> int:
    """Count the segments that wait in new/."""
    return len(_names(Path(path) / "new"))


def writers_alive(path: Path | str) -> bool:
    """Tell whether a writer holds the spool open, by its flock."""
    try:
        atomic.lock(Path(path) / ".writers").release()
    except CannotHold:
        return True
    return False


def _names(folder: Path) -> list[str]:
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
        names = []
        with atomic.disk(self.path):
            for piece in cut(lines, self.records_max):
                names.append(self._name())
                self._write(self.path / "tmp" / names[-1], b"".join(piece))
            for name in names:
                (self.path / "tmp" / name).rename(self.path / "new" / name)
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
        except BaseException:
            path.unlink(missing_ok=True)
            raise
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


class Segment:
    """A segment that this reader owns. `file` is open for reading from its first byte."""

    def __init__(self, name: str, path: Path | None, file: BinaryIO) -> None:
        self.name, self.file = name, file
        self.size_bytes = os.fstat(file.fileno()).st_size
        self._path = path  # None: let go already

    def lines(self) -> list[bytes]:
        """Read all lines, each with its newline. Only for segments known to be small; others are read through `file`."""
        found = self.file.readlines()
        if found and not found[-1].endswith(b"\n"):
            found[-1] += b"\n"
        return found

    def done(self) -> None:
        """Let go (step 6): what was made from it is published."""
        self.file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def bad(self, reason: str) -> None:
        """Set aside, with the reason for a person."""
        self.file.close()
        if self._path is not None:
            _set_aside(self._path, self.name, reason)
            self._path = None


def _set_aside(path: Path, name: str, reason: str) -> None:
    folder = path.parent.parent / "bad"
    with atomic.disk(folder):
        atomic.write_file(folder / f"{name}.reason", reason.encode() + b"\n", durable=False)
        with contextlib.suppress(FileNotFoundError):
            path.rename(folder / name)


class SpoolReader:
    """Claim segments of a spool, oldest first.

    at_most_once is for targets: claim() lets go of a segment before it hands it out, and what a dead owner held is set
    aside; otherwise what a dead owner held is claimed again. Raises NoInput when the directory is not there.
    """

    def __init__(self, path: Path | str, *, at_most_once: bool = False) -> None:
        self.path, self.at_most_once = Path(path), at_most_once
        if not self.path.is_dir():
            raise NoInput(f"{path}: no such spool")
        create(self.path)
        self.set_aside = 0  # segments of dead owners and unreadable ones
        self._owner, self._lock = self._become_owner()
        self._trigger = self._open_trigger()
        self._waiting: deque[str] = deque()  # names seen in new/
        self._taken_over: deque[str] = deque()  # names in cur/ that were a dead owner's
        self._looked_at = float("-inf")

    def _become_owner(self) -> tuple[str, atomic.Lock]:
        for _ in itertools.count():  # ends: a fresh name is taken from us at most in the instant before we lock it
            owner = f"{os.getpid()}-{secrets.token_hex(6)}"
            path = self.path / "owners" / owner
            with contextlib.suppress(CannotHold, FileNotFoundError):
                lock = atomic.lock(path)
                if path.exists():  # a reader that looks for the dead may have removed it before we held it
                    return owner, lock
                lock.release()
        raise AssertionError

    def _open_trigger(self) -> int | None:
        try:
            descriptor = os.open(self.path / "trigger", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def trigger_fd(self) -> int | None:
        """Give the descriptor that becomes readable when a segment was published; None where FIFOs do not work."""
        return self._trigger

    def claim(self) -> Segment | None:
        """Make the oldest segment ours; None when there is none now. Looks for dead owners every SPOOL_RESCAN_S."""
        while True:  # ends: each turn uses up one name
            name = self._next_name()
            if name is None:
                return None
            segment = self._open(name)
            if segment is not None:
                return segment

    def take(self) -> Segment | None:
        """Claim a segment of targets: it is let go of before this returns."""
        assert self.at_most_once
        return self.claim()

    def _next_name(self) -> str | None:
        self.look_for_the_dead()
        if self._taken_over:
            return self._taken_over.popleft()
        for fresh in (False, True):
            if fresh:
                self._clear_trigger()  # before the look, so that a poke during it is kept
                self._waiting.extend(_names(self.path / "new"))
            while self._waiting:
                name = self._waiting.popleft()
                try:
                    (self.path / "new" / name).rename(self._mine(name))
                    return name
                except FileNotFoundError:
                    continue  # another reader was faster
        return None

    def _open(self, name: str) -> Segment | None:
        path = self._mine(name)
        try:
            # Anybody may move a file into new/: never follow a link, never wait for the other end of a FIFO.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            file = os.fdopen(descriptor, "rb")
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                file.close()
                raise OSError("not a regular file")
        except OSError as error:
            self._aside(path, name, f"cannot be read: {error}")
            return None
        if not self.at_most_once:
            return Segment(name, path, file)
        path.unlink()
        return Segment(name, None, file)

    def _mine(self, name: str) -> Path:
        return self.path / "cur" / f"{name}.{self._owner}"

    def _clear_trigger(self) -> None:
        if self._trigger is not None:
            with contextlib.suppress(BlockingIOError):
                while len(os.read(self._trigger, 4096)) == 4096:
                    pass

    def look_for_the_dead(self) -> None:
        """Take over, or set aside, what owners hold whose flock is gone; at most once in SPOOL_RESCAN_S."""
        now = time.monotonic()
        if now - self._looked_at < limits.SPOOL_RESCAN_S:
            return
        self._looked_at = now
        held: dict[str, list[str]] = {owner: [] for owner in _names(self.path / "owners")}
        for entry in _names(self.path / "cur"):
            name, _, owner = entry.rpartition(".")
            held.setdefault(owner, []).append(name)
        held.pop(self._owner, None)
        for owner, names in held.items():
            self._bury(owner, names)

    def _bury(self, owner: str, names: list[str]) -> None:
        path = self.path / "owners" / owner
        try:
            lock = atomic.lock(path)  # a missing file was a dead owner's too; it is made again and removed below
        except CannotHold:
            return
        with lock:
            for name in names:
                orphan = self.path / "cur" / f"{name}.{owner}"
                if self.at_most_once:
                    self._aside(orphan, name, "its reader died; the leases of these targets expire by themselves")
                    continue
                with contextlib.suppress(FileNotFoundError):
                    orphan.rename(self._mine(name))
                    self._taken_over.append(name)
            path.unlink(missing_ok=True)

    def _aside(self, path: Path, name: str, reason: str) -> None:
        self.set_aside += 1
        _set_aside(path, name, reason)

    def is_empty(self) -> bool:
        """Tell whether nothing waits and no other reader holds a segment (it might die, and the segment come back)."""
        if self._taken_over or _names(self.path / "new"):
            return False
        return self.at_most_once or all(name.endswith(f".{self._owner}") for name in _names(self.path / "cur"))

    def writers_alive(self) -> bool:
        """Tell whether a writer holds the spool open."""
        return writers_alive(self.path)

    def ended(self) -> bool:
        """Tell whether the spool is over: closed for good, its writers gone, and empty (looked at in this order)."""
        return (self.path / ".end").exists() and not self.writers_alive() and self.is_empty()

    def close(self) -> None:
        """Let go of the spool; what is still claimed is published again."""
        for entry in _names(self.path / "cur"):
            name, _, owner = entry.rpartition(".")
            if owner == self._owner:
                (self.path / "cur" / entry).rename(self.path / "new" / name)
        (self.path / "owners" / self._owner).unlink(missing_ok=True)
        self._lock.release()
        if self._trigger is not None:
            os.close(self._trigger)
            self._trigger = None
