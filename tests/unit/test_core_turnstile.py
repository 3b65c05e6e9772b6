"""core/frontier/turnstile: shares of what leaves, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter

from crawltool.core.frontier.turnstile import Turnstile


def test_of_each_thousand_the_top_class_gets_seven_tenths_and_the_lowest_two_hundredths() -> None:
    turnstile = Turnstile()
    for _ in range(5):
        counts = Counter(turnstile.next([0, 1, 2, 3]) for _ in range(1000))
        assert counts == {0: 720, 1: 150, 2: 100, 3: 30}


def test_a_class_alone_gets_everything() -> None:
    turnstile = Turnstile()
    assert {turnstile.next([2]) for _ in range(100)} == {2}


def test_the_share_of_an_absent_class_goes_to_the_present_ones() -> None:
    turnstile = Turnstile()
    counts = Counter(turnstile.next([2, 3]) for _ in range(130))
    assert counts == {2: 100, 3: 30}


def test_a_class_that_was_absent_for_long_has_no_claim_on_the_past() -> None:
    turnstile = Turnstile()
    for _ in range(10_000):
        turnstile.next([0, 1])
    counts = Counter(turnstile.next([0, 1, 2, 3]) for _ in range(1000))
    assert abs(counts[3] - 30) <= 1
