"""A host of bad reputation is asked slower, the operator's word goes before the formula, and a typed host keeps its pace."""

from __future__ import annotations

import msgspec
import pytest

from crawltool import records
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

PAGES = 100


def seconds_of(pages: int, *, typed: bool, copies: float, control: records.Control | None = None) -> float:
    """Crawl one host, a share of whose pages are copies; the result is how long its last `PAGES` pages took."""
    store, now = DictStore(), 1e6
    frontier = Frontier(store, Policy(delay_factor=0), Bounds(max_pages_host=None), Scope(ScopeRules("all")))
    store.commit(frontier.start(1, now, void_leases=True))
    source, channel = ("seed", "inbox") if typed else ("link", "")
    events = [Event(records.Candidate(url=f"http://192.0.2.1/{n}", source=source), b"", channel) for n in range(pages)]
    if control is not None:
        events.append(Event(control, b"", "inbox"))
    times: list[float] = []
    for _ in range(pages * 4):
        turn = frontier.turn(events, now, 10)
        store.commit(turn.save)
        events = []
        for line in turn.targets:
            target = records.decode(line)
            assert isinstance(target, records.Target)
            outcome = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="ok", status=200)
            outcome.fetched_at, outcome.elapsed_s = now, 0.0
            if target.kind == "page":
                times.append(now)
                outcome.dup = records.Dup(kind="exact", of="http://192.0.2.1/0") if len(times) % 10 < copies * 10 else None
            events.append(Event(outcome, records.encode(outcome)))
        if len(times) == pages:
            break
        if not events:
            now = max(turn.wakeup, now)
    return times[-1] - times[-PAGES]


def test_ninety_percent_copies_cost_more_than_ten_times() -> None:
    assert seconds_of(500, typed=False, copies=0.9) >= 10 * seconds_of(500, typed=False, copies=0.0)


def test_a_typed_host_keeps_its_pace() -> None:
    assert seconds_of(300, typed=True, copies=0.9) == pytest.approx(seconds_of(300, typed=True, copies=0.0))


def test_the_operators_number_goes_before_the_formula() -> None:
    good = records.Control(action="reputation", host="192.0.2.1", value=msgspec.Raw(b"1"))
    assert seconds_of(300, typed=False, copies=0.9, control=good) == pytest.approx(seconds_of(300, typed=False, copies=0.0))
