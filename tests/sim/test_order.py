"""--order in the whole frontier: with clocks, classes, ageing and many hosts, important pages still come first."""

from __future__ import annotations

import heapq

import pytest

from crawltool import records
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.ordering import Order
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.bench.opic import Graph, hosted, pagerank, recall
from tests.sim.store import DictStore

PAGES, HOSTS, ROOM = 6000, 1500, 20


def url(graph: Graph, page: int) -> str:
    return f"http://h{graph.host[page]}.test/{page}"


def first_fetched(graph: Graph, order: Order, count: int) -> list[int]:
    """Crawl until `count` pages have left; the result is these."""
    store, links = DictStore(), graph.links()
    frontier = Frontier(store, Policy(delay_s=0.05, delay_factor=0), Bounds(max_depth=None), Scope(ScopeRules("all")), order)
    now, serial, fetched = 1e6, 0, list[int]()
    store.commit(frontier.start(1, now, void_leases=True))
    events = [Event(records.Candidate(url=url(graph, graph.start), source="seed"), b"", "inbox")]
    air: list[tuple[float, int, records.Outcome]] = []
    while len(fetched) < count:
        turn = frontier.turn(events, now, ROOM)
        store.commit(turn.save)
        for line in turn.targets:
            target = records.decode(line)
            assert isinstance(target, records.Target)
            outcome = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="ok")
            serial += 1
            host, page = target.url[8:].split(".test/")
            if target.kind == "address":
                outcome.addresses, outcome.ttl_s = [f"10.{int(host) // 250}.{int(host) % 250}.1"], 1e9
            else:
                outcome.status, outcome.fetched_at, outcome.elapsed_s = 200, now, 0.02
            if target.kind == "page":
                fetched.append(int(page))
                outcome.links = [records.Link(url=url(graph, to)) for to in links[int(page)]]
            heapq.heappush(air, (now + 0.02, serial, outcome))
        now, events = max(min(air[0][0] if air else turn.wakeup, turn.wakeup), now + 1e-4), []
        while air and air[0][0] <= now:
            outcome = heapq.heappop(air)[2]
            events.append(Event(outcome, records.encode(outcome)))
    return fetched


@pytest.fixture(scope="module")
def graph() -> Graph:
    return hosted(PAGES, 3, hosts=HOSTS)


def test_opic_finds_the_top_pages_ten_points_before_breadth_first(graph: Graph) -> None:
    rank, count = pagerank(graph), graph.pages // 20
    found = {kind: recall(rank, first_fetched(graph, Order(kind), count)) for kind in ("breadth", "opic")}
    assert found["opic"] >= found["breadth"] + 0.10, found


def test_a_preferred_pattern_goes_first(graph: Graph) -> None:
    fetched = first_fetched(graph, Order(prefer=(("re:/[0-9]*7$", 2.0),)), 300)
    assert sum(page % 10 == 7 for page in fetched) >= 60  # a tenth of all, by chance
