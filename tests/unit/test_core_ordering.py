"""core/frontier/ordering: points of patterns, and a page cannot claim what it likes."""

from __future__ import annotations

import pytest

from crawltool.core.frontier.ordering import POINTS_MAX, Order, Preferences, bounded
from crawltool.core.urls import split_once
from crawltool.errors import BadPolicy


def points(order: Order, text: str) -> float:
    url = split_once(text)
    assert url is not None
    return Preferences(order).points(url)


def test_the_points_of_all_patterns_that_match_add_up() -> None:
    order = Order(prefer=(("*/news/*", 2.0), ("re:/tag/", -1.5)))
    assert points(order, "http://a.example/news/1") == 2.0
    assert points(order, "http://a.example/news/tag/1") == 0.5
    assert points(order, "http://a.example/") == 0.0


def test_a_broken_pattern_is_bad_policy() -> None:
    with pytest.raises(BadPolicy):
        Preferences(Order(prefer=(("re:(", 1.0),)))


@pytest.mark.parametrize("claim", [1e308, float("inf"), -1e308, float("nan")])
def test_a_claim_is_kept_within_bounds(claim: float) -> None:
    assert -POINTS_MAX <= bounded(claim) <= POINTS_MAX
