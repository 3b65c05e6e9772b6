"""Each law is broken once on purpose: the simulator must notice. A mutation that lives shows a hole in the checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawltool.core.frontier import hosting, politeness, release, rows
from crawltool.core.frontier.admission import Admission
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.hosts import Address, Host
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.politeness import Domain, Slots
from crawltool.core.frontier.queue import HostQueue
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.rulebook import RobotsState
from crawltool.core.frontier.settling import Settling
from crawltool.core.frontier.turn import Frontier
from crawltool.core.frontier.waitingroom import WaitingRoom
from crawltool.core.frontier.workbench import Workbench
from tests.sim import crawl
from tests.sim.crawl import Plan, SimCrawl

SEEDS = 400
STEPS_MAX = 6000  # a crawl of these plans that ends takes fewer

Patch = pytest.MonkeyPatch


def lease_saved_a_turn_later(patch: Patch) -> None:
    """Law 1."""
    put, begin, late = Book.put, Book.begin, []

    def deferred(self: Book, table: Table, key: bytes, value: bytes | None) -> None:
        if table is Table.LEASES and value is not None:
            late.append((key, value))
        else:
            put(self, table, key, value)

    def catches_up(self: Book, now: float) -> None:
        begin(self, now)
        while late:
            put(self, Table.LEASES, *late.pop())

    patch.setattr(Book, "put", deferred)
    patch.setattr(Book, "begin", catches_up)


def links_admitted_a_turn_later(patch: Patch) -> None:
    """Law 3."""
    admit, wake, held = Admission.admit, Frontier._wake_waiting, []

    def hold(self: Any, offers: list[Any], now: float) -> None:
        held.append((self, offers))

    def later(self: Frontier, now: float) -> None:
        wake(self, now)
        due = [offers for admission, offers in held[:-1] if admission is self.admission]
        del held[:-1]
        for offers in due:
            admit(self.admission, offers, now)

    patch.setattr(Admission, "admit", hold)
    patch.setattr(Frontier, "_wake_waiting", later)


def rests_of_half_the_length(patch: Patch) -> None:
    """Law 5."""
    rest = politeness.rest
    patch.setattr(politeness, "rest", lambda *given: rest(*given) / 2)


def a_slot_is_not_taken(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(Slots, "take", lambda self: self.free[0])


def a_slot_is_given_twice(patch: Patch) -> None:
    """Law 5."""
    give = Slots.give

    def twice(self: Slots, at: float) -> None:
        give(self, at)
        self.free.append(at)

    patch.setattr(Slots, "give", twice)


def a_void_lease_rests_nobody(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(hosting, "give_slots_rested", lambda book, lease, now: hosting.give_slots(book, lease, now, 0.0))


def retry_after_is_not_heard(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(politeness, "failure_rest", lambda *given: 0.1)


def slots_are_forgotten_at_a_restart(patch: Patch) -> None:
    """Law 5."""
    from crawltool.core.frontier import workbench

    patch.setattr(workbench, "restored_slots", lambda row, count, taken, now: Slots(count, [0.0] * (count - taken), taken))


def addresses_are_free_at_a_restart(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(Workbench, "addresses_from", property(lambda self: 0.0, lambda self, at: None), raising=False)


def a_moved_host_stays_at_its_old_address(patch: Patch) -> None:
    """Law 5."""

    def leaves(self: Workbench, address: Address) -> None:
        address.members -= 1  # but its place in the heap stays
        self._may_go(address)

    patch.setattr(Workbench, "_leave_address", leaves)


def done_is_counted_twice(patch: Patch) -> None:
    """Law 6."""
    settle = Book.settle_done

    def twice(self: Book, key: bytes) -> None:
        settle(self, key)
        self.ledger.done += 1

    patch.setattr(Book, "settle_done", twice)


def the_place_of_a_lease_is_not_deleted(patch: Patch) -> None:
    """Law 6."""
    put = Book.put
    patch.setattr(Book, "put", lambda self, t, k, v: None if t is Table.QUEUE and v is None else put(self, t, k, v))


def a_late_answer_frees_the_host(patch: Patch) -> None:
    """Law 8."""
    settle = Settling._settle_late

    def frees(self: Settling, outcome: Any, key: bytes, state: bytes, host: Host, now: float) -> Any:
        offers = settle(self, outcome, key, state, host, now)
        if state[:1] == rows.LEASED and state[1:].decode() in self.book.leases:
            lease = self.book.end_lease(state[1:].decode())
            hosting.give_slots_unasked(self.book, lease)
        return offers

    patch.setattr(Settling, "_settle_late", frees)


def a_late_answer_settles_nothing(patch: Patch) -> None:
    """Laws 3 and 8: the links of a page that is settled by its state alone are lost."""
    settle = Settling._settle_late

    def drops(self: Settling, *given: Any) -> Any:
        settle(self, *given)
        return []

    patch.setattr(Settling, "_settle_late", drops)


def a_forged_outcome_is_believed(patch: Patch) -> None:
    """Law 8."""
    patch.setattr(Settling, "_not_ours", lambda self, outcome, url, state: None)


def a_rest_can_be_shortened(patch: Patch) -> None:
    """Law 8."""

    def sets(self: Host, until: float, length_s: float) -> None:
        self.row.rest_until, self.row.backoff_s, self.dirty = until, length_s, True

    patch.setattr(Host, "rest_until", sets)


def an_address_does_not_rest(patch: Patch) -> None:
    """Law 5: three of its hosts complained."""
    patch.setattr(Address, "ready_at", lambda self: self.slots.ready_at())


def one_complaint_too_many_is_needed(patch: Patch) -> None:
    """Law 5."""
    complain = Address.complain

    def fewer(self: Address, name: str, now: float, length_s: float) -> Any:
        row = complain(self, name, now, length_s)
        if len(row.complaints) >= 3:
            del row.complaints[next(iter(row.complaints))]
        return row

    patch.setattr(Address, "complain", fewer)


def the_rest_of_an_address_is_forgotten_at_a_restart(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(hosting, "restore_addresses", lambda book, now: None)


def the_rest_of_an_address_can_be_shortened(patch: Patch) -> None:
    """Law 8."""
    complain = Address.complain

    def sets(self: Address, name: str, now: float, length_s: float) -> Any:
        row = complain(self, name, now, length_s)
        row.rest_until = now + length_s
        return row

    patch.setattr(Address, "complain", sets)


def an_address_is_forgotten_with_its_rest(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(Address, "quiet_at", lambda self: self.slots.latest())


def complaints_are_never_forgiven(patch: Patch) -> None:
    patch.setattr("crawltool.limits.FORGIVEN_S", 10**9)


def complaints_are_forgiven_by_an_answer(patch: Patch) -> None:
    """What was too fast a minute ago is too fast again."""
    patch.setattr(hosting, "answered", lambda host: setattr(host.row, "complaints", 0))


def the_clock_of_a_domain_is_not_asked(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(hosting, "waits_for_domain", lambda book, host, now: (d := book.domain_of(host)) and not d.slots.free)


def domains_are_free_at_a_restart(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(Workbench, "domains_from", property(lambda self: 0.0, lambda self, at: None), raising=False)


def leases_of_the_last_run_hold_no_domain(patch: Patch) -> None:
    """Law 5."""
    patch.setattr(Workbench, "hold_slots", lambda self, host, lease: lease.address and self.address(lease.address).slots.hold())


def who_waits_for_a_domain_waits_for_ever(patch: Patch) -> None:
    """Law 11: the host that is called has nothing to ask."""
    patch.setattr(Domain, "turn", lambda self, host, now, delay_s: self.waiting.setdefault(host) or float("inf"))


def domains_stay_in_memory(patch: Patch) -> None:
    patch.setattr(Domain, "is_idle", lambda self, now: False)


def rules_are_not_judged(patch: Patch) -> None:
    """Law 10."""
    patch.setattr(release, "refusal_of", lambda *given: None)


def rules_never_grow_old(patch: Patch) -> None:
    """Law 10."""
    patch.setattr(RobotsState, "hold", lambda self, now: self.row is not None and self.row.availability != "unreachable")


def who_waits_for_rules_is_forgotten(patch: Patch) -> None:
    """Law 11."""
    patch.setattr(hosting, "unpark", lambda book, state: setattr(state, "pending", False))


def robots_of_others_wait_behind_rules(patch: Patch) -> None:
    """Law 11: two hosts whose rules lie at each other."""
    push = Book.push

    def behind(self: Book, host: Host, key: bytes, entry: Any) -> None:
        parked = host.parked
        push(self, host, key, entry)
        host.parked = parked
        self.schedule(host)

    patch.setattr(Book, "push", behind)


def a_host_is_never_given_up(patch: Patch) -> None:
    """Law 11."""
    patch.setattr("crawltool.limits.HOST_FAILURES_MAX", 10**9)


def fresh_rules_are_used_by_nobody(patch: Patch) -> None:
    """Law 11: under a short --robots-ttl and a crowded address rules are fetched for ever."""
    patch.setattr(
        RobotsState, "hold", lambda self, now: self.row is not None and self.row.fetched_at <= now < self.row.expires_at
    )


def called_again_at_once(patch: Patch) -> None:
    """Law 11: a busy loop."""
    patch.setattr(Frontier, "_wakeup", lambda self, next_at, now, room_left: now)


def a_full_room_stays_full(patch: Patch) -> None:
    """Law 11: room counted before the turn's events."""
    turn = Frontier.turn

    def before(self: Frontier, events: Any, now: float, room: int) -> Any:
        return turn(self, events, now, room - len(self.book.leases))

    patch.setattr(Frontier, "turn", before)


def an_entry_comes_back_below_the_bound(patch: Patch) -> None:
    """The queue's lower bound: an entry that came back from a void lease is never seen again."""
    push = HostQueue.push

    def keeps(self: HostQueue, key: bytes, entry: Any) -> None:
        bound = self.bound
        push(self, key, entry)
        self.bound = bound

    patch.setattr(HostQueue, "push", keeps)


def a_host_that_is_made_cold_is_forgotten(patch: Patch) -> None:
    """Law 11: its queue is never looked at again."""
    patch.setattr(WaitingRoom, "wait", lambda self, number, at, now: None)


def what_a_turn_gave_a_cold_host_is_not_seen(patch: Patch) -> None:
    """A host that is woken in the turn that gave it its first URL."""
    patch.setattr(Workbench, "_take_pushed", lambda self, host: None)


def a_woken_host_forgets_its_rest(patch: Patch) -> None:
    """Law 5: what is made cold keeps its clocks in the store."""
    remember = Workbench.remember

    def free(self: Workbench, name: str, row: Any, taken: int) -> Host:
        row.slots = [0.0 for _ in row.slots]
        return remember(self, name, row, taken)

    patch.setattr(Workbench, "remember", free)


def queue_lengths_are_not_saved(patch: Patch) -> None:
    """Law 6."""
    patch.setattr(Lengths, "save_into", lambda self, save: self.changed.clear())


def idle_hosts_stay_in_memory(patch: Patch) -> None:
    """Hosts are held only with a queue, a lease or a rest."""
    patch.setattr(Workbench, "forget_idle", lambda self: None)


MUTATIONS: list[Callable[[Patch], None]] = [
    lease_saved_a_turn_later,
    links_admitted_a_turn_later,
    rests_of_half_the_length,
    a_slot_is_not_taken,
    a_slot_is_given_twice,
    a_void_lease_rests_nobody,
    retry_after_is_not_heard,
    slots_are_forgotten_at_a_restart,
    addresses_are_free_at_a_restart,
    a_moved_host_stays_at_its_old_address,
    done_is_counted_twice,
    the_place_of_a_lease_is_not_deleted,
    a_late_answer_frees_the_host,
    a_late_answer_settles_nothing,
    a_forged_outcome_is_believed,
    a_rest_can_be_shortened,
    an_address_does_not_rest,
    one_complaint_too_many_is_needed,
    the_rest_of_an_address_is_forgotten_at_a_restart,
    the_rest_of_an_address_can_be_shortened,
    an_address_is_forgotten_with_its_rest,
    complaints_are_never_forgiven,
    complaints_are_forgiven_by_an_answer,
    the_clock_of_a_domain_is_not_asked,
    domains_are_free_at_a_restart,
    leases_of_the_last_run_hold_no_domain,
    who_waits_for_a_domain_waits_for_ever,
    domains_stay_in_memory,
    rules_are_not_judged,
    rules_never_grow_old,
    who_waits_for_rules_is_forgotten,
    robots_of_others_wait_behind_rules,
    a_host_is_never_given_up,
    fresh_rules_are_used_by_nobody,
    called_again_at_once,
    a_full_room_stays_full,
    an_entry_comes_back_below_the_bound,
    a_host_that_is_made_cold_is_forgotten,
    what_a_turn_gave_a_cold_host_is_not_seen,
    a_woken_host_forgets_its_rest,
    queue_lengths_are_not_saved,
    idle_hosts_stay_in_memory,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_notices(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    monkeypatch.setattr(crawl, "STEPS_MAX", STEPS_MAX)
    mutation(monkeypatch)
    for seed in range(SEEDS):
        try:
            SimCrawl(seed, Plan.of(seed)).run().check_end()
        except (AssertionError, LookupError, ArithmeticError):  # a checker, or the core itself stumbles
            return
    pytest.fail(f"{SEEDS} seeds without a complaint")
