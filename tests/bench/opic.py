"""Does `--order` find what matters first: breadth first, in-links and OPIC on power-law graphs, beside PageRank of the whole.

    python -m tests.bench.opic [--pages 100000] [--seeds 3]

Each graph is crawled from one page. Recall is the share of the top 1 % (by PageRank of the whole graph) among the first 2 %
fetched. Spearman compares PageRank with our estimate when each page was fetched once, pages of equal worth sharing a rank.
A queued page moves only when its value doubled, as in the frontier. µs is CPU per link: rows unpacked, paid and packed, one
outcome a turn, and this simulation's own books. The graphs:

hosts   1,000 hosts with Zipf sizes; 3 of 4 links stay in the host; how attractive a page is follows Zipf's law too
wild    the same with a host for every five pages, and three times as many links
rich    preferential attachment: a page links to what is linked already, mostly
"""

from __future__ import annotations

import argparse
import heapq
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawltool.core.frontier.importance import Importance, Order, Root, importance, worth_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ATTRACTION = 0.9  # Zipf's exponent; in-degrees then fall as 1/k^2.1, as those of the Web
DAMPING, ROUNDS = 0.85, 60


class Graph(NamedTuple):
    """Links without repeats and self-links, ordered by source; the host of each page; where a crawl begins."""

    pages: int
    source: Ints
    target: Ints
    host: Ints
    start: int

    def links(self) -> list[list[int]]:
        """Give the pages that each page links to."""
        at = np.searchsorted(self.source, np.arange(self.pages + 1))
        return [self.target[first:end].tolist() for first, end in pairwise(at.tolist())]


def hosted(pages: int, seed: int, *, hosts: int = 1000, links: int = 10, inside: float = 0.75) -> Graph:
    """Make a graph of hosts: sizes, and how attractive pages are, follow Zipf's law."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, hosts + 1)
    host = np.sort(rng.choice(hosts, pages, p=share / share.sum()))
    first = np.searchsorted(host, np.arange(hosts + 1))
    heaped = np.concatenate([[0], np.cumsum((rng.permutation(pages) + 1.0) ** -ATTRACTION)])
    source = np.repeat(np.arange(pages), np.minimum(rng.geometric(1 / links, pages), 500))
    stays = rng.random(len(source)) < inside
    low = np.where(stays, heaped[first[host[source]]], 0.0)
    high = np.where(stays, heaped[first[host[source] + 1]], heaped[-1])
    drawn = np.searchsorted(heaped, low + rng.random(len(source)) * (high - low), side="right") - 1
    return _reachable(rng, pages, source, np.clip(drawn, 0, pages - 1), host)


def attached(pages: int, seed: int, *, links: int = 10, hosts: int = 1000) -> Graph:
    """Make a graph by preferential attachment: 4 of 5 links go where an earlier link goes, the others anywhere."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(pages), rng.integers(1, 2 * links, pages))
    copies, place, anywhere = rng.random(len(source)) < 0.8, rng.random(len(source)), rng.integers(0, pages, len(source))
    target = anywhere.tolist()
    for at in np.flatnonzero(copies[1:]).tolist():
        target[at + 1] = target[int(place[at + 1] * (at + 1))]
    return _reachable(rng, pages, source, np.array(target), rng.integers(0, hosts, pages))


def _reachable(rng: np.random.Generator, pages: int, source: Ints, target: Ints, host: Ints) -> Graph:
    """Let each page but the first be linked from one that comes before it in some order."""
    order = rng.permutation(pages)
    before = order[(rng.random(pages - 1) * np.arange(1, pages)).astype(np.int64)]
    source, target = np.concatenate([source, before]), np.concatenate([target, order[1:]])
    links = np.unique((source * pages + target)[source != target])
    return Graph(pages, links // pages, links % pages, host, int(order[0]))


def pagerank(graph: Graph) -> Floats:
    """Compute PageRank by power iteration; what pages without links hold goes to all."""
    degree = np.bincount(graph.source, minlength=graph.pages)
    rank = np.full(graph.pages, 1 / graph.pages)
    for _ in range(ROUNDS):
        part = rank / np.maximum(degree, 1)
        flow = np.bincount(graph.target, weights=part[graph.source], minlength=graph.pages)
        rank = (1 - DAMPING) / graph.pages + DAMPING * (flow + rank[degree == 0].sum() / graph.pages)
    return rank


def spearman(one: Floats, other: Floats) -> float:
    """Correlate the ranks; equal values share the middle of their places."""

    def places(values: Floats) -> Floats:
        _, group, size = np.unique(values, return_inverse=True, return_counts=True)
        end = np.cumsum(size)
        return ((2 * end - size - 1) / 2)[group]

    return float(np.corrcoef(places(one), places(other))[0, 1])


class Crawl:
    """A crawl of a graph in some order (None: breadth first), with rows kept packed as the frontier's table keeps them.

    books: by which rule pages pay, if not by that of the order.
    """

    def __init__(self, graph: Graph, order: Order | None, books: Order | None = None) -> None:
        self.graph, self.order, self.books = graph, order, books or order or "inlinks"
        self.root = Root()
        self.worth = Importance(self.books, self.root)
        self.keys = [page.to_bytes(16, "big") for page in range(graph.pages)]
        self.page_of = {key: page for page, key in enumerate(self.keys)}
        self.rows: dict[bytes, bytes] = {}
        self.fetched: dict[int, None] = {}
        self.host_pages = [0] * (int(graph.host.max()) + 1)
        self.place: dict[int, tuple[float, int]] = {}  # of a known page: its rank and serial
        self.heap: list[tuple[float, int, int]] = []
        self.links_seen, self.moves, self.cost_s = 0, 0, 0.0

    def run(self, budget: int) -> list[int]:
        """Fetch so many pages and give them in order."""
        links, host = self.graph.links(), self.graph.host.tolist()
        self._hold([self.keys[self.graph.start]])
        self._queue(self.graph.start, self.worth.arrive(self.keys[self.graph.start], seed=True))
        self._write()
        while self.heap and len(self.fetched) < budget:
            rank, serial, page = heapq.heappop(self.heap)
            if self.place[page] == (rank, serial) and page not in self.fetched:
                self.fetched[page] = None
                began = time.process_time()
                self._settle(page, links[page], self.host_pages[host[page]])
                self.cost_s += time.process_time() - began
                self.host_pages[host[page]] += 1
        return list(self.fetched)

    def estimates(self) -> Floats:
        """Give what the crawl thinks of each page; 0 for those it never heard of."""
        found = np.zeros(self.graph.pages)
        for key, row in self.rows.items():
            worth = worth_of(row)
            found[self.page_of[key]] = importance(worth, self.root) if self.books == "opic" else worth.cash
        return found

    def _settle(self, page: int, links: list[int], host_pages: int) -> None:
        keys = [self.keys[link] for link in links]
        self._hold([self.keys[page], *keys])
        self.worth.settle(self.keys[page], keys, host_pages=host_pages)
        for link, key in zip(links, keys, strict=True):
            if link not in self.place:
                self._queue(link, self.worth.arrive(key))
        self.links_seen += len(links)
        self._write()

    def _hold(self, keys: list[bytes]) -> None:
        unread = self.worth.unread(keys)
        self.worth.hold(unread, [self.rows.get(key) for key in unread])

    def _write(self) -> None:
        changes = self.worth.take()
        self.rows.update(changes.save)
        for key, priority in changes.grown:
            page = self.page_of[key]
            if page not in self.fetched and self.order is not None:
                self.moves += 1
                self._queue(page, priority)

    def _queue(self, page: int, priority: float) -> None:
        serial = self.place[page][1] if page in self.place else len(self.place)
        self.place[page] = (-priority if self.order is not None else 0.0, serial)
        heapq.heappush(self.heap, (*self.place[page], page))


def recall(rank: Floats, fetched: list[int]) -> float:
    """Tell how much of the top 1 % is among the first 2 % fetched."""
    top = set(np.argsort(-rank)[: len(rank) // 100].tolist())
    return len(top.intersection(fetched[: len(rank) // 50])) / len(top)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("graph seed    links   recall: breadth inlinks  opic   Spearman: inlinks  opic   moves a page   µs a link")
    for seed in range(options.seeds):
        graphs = {
            "hosts": hosted(options.pages, seed),
            "wild": hosted(options.pages, seed, hosts=options.pages // 5, links=30),
            "rich": attached(options.pages, seed),
        }
        for name, graph in graphs.items():
            rank = pagerank(graph)
            _, counted, paid = crawls = Crawl(graph, None), Crawl(graph, "inlinks"), Crawl(graph, "opic")
            budgets = (graph.pages // 50, graph.pages, graph.pages)
            found = [recall(rank, crawl.run(budget)) for crawl, budget in zip(crawls, budgets, strict=True)]
            close = [spearman(crawl.estimates(), rank) for crawl in (counted, paid)]
            micros, moves = paid.cost_s / paid.links_seen * 1e6, paid.moves / graph.pages
            print(f"{name:5} {seed:4} {paid.links_seen:8}           {found[0]:7.3f} {found[1]:7.3f} {found[2]:5.3f}", end="")
            print(f"             {close[0]:7.3f} {close[1]:5.3f}   {moves:12.2f}   {micros:9.2f}", flush=True)


if __name__ == "__main__":
    main()
