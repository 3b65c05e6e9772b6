"""Is there room on the disk to go on fetching?

Below --min-free fetching pauses; it goes on when a fifth more than that is free, so that it does not stutter at the edge.
A pause longer than the operator's patience (--max-rest) ends the stage. Pure: time is an argument. Called by
stages/fetchroom.
"""

from __future__ import annotations

from crawltool import limits


class DiskRoom:
    """The rule and its state. `paused_at` is when the pause began (None: no pause)."""

    def __init__(self, least_bytes: int, patience_s: float) -> None:
        self.least_bytes, self.patience_s = least_bytes, patience_s
        self.paused_at: float | None = None

    def look(self, free_bytes: int, now: float) -> bool:
        """Take the disk's free bytes; tells whether fetching may go on."""
        if self.paused_at is None:
            if free_bytes < self.least_bytes:
                self.paused_at = now
        elif free_bytes >= self.least_bytes * limits.FREE_AGAIN_FACTOR:
            self.paused_at = None
        return self.paused_at is None

    def is_over(self, now: float) -> bool:
        """Tell whether the pause has lasted as long as one waits for somebody to free space."""
        return self.paused_at is not None and now - self.paused_at >= self.patience_s


def least_bytes(asked: int | None, disk_bytes: int) -> int:
    """Give --min-free, or its default for a disk of that size."""
    return asked if asked is not None else min(limits.FREE_BYTES_MIN, int(limits.FREE_SHARE_MIN * disk_bytes))
