"""Reputation falls with bad pages and not with few; a budget is the lesser of what a host can and what is wanted."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.core.frontier.reputation import (
    MEMORY_PAGES,
    REPUTATION_MIN,
    Conduct,
    budget,
    capacity,
    demand,
    reputation,
)

COUNTS = st.integers(0, 10_000)


def after(pages: int, **bad: int) -> Conduct:
    """A host whose outcomes were counted one by one: `bad` of each kind, the rest good."""
    conduct = Conduct()
    kinds = [kind for kind, count in bad.items() for _ in range(count)]
    for kind in kinds + [""] * (pages - len(kinds)):
        conduct.page(**({kind: True} if kind else {}))
    return conduct


def test_a_new_host_and_a_good_host_have_the_whole_factor() -> None:
    assert reputation(Conduct()) == 1.0
    assert reputation(after(5000)) == 1.0


@pytest.mark.parametrize("kind", ["duplicate", "soft404", "trap"])
@pytest.mark.parametrize("pages", [100, 1000, 20_000])
def test_ninety_percent_bad_pages_cost_at_least_ten_times(kind: str, pages: int) -> None:
    conduct = Conduct()
    for n in range(pages):
        conduct.page(**{kind: n % 10 != 0})
    assert reputation(conduct) <= 0.1


def test_ninety_percent_duplicates_cost_at_least_ten_times_of_the_budget_too() -> None:
    good, bad = after(1000), after(1000, duplicate=900)
    for conduct in (good, bad):
        conduct.exchange(0.2, 1.0, failed=False)
    for queued in (5000, 1_000_000):
        first, second = (budget(c, queued=queued, delay_s=1.0) for c in (good, bad))
        assert second.pages_h <= first.pages_h / 10
        assert (first.bound, second.bound) == ("capacity", "demand")


def test_few_bad_pages_do_not_condemn() -> None:
    assert reputation(after(1, duplicate=1)) > 0.85
    assert reputation(after(3, duplicate=3)) > 0.6


def test_a_third_of_copies_is_no_disaster() -> None:
    assert reputation(after(1000, duplicate=300)) > 0.5


def test_errors_cost_half() -> None:
    assert reputation(after(1000, error=400)) == pytest.approx(reputation(after(1000, duplicate=200)))


def test_a_page_counts_once_whatever_is_wrong_with_it() -> None:
    conduct = Conduct()
    conduct.page(duplicate=True, soft404=True, trap=True, error=True)
    assert (conduct.pages, conduct.errors, conduct.duplicates + conduct.soft404s + conduct.traps) == (1, 1, 0)


def test_a_host_that_mends_its_ways_gets_its_name_back() -> None:
    conduct = after(MEMORY_PAGES, duplicate=MEMORY_PAGES)
    assert reputation(conduct) <= 0.001
    for _ in range(4 * MEMORY_PAGES):
        conduct.page()
    assert reputation(conduct) > 0.8


def test_the_operators_number_goes_before_the_formula() -> None:
    found = budget(after(1000, trap=1000), override=1.0, queued=1)
    assert found.overridden and found.reputation == 1.0


@given(pages=COUNTS, duplicates=COUNTS, soft404s=COUNTS, traps=COUNTS, errors=COUNTS)
def test_any_counts_give_a_factor_and_more_bad_never_raises_it(
    pages: int, duplicates: int, soft404s: int, traps: int, errors: int
) -> None:
    conduct = Conduct(pages=pages, duplicates=duplicates, soft404s=soft404s, traps=traps, errors=errors)
    factor = reputation(conduct)
    assert REPUTATION_MIN <= factor <= 1.0
    conduct.page(duplicate=True)
    assert pages >= MEMORY_PAGES or reputation(conduct) <= factor + 1e-9 or duplicates + soft404s + traps + errors >= pages


def test_it_is_small_beside_the_host_row() -> None:
    conduct = after(5000, duplicate=700, error=300)
    conduct.exchange(0.35, 3.5, failed=False)
    assert len(msgspec.msgpack.encode(conduct)) <= 40
    assert len(msgspec.msgpack.encode(Conduct())) <= 12
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(conduct), type=Conduct) == conduct


def test_capacity_follows_latency_rest_and_failures() -> None:
    conduct = Conduct()
    for _ in range(100):
        conduct.exchange(0.5, 1.5, failed=False)
    assert capacity(conduct, 1) == pytest.approx(1800)
    assert capacity(conduct, 4) == pytest.approx(7200)
    for _ in range(100):
        conduct.exchange(5.0, 15.0, failed=False)
    assert capacity(conduct, 1) == pytest.approx(180, rel=0.01)
    for n in range(1000):
        conduct.exchange(5.0, 15.0, failed=n % 2 == 0)
    assert capacity(conduct, 1) == pytest.approx(45, rel=0.2)


def test_demand_is_never_more_than_the_queue_and_halves_per_priority() -> None:
    assert demand(10, 0.0, 1.0, 3600.0) == 10
    assert demand(10, 5.0, 1.0, 3600.0) == 10
    assert demand(100_000, 0.0, 1.0, 3600.0) == 3600
    assert demand(100_000, -1.0, 1.0, 3600.0) == 1800
    assert demand(100_000, -1e300, 1.0, 3600.0) == 3600 / 64
    assert demand(0, 0.0, 1.0, math.inf) == 0


def test_without_a_delay_the_capacity_is_the_fair_share() -> None:
    conduct = Conduct()
    conduct.exchange(0.01, 0.0, failed=False)
    found = budget(conduct, queued=10**9)
    assert found.pages_h == found.capacity_h == 360_000
    assert budget(conduct, override=0.1, queued=10**9).pages_h == pytest.approx(36_000)


@given(elapsed_s=st.floats(), rest_s=st.floats(), failed=st.booleans())
def test_times_that_anybody_may_claim_keep_the_budget_finite(elapsed_s: float, rest_s: float, failed: bool) -> None:
    conduct = Conduct()
    for _ in range(3):
        conduct.exchange(elapsed_s, rest_s, failed)
    found = budget(conduct, queued=1000, delay_s=1.0)
    assert 0.0 <= found.pages_h <= 1000 and math.isfinite(found.capacity_h)


def test_why_prints_one_line_with_the_numbers() -> None:
    conduct = after(1000, duplicate=900)
    conduct.exchange(0.2, 1.0, failed=False)
    words = str(budget(conduct, queued=5000, delay_s=1.0))
    assert "bound by demand" in words and "5,000 queued" in words and "computed" in words and "\n" not in words
