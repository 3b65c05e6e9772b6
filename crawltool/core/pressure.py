"""How many exchanges may be in flight on a machine that runs out of something?

Additive increase, multiplicative decrease: when descriptors, ports or memory run out, half of what is in the air is allowed;
each calm second gives a little back. One burst of failures is one event. Pure: time is an argument. Called by
stages/fetchpressure.
"""

from __future__ import annotations

from crawltool import limits


class Pressure:
    """The rule and its state: `allowed` is the number that holds now, at most `most` and at least one."""

    def __init__(self, most: int) -> None:
        assert most > 0
        self.most = self.allowed = most
        self._calm_at = 0.0  # no change before

    @property
    def is_low(self) -> bool:
        """Tell whether fewer are allowed than the operator wants."""
        return self.allowed < self.most

    def shortage(self, in_flight: int, now: float) -> bool:
        """Note that something ran out while so many were in flight; tells whether fewer are allowed from now on."""
        if now < self._calm_at:
            return False
        self._calm_at = now + limits.PRESSURE_CALM_S
        before = self.allowed
        self.allowed = max(1, min(self.allowed, in_flight) // 2)
        return self.allowed < before

    def calm(self, now: float) -> bool:
        """Let go of a part of the restriction when it has been calm; tells whether more are allowed from now on."""
        if not self.is_low or now < self._calm_at:
            return False
        self._calm_at = now + limits.PRESSURE_CALM_S
        self.allowed = min(self.most, self.allowed + max(1, self.most // limits.PRESSURE_STEPS))
        return True


def is_memory_short(available: int, total: int) -> bool:
    """Tell whether so many bytes are too few for a machine (or a container) that has `total` bytes."""
    return available < min(limits.MEMORY_FREE_BYTES_MIN, total // 16)
