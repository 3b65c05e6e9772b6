"""How does a reader take segments out of a spool, and what becomes of those whose reader has died?

Steps 5 and 6 of the contract in stores/spool; law 4 for all records, and its exception for targets (at_most_once).
An owner is a file in owners/ whose flock a living reader holds: the kernel lets go of it at any kill, and no number of a
process that has been given again can be taken for it. Called by stages/feeds.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
import time
from collections import deque
from pathlib import Path
from typing import BinaryIO

from crawltool import limits
from crawltool.errors import CannotHold, NoInput
from crawltool.stores import atomic
from crawltool.stores.spool import create, listing, writers_alive

QUIET_NS = 100_000_000


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
        self._new = self.path / "new"
        self._listed_ns = 0  # time of new/ when it was last listed and surely quiet

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
            if fresh and not self._look():
                return None
            while self._waiting:
                name = self._waiting.popleft()
                try:
                    (self.path / "new" / name).rename(self._mine(name))
                    return name
                except FileNotFoundError:
                    continue  # another reader was faster
        return None

    def _look(self) -> bool:
        """List new/, unless the folder's time says that nothing has moved since the last list; tell whether it was listed."""
        self._clear_trigger()  # before the look, so that a poke during it is kept
        changed_ns = self._new.stat().st_mtime_ns
        if changed_ns == self._listed_ns:
            return False
        # The kernel's file times are some milliseconds coarse: a young one may hide a change that follows it.
        self._listed_ns = changed_ns if time.time_ns() - changed_ns > QUIET_NS else 0
        self._waiting.extend(listing(self._new))
        return True

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
        self._looked_at, self._listed_ns = now, 0
        held: dict[str, list[str]] = {owner: [] for owner in listing(self.path / "owners")}
        for entry in listing(self.path / "cur"):
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
        if self._taken_over or listing(self.path / "new"):
            return False
        return self.at_most_once or all(name.endswith(f".{self._owner}") for name in listing(self.path / "cur"))

    def writers_alive(self) -> bool:
        """Tell whether a writer holds the spool open."""
        return writers_alive(self.path)

    def ended(self) -> bool:
        """Tell whether the spool is over: closed for good, its writers gone, and empty (looked at in this order)."""
        return (self.path / ".end").exists() and not self.writers_alive() and self.is_empty()

    def close(self) -> None:
        """Let go of the spool; what is still claimed is published again."""
        for entry in listing(self.path / "cur"):
            name, _, owner = entry.rpartition(".")
            if owner == self._owner:
                (self.path / "cur" / entry).rename(self.path / "new" / name)
        (self.path / "owners" / self._owner).unlink(missing_ok=True)
        self._lock.release()
        if self._trigger is not None:
            os.close(self._trigger)
            self._trigger = None
