"""Whose class is next? Weighted round robin, so that no priority starves another.

Rank alone gave the top class everything. Here each class gets its share of what leaves as long as it has something ready:
of 1,000 targets 720 urgent, 150 high, 100 normal, 30 low; the shares of absent classes go to the present ones. Smooth: no
class waits for a burst of another to end. Called by core/frontier/workbench.
"""

from __future__ import annotations

from collections.abc import Sequence

WEIGHTS = (72, 15, 10, 3)  # urgent, high, normal, low


class Turnstile:
    """Smooth weighted round robin over classes."""

    def __init__(self, weights: Sequence[int] = WEIGHTS) -> None:
        self.weights = weights
        self.credit = [0] * len(weights)

    def next(self, present: Sequence[int]) -> int:
        """Choose among the classes that have something ready; at least one does."""
        if len(present) == 1:
            return present[0]
        credit, total, best = self.credit, 0, present[0]
        for place in present:
            credit[place] += self.weights[place]
            total += self.weights[place]
            if credit[place] > credit[best]:
                best = place
        credit[best] -= total
        return best
