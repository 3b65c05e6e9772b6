"""core/frontier/importance: who gets what, that no cash is lost, when a URL moves, and that nobody enriches himself."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.core.frontier.importance import (
    GROWTH,
    UNIT,
    Changes,
    Importance,
    Order,
    Root,
    Worth,
    importance,
    loan,
    priority,
    root_of,
    worth_of,
)

PAID = UNIT * 85 // 100  # what the first page of a crawl pays, all links together


def key(name: int | str) -> bytes:
    return str(name).encode().rjust(16, b"_")


class Crawl:
    """A table of packed rows around the module; `seed` and `page` are turns of their own."""

    def __init__(self, order: Order = "opic") -> None:
        self.rows: dict[bytes, bytes] = {}
        self.root = Root()
        self.worth = Importance(order, self.root)
        self.order = order

    def read(self, *names: int | str) -> None:
        unread = self.worth.unread(key(name) for name in names)
        self.worth.hold(unread, [self.rows.get(name) for name in unread])

    def take(self) -> Changes:
        changes = self.worth.take()
        self.rows.update(changes.save)
        self.root = self.worth.root = root_of(self.root.packed())  # as over a restart
        return changes

    def seed(self, name: int | str) -> float:
        self.read(name)
        first = self.worth.arrive(key(name), seed=True)
        self.take()
        return first

    def page(self, name: int | str, *links: int | str, outside: int = 0, host_pages: int = 0) -> Changes:
        self.read(name, *links)
        self.worth.settle(key(name), [key(link) for link in links], outside=outside, host_pages=host_pages)
        return self.take()

    def of(self, name: int | str) -> Worth:
        return worth_of(self.rows.get(key(name)))

    def cash(self) -> int:
        return sum(worth_of(row).cash for row in self.rows.values())


# --- who gets what ---


def test_a_page_pays_its_loan_less_the_tax_in_equal_parts() -> None:
    crawl = Crawl()
    crawl.page("home", "a", "b")
    assert crawl.of("a").cash == crawl.of("b").cash == PAID // 2
    assert crawl.of("home").cash == 0


def test_a_page_pays_what_it_was_paid_too() -> None:
    crawl = Crawl()
    crawl.page("home", "a")
    crawl.page("a", "b")
    assert crawl.of("b").cash == (PAID + loan(1, 0)) * 85 // 100
    assert crawl.of("a").history == PAID


def test_cash_that_came_after_a_fetch_is_paid_at_the_next_without_a_second_loan() -> None:
    crawl = Crawl()
    crawl.page("a", "b")
    crawl.page("home", "a")
    came = crawl.of("a").cash
    crawl.page("a", "c")
    assert crawl.of("c").cash == came * 85 // 100


def test_a_page_nobody_paid_gets_its_loan_once_all_the_same() -> None:
    crawl = Crawl()
    crawl.page("a", "b")
    crawl.page("a", "c")
    assert crawl.of("c").cash == 0
    assert crawl.root.pages == 1


def test_parts_of_links_out_of_scope_go_to_the_root() -> None:
    crawl = Crawl()
    crawl.page("home", "a", outside=3)
    assert crawl.of("a").cash == PAID // 4
    assert crawl.root.lent == crawl.cash() == PAID // 4


def test_a_dead_end_gives_its_cash_back_to_the_root() -> None:
    crawl = Crawl()
    crawl.page("home", "a")
    crawl.page("a")
    assert crawl.cash() == crawl.root.lent == 0
    assert crawl.of("a").history == PAID


def test_a_seed_gets_a_unit_from_the_root() -> None:
    crawl = Crawl()
    assert crawl.seed("home") == 0.0
    assert crawl.of("home").cash == crawl.root.lent == UNIT


def test_in_links_are_counted_once_for_each_page() -> None:
    crawl = Crawl("inlinks")
    crawl.page("home", "a", "a", "b")
    crawl.page("b", "a")
    crawl.page("b", "a", "c")  # fetched again: it is no second page
    assert [crawl.of(name).cash // UNIT for name in ("a", "b", "c")] == [2, 1, 0]


# --- hostile pages ---


@pytest.mark.parametrize("order", ["opic", "inlinks"])
def test_a_link_said_50_000_times_counts_once(order: Order) -> None:
    said, plain = Crawl(order), Crawl(order)
    said.page("home", "a", *["b"] * 50_000)
    plain.page("home", "a", "b")
    assert said.rows == plain.rows


@pytest.mark.parametrize("order", ["opic", "inlinks"])
def test_a_link_to_itself_brings_a_page_nothing(order: Order) -> None:
    vain, plain = Crawl(order), Crawl(order)
    vain.page("home", "home", "a", "home")
    plain.page("home", "a")
    assert vain.rows == plain.rows


def test_a_page_that_links_to_itself_only_keeps_nothing() -> None:
    crawl = Crawl()
    crawl.seed("vain")
    crawl.page("vain", "vain")
    assert crawl.cash() == crawl.root.lent == 0


def test_a_page_with_60_000_links_loses_less_than_a_millionth_to_rounding() -> None:
    crawl = Crawl()
    crawl.page("home", *range(60_000))
    assert PAID - crawl.cash() < 60_000
    assert crawl.of(59_999).cash > 14_000


def test_cash_that_stays_within_a_host_melts_away() -> None:
    """Two pages pay each other for ever: what came in from outside is gone after a hundred rounds."""
    crawl = Crawl()
    crawl.seed("ping")
    for _ in range(100):
        crawl.page("ping", "pong")
        crawl.page("pong", "ping")
    assert crawl.cash() < UNIT / 1_000_000
    assert crawl.of("ping").history < UNIT / 0.15 * 3  # the seed's unit and two loans, each at most 1 / tax


def farm(pages: int, *, others: int) -> float:
    """Give the share of importance of a page that `pages` others of its host link to, after `others` honest pages."""
    crawl = Crawl()
    for page in range(others):
        crawl.page(page, page + 1, page * 7 % others)
    for page in range(pages):
        crawl.page(f"farm{page}", "target", host_pages=page)
    return importance(crawl.of("target"), crawl.root)


def test_a_farm_of_late_pages_earns_half_of_what_equal_loans_would_give() -> None:
    assert farm(1000, others=9000) < 0.02  # 0.039 with equal loans


def test_a_host_of_a_million_pages_borrows_less_than_50_000_units() -> None:
    assert sum(loan(0, pages) for pages in range(0, 1_000_000, 100)) * 100 < 50_000 * UNIT


# --- nothing is lost ---

NAMES = st.integers(0, 12)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("seed"), NAMES),
        st.tuples(st.just("page"), NAMES, st.lists(NAMES, max_size=8), st.integers(0, 3), st.integers(0, 10**7)),
        st.tuples(st.just("turn")),
    ),
    max_size=60,
)


@given(EVENTS)
def test_all_cash_is_what_the_root_has_lent(events: list[tuple[object, ...]]) -> None:
    crawl = Crawl()
    for event in events:
        match event:
            case "seed", name:
                crawl.read(name)  # type: ignore[arg-type]
                crawl.worth.arrive(key(name), seed=True)  # type: ignore[arg-type]
            case "page", name, links, outside, host_pages:
                crawl.read(name, *links)  # type: ignore[arg-type,misc]
                names = [key(link) for link in links]  # type: ignore[attr-defined]
                crawl.worth.settle(key(name), names, outside=outside, host_pages=host_pages)  # type: ignore[arg-type]
            case _:
                crawl.take()
    crawl.take()
    worths = [worth_of(row) for row in crawl.rows.values()]
    assert sum(worth.cash for worth in worths) == crawl.root.lent
    assert sum(worth.history for worth in worths) == crawl.root.history
    assert all(worth.cash >= 0 for worth in worths)
    assert crawl.root.history == 0 or isclose(sum(importance(worth, crawl.root) for worth in worths), 1.0)


def test_history_stops_at_the_largest_that_fits_a_row() -> None:
    crawl = Crawl()
    crawl.rows[key("a")] = Worth(UNIT, 2**64 - 1, 2**64 - 1).packed()
    crawl.root.lent, crawl.root.history = UNIT, 2**64 - 1
    crawl.page("a", "b")
    crawl.read("a")
    crawl.worth.keyed(key("a"))
    crawl.take()
    assert crawl.of("a").history == crawl.of("a").keyed == crawl.root.history == 2**64 - 1


def test_what_this_turn_changed_is_newer_than_what_was_read() -> None:
    crawl = Crawl()
    crawl.read("home", "a")
    crawl.worth.settle(key("home"), [key("a")])
    crawl.worth.hold([key("a")], [None])
    crawl.take()
    assert crawl.of("a").cash == PAID


def test_rows_are_read_once_a_turn_and_forgotten_after_it() -> None:
    crawl = Crawl()
    assert crawl.worth.unread([key("a"), key("b"), key("a")]) == [key("a"), key("b")]
    crawl.read("a")
    assert crawl.worth.unread([key("a"), key("b")]) == [key("b")]
    crawl.take()
    assert crawl.worth.unread([key("a")]) == [key("a")]


def test_rows_that_were_only_read_are_not_written() -> None:
    crawl = Crawl()
    crawl.read("a", "b")
    assert crawl.take() == Changes([], [])


def test_a_crawl_without_rows_begins_with_nothing() -> None:
    assert root_of(None) == Root()
    assert worth_of(None).value == 0
    assert importance(Worth(), Root()) == 0.0


# --- order ---


def test_priority_grows_by_one_with_each_doubling_and_never_falls() -> None:
    values = [0, 1, 2, UNIT // 2, UNIT, UNIT + 1, 2 * UNIT, 8 * UNIT, 2**64, 2**70]
    given_ = [priority(value) for value in values]
    assert given_ == sorted(given_)
    assert (priority(UNIT), priority(8 * UNIT)) == (0.0, 3.0)
    assert priority(0) > -30
    assert priority(2**70) < 35


def test_a_new_url_begins_with_what_the_page_that_named_it_paid() -> None:
    crawl = Crawl()
    crawl.read("home", "a")
    crawl.worth.settle(key("home"), [key("a")])
    assert crawl.worth.arrive(key("a")) == priority(PAID)
    assert crawl.take().grown == []


def queued(value: int) -> Crawl:
    """A crawl with `a` queued at `value`."""
    crawl = Crawl()
    crawl.rows[key("a")] = Worth(value, 0, value).packed()
    crawl.root.lent = value
    return crawl


def test_a_queued_url_moves_when_its_value_has_doubled_and_not_before() -> None:
    assert GROWTH == 2
    assert queued(PAID + 1).page("home", "a").grown == []
    assert queued(PAID).page("home", "a").grown == [(key("a"), priority(2 * PAID))]


def test_a_url_that_moved_waits_for_the_next_doubling() -> None:
    crawl = queued(PAID)
    crawl.page("home", "a")
    assert crawl.of("a").keyed == 2 * PAID
    assert crawl.page("b", "a").grown == []


def test_many_pages_of_one_turn_move_a_url_once() -> None:
    crawl = Crawl("inlinks")
    crawl.read("a", *range(64))
    crawl.worth.arrive(key("a"), seed=True)
    for page in range(64):
        crawl.worth.settle(key(page), [key("a")])
    assert crawl.take().grown == [(key("a"), priority(65 * UNIT))]


def test_the_same_events_write_the_same_rows_in_the_same_order() -> None:
    def written() -> list[tuple[bytes, bytes]]:
        crawl = Crawl()
        return [*crawl.page("home", *range(50)).save, *crawl.page(3, *range(40, 90)).save]

    assert written() == written()
    assert [name for name, _ in written()[:3]] == [key("home"), key(0), key(1)]
