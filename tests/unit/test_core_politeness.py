"""core/frontier/politeness: rests are computed from facts, and no fact can shorten them."""

from __future__ import annotations

from math import inf

import pytest

from crawltool.core.frontier.politeness import Domain, Policy, Slots, backoff, exchange_end, failure_rest, rest, robots_expiry


def test_a_rest_is_the_longest_of_delay_adaptive_part_and_crawl_delay() -> None:
    policy = Policy(delay_s=1, delay_factor=10, adaptive_max_s=30)
    assert rest(policy, 0.05, None) == 1
    assert rest(policy, 0.5, None) == 5
    assert rest(policy, 50, None) == 30
    assert rest(policy, 50, 40) == 40
    assert rest(policy, -5, None) == 1


@pytest.mark.parametrize(
    ("fetched_at", "elapsed_s", "end"),
    [(10.0, 2.0, 12.0), (None, None, 20.0), (1.0, 2.0, 20.0), (19.0, 5.0, 20.0), (float("nan"), 1.0, 20.0)],
)
def test_the_end_of_an_exchange_lies_between_release_and_now(
    fetched_at: float | None, elapsed_s: float | None, end: float
) -> None:
    assert exchange_end(fetched_at, elapsed_s, released_at=5.0, now=20.0) == end


def test_the_ladder_doubles_to_a_day_with_a_tenth_of_jitter() -> None:
    policy = Policy(backoff_s=60)
    assert [backoff(policy, step, 0.0) for step in (1, 2, 3)] == [60, 120, 240]
    assert backoff(policy, 99, 0.0) == 86_400
    assert backoff(policy, 1, 1.0) == pytest.approx(66)


def test_retry_after_wins_over_the_ladder_and_is_capped_at_a_day() -> None:
    policy = Policy(backoff_s=60)
    assert failure_rest(policy, 7.0, 3, 0.5) == 7
    assert failure_rest(policy, 1e9, 1, 0.5) == 86_400
    assert failure_rest(policy, -3.0, 1, 0.5) == 0
    assert failure_rest(policy, None, 2, 0.0) == 120


def test_robots_freshness_lies_between_half_an_hour_and_the_ttl() -> None:
    policy = Policy(robots_ttl_s=4 * 3600)
    assert robots_expiry(policy, 0, None) == 4 * 3600
    assert robots_expiry(policy, 0, 10) == 1800
    assert robots_expiry(policy, 0, 7200) == 7200
    assert robots_expiry(policy, 0, 1e9) == 4 * 3600
    assert robots_expiry(Policy(robots_ttl_s=5), 0, 7200) == 5
    assert robots_expiry(Policy(robots_ttl_s=1e9), 0, None) == 86_400


def test_each_slot_has_its_own_clock() -> None:
    slots = Slots.all_free(2, 5.0)
    assert slots.take() == 5.0
    assert slots.ready_at() == 5.0
    slots.take()
    assert slots.ready_at() == inf
    slots.give(9.0)
    slots.give(7.0)
    assert slots.take() == 7.0


def test_an_address_has_two_slots_or_as_many_as_a_host() -> None:
    assert Policy().address_slots == 2
    assert Policy(per_host=4).address_slots == 4
    assert Policy(per_host=4, per_ip=1).address_slots == 1
    assert Policy(delay_s=1).address_delay_s == pytest.approx(0.2)
    assert Policy(delay_s=1, ip_delay_s=3).address_delay_s == 3


def test_who_waits_for_a_domain_looks_again_one_delay_after_the_one_before() -> None:
    domain = Domain("example.org", 2, 0.0)
    domain.slots.take(), domain.slots.take()
    assert [domain.turn(name, 10.0, 1.0) for name in "abcde"] == [11, 11, 12, 12, 13]
    assert list(domain.waiting) == ["a", "b", "c", "d", "e"]
    domain.turn("a", 11.0, 1.0)
    assert next(iter(domain.waiting)) == "a", "who looks again keeps its place"


def test_without_a_delay_a_busy_domain_is_not_asked_in_a_loop() -> None:
    domain = Domain("example.org", 1, 0.0)
    domain.slots.take()
    assert domain.turn("a", 10.0, 0.0) > 10.0


def test_a_domain_may_be_forgotten_when_a_new_one_would_be_the_same() -> None:
    domain = Domain("example.org", 1, 5.0)
    assert not domain.is_idle(4.0) and domain.is_idle(5.0)
    domain.slots.take()
    assert not domain.is_idle(6.0)
    domain.slots.give(9.0)
    assert not domain.is_idle(8.0) and domain.is_idle(9.0)
    domain.turn("a", 9.0, 1.0)
    assert not domain.is_idle(10.0)
