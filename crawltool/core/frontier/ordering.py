"""In what order does the operator want the URLs? Answers as points of priority.

Breadth first unless he says otherwise: `--order` by importance (core/frontier/importance), `--prefer PATTERN=N` adds points
to what matches. Points of a page's own links (`links[].priority` of a user's filter, a sitemap's `<priority>`) are kept
within bounds: a page may claim any number. Called by core/frontier/admission for each new URL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from crawltool.core.scope import matcher
from crawltool.core.urls import Url

POINTS_MAX = 1000.0


@dataclass(frozen=True)
class Order:
    """What the operator asked for."""

    kind: Literal["breadth", "opic", "inlinks"] = "breadth"
    prefer: tuple[tuple[str, float], ...] = ()  # (pattern, points)


class Preferences:
    """The compiled patterns of --prefer."""

    def __init__(self, order: Order) -> None:
        """Compile the patterns. Raises BadPolicy on one that cannot be read."""
        self._rules: list[tuple[Callable[[Url], bool], float]] = [(matcher(text), points) for text, points in order.prefer]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def points(self, url: Url) -> float:
        """Add up what the patterns that match a URL give it."""
        return sum(points for matches, points in self._rules if matches(url))


def bounded(points: float) -> float:
    """Keep points that a page or a filter claims within bounds; what is no number is none."""
    return min(max(points, -POINTS_MAX), POINTS_MAX) if points == points else 0.0
