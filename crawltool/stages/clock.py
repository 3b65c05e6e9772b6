"""What time is it, for every process of one crawl?

now = offset + CLOCK_MONOTONIC: the wall clock is read once, so that no clock step (NTP, a person) makes a rest shorter
or a lease older (law 5). The monotonic clock runs on while a process is stopped (SIGSTOP) and stands still while the
machine is suspended: after a suspend `now` lags behind the wall, rests and leases are longer by that time, never
shorter. The offset of the first frontier of a boot is written to CRAWL/frontier.lock and taken over by every later
process of the same boot, a restarted frontier included: the monotonic clock is one for the whole machine, so all of
them see the same time. Used by frontier and fetch; core gets `now` as an argument.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

LOCK_NAME = "frontier.lock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class LockNote(msgspec.Struct, kw_only=True):
    """The content of frontier.lock: who runs, and on which clock."""

    run: int = 0
    boot: str = ""
    offset: float = 0.0  # epoch seconds minus CLOCK_MONOTONIC seconds
    pid: int = 0


class Clock:
    """Epoch seconds that never step."""

    def __init__(self, offset: float | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.offset = time.time() - monotonic() if offset is None else offset

    def now(self) -> float:
        """Give epoch seconds."""
        return self.offset + self._monotonic()

    def at(self, monotonic: float) -> float:
        """Turn a time.monotonic() reading into epoch seconds."""
        return self.offset + monotonic

    def note(self, run: int, pid: int) -> bytes:
        """Write what belongs into frontier.lock."""
        return msgspec.json.encode(LockNote(run=run, boot=boot_id(), offset=self.offset, pid=pid)) + b"\n"


def boot_id() -> str:
    """Give the kernel's name for this boot; '' where it has none (then no offset is shared)."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def read_note(data: bytes) -> LockNote:
    """Read frontier.lock; an empty, torn or foreign one counts as run 0 of no boot."""
    try:
        return msgspec.json.decode(data, type=LockNote)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
        return LockNote()


def from_note(note: LockNote) -> Clock:
    """Share the offset of a note of this boot; otherwise read the wall clock."""
    return Clock(note.offset if note.boot and note.boot == boot_id() else None)


def of_crawl(crawl: Path | str | None) -> Clock:
    """Give the clock of a crawl directory, its own when there is none."""
    try:
        data = (Path(crawl) / LOCK_NAME).read_bytes() if crawl is not None else b""
    except OSError:
        data = b""
    return from_note(read_note(data))
