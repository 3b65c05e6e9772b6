"""core/frontier/hosts: the table is the law, and clocks come back from a restart no longer than they were."""

from __future__ import annotations

import pytest

from crawltool.core.frontier.hosts import FACTS_IGNORED, TRANSITIONS, Address, Fact, Host, State, is_literal, restored_slots
from crawltool.core.frontier.politeness import Slots
from crawltool.core.frontier.rows import HostRow


def host(state: State) -> Host:
    return Host("a.example", HostRow(number=1, state=state.value), Slots.all_free(1), [0, 0, 1, 0])


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("fact", list(Fact))
def test_a_fact_moves_a_host_by_the_table_or_is_a_bug(state: State, fact: Fact) -> None:
    subject = host(state)
    if (state, fact) in TRANSITIONS:
        subject.meet(fact)
        assert subject.state is TRANSITIONS[state, fact]
    elif (state, fact) in FACTS_IGNORED:
        subject.meet(fact)
        assert subject.state is state
    else:
        with pytest.raises(KeyError):
            subject.meet(fact)


def test_only_an_open_host_with_a_queue_may_be_asked() -> None:
    subject = host(State.OPEN)
    assert subject.ready_at() == 0.0
    subject.parked = True
    assert subject.ready_at() == float("inf")
    assert host(State.NEW).ready_at() == float("inf")
    assert host(State.CLOSED).ready_at() == float("inf")


def test_a_rest_is_never_shortened() -> None:
    subject = host(State.OPEN)
    subject.rest_until(50.0, 10.0)
    subject.rest_until(20.0, 5.0)
    assert subject.ready_at() == 50.0


def test_a_clock_that_was_set_back_does_not_make_a_rest_longer_than_it_was() -> None:
    row = HostRow(number=1, slots=[5000.0], rest_s=3.0)
    assert restored_slots(row, 1, 0, now=100.0).ready_at() == 103.0


def test_a_clock_that_ran_on_leaves_the_slot_free() -> None:
    assert restored_slots(HostRow(number=1, slots=[90.0], rest_s=3.0), 1, 0, now=100.0).ready_at() == 90.0


def test_slots_that_leases_hold_are_not_free_after_a_restart() -> None:
    assert restored_slots(HostRow(number=1, slots=[], rest_s=3.0), 1, 1, now=100.0).ready_at() == float("inf")


@pytest.mark.parametrize(("name", "literal"), [("127.0.0.1", True), ("[::1]", True), ("1.example", False), ("a.b.c.d", False)])
def test_a_literal_address_needs_no_lookup(name: str, literal: bool) -> None:
    assert is_literal(name) is literal


def test_an_address_rests_when_three_of_its_hosts_complain_within_ten_minutes() -> None:
    subject = Address("192.0.2.1", Slots.all_free(2))
    subject.complain("a", 0.0, 50.0)
    subject.complain("a", 1.0, 50.0)
    subject.complain("b", 2.0, 50.0)
    assert subject.ready_at() == 0.0
    subject.complain("c", 601.0, 70.0)
    assert subject.ready_at() == 671.0
    subject.complain("d", 610.0, 5.0)
    assert subject.ready_at() == 671.0, "never shortened"


def test_three_complaints_over_more_than_ten_minutes_are_no_storm() -> None:
    subject = Address("192.0.2.1", Slots.all_free(2))
    for name, at in (("a", 0.0), ("b", 300.0), ("c", 600.1), ("d", 1000.0)):
        subject.complain(name, at, 50.0)
    assert subject.ready_at() == 0.0


def test_an_address_remembers_no_more_hosts_than_it_must() -> None:
    subject = Address("192.0.2.1", Slots.all_free(2))
    for n in range(1000):
        row = subject.complain(f"h{n}", float(n), 1.0)
    assert list(row.complaints) == ["h997", "h998", "h999"]
    assert subject.quiet_at() == 999.0 + 600.0
