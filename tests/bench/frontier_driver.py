"""Drives core/frontier/turn on a real database as stages/frontier does, and measures only that.

`Driver.turn` is the one place that follows stages/frontier: decode, decide, commit, keep the sieve, keep the crawl log. `Pump`
plays everybody else between its turns, with the clock stopped. Time in the crawl is counted, not waited for.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

import numpy as np

from crawltool import limits, records
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier, Turn
from crawltool.core.scope import Scope, ScopeRules
from crawltool.stages.frontier import BATCH_LINES_MAX, calm_collector
from crawltool.stores.crawldb import CrawlDb
from crawltool.stores.crawllog import CrawlLog
from tests.bench.frontier_feed import Answers, Indices, candidate_lines, urls

RULES = ScopeRules("all", include=("https://*",), exclude=("*/private/*", "re:[?&]sessionid="))
BOUNDS = Bounds(max_pages=1 << 50, max_bytes=1 << 60)  # each is looked at, none bites
LINES_AHEAD = 20_000  # candidate lines made before the clock runs: 8 MB
LINKS_OF_A_PAGE = 50
TARGETS_A_SECOND = 20_000.0  # how fast the crawl's clock runs, in settled lines …
CANDIDATES_A_SECOND = 100_000.0  # … and in offered ones
SETTLE_S_MAX = 600.0


class Meter:
    """What a phase took. Seconds of the measured parts; `cpu_s` has all that other threads (RocksDB's) did meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        self.wall_s = self.main_s = 0.0
        self.parts: Counter[str] = Counter()
        self._others_before = others_cpu()

    @property
    def cpu_s(self) -> float:
        return self.main_s + others_cpu() - self._others_before

    def add(self, other: Meter) -> None:
        """Add a part of this phase."""
        self.count += other.count
        self.wall_s += other.wall_s
        self.main_s += other.main_s
        self.parts.update(other.parts)

    def settle(self) -> None:
        """Wait until RocksDB has no work left: it is this phase's work."""
        end, before = time.monotonic() + SETTLE_S_MAX, -inf
        while time.monotonic() < end and others_cpu() - before > 0.02:
            before = others_cpu()
            time.sleep(0.5)

    def row(self) -> dict[str, object]:
        each = {name: round(spent / max(self.count, 1) * 1e6, 2) for name, spent in self.parts.items()}
        told = {"count": self.count, "wall_s": self.wall_s, "cpu_s": self.cpu_s, "main_s": self.main_s}
        return {name: round(value, 3) for name, value in told.items()} | {"us_each": each}


def others_cpu() -> float:
    """Give the CPU seconds of all threads but this one."""
    return time.process_time() - time.thread_time()


@dataclasses.dataclass
class State:
    """What a database holds, kept beside it after each chunk."""

    folder: Path
    hosts: int
    next: int = 0  # the first index that is not known
    now: float = 1e9  # of the crawl
    run: int = 0

    @classmethod
    def load(cls, folder: Path, hosts: int) -> State:
        file = folder / "bench.json"
        state = cls(folder, **json.loads(file.read_text())) if file.exists() else cls(folder, hosts)
        if state.hosts != hosts:
            raise SystemExit(f"{folder} was filled over {state.hosts} hosts, not {hosts}")
        return state

    def save(self) -> None:
        told = {name: value for name, value in dataclasses.asdict(self).items() if name != "folder"}
        spare = self.folder / "bench.json.new"
        spare.write_text(json.dumps(told))
        spare.replace(self.folder / "bench.json")


class Driver:
    """A frontier on a directory."""

    def __init__(self, folder: Path, policy: Policy, bounds: Bounds = BOUNDS) -> None:
        self.db = CrawlDb(folder / "frontier.db")
        self.log = CrawlLog(folder / "outcomes")
        self.core = Frontier(self.db, policy, bounds, Scope(RULES))
        self.now = 0.0
        self.meter = Meter()

    def start(self, run: int, now: float) -> None:
        """Take up where the last run stopped."""
        self.now = now
        self.db.commit(self.core.start(run, now, void_leases=True))
        self.log.append(list(self.db.outbox()), now)
        self.log.flush()
        self.db.forget_outbox(self.log.durable)
        calm_collector()

    def turn(self, lines: Sequence[bytes], room: int) -> Turn:
        """Do one turn, measured."""
        clock, parts = time.perf_counter, self.meter.parts
        main, began = time.thread_time(), clock()
        events = [Event(records.decode(line), line, False) for line in lines]
        decoded = clock()
        turn = self.core.turn(events, self.now, room, caught_up_at=self.now)
        decided = clock()
        if turn.save:
            self.db.commit(turn.save)
            self.db.keep_sieve()
        saved = clock()
        self._keep_log(turn)
        ended = clock()
        self.meter.main_s += time.thread_time() - main
        self.meter.wall_s += ended - began
        parts.update(decode=decoded - began, turn=decided - decoded, commit=saved - decided, log=ended - saved)
        return turn

    def _keep_log(self, turn: Turn) -> None:
        durable = self.log.durable
        lines = [(int.from_bytes(key, "big"), value) for table, key, value in turn.save if table is Table.OUTBOX and value]
        if self.log.append(lines, self.now) > durable:
            self.db.forget_outbox(self.log.durable)


class Pump:
    """Plays seed, fetch, parse and dedup."""

    def __init__(self, driver: Driver, room: int, made: Callable[[Indices], list[bytes]]) -> None:
        self.driver, self.room, self.made = driver, room, made
        self.answers = Answers()
        self.waiting: deque[bytes] = deque()  # targets that are out
        self.kinds: Counter[str] = Counter()  # what was settled
        self.dry = False  # nothing is left that could be served

    def offer(self, indices: Indices) -> None:
        """Offer URLs as candidate lines; no target leaves."""
        for begin in range(0, len(indices), LINES_AHEAD):
            lines = candidate_lines(self.made(indices[begin : begin + LINES_AHEAD]))
            for start in range(0, len(lines), BATCH_LINES_MAX):
                part = lines[start : start + BATCH_LINES_MAX]
                self.driver.turn(part, 0)
                self.driver.meter.count += len(part)
                self.driver.now += len(part) / CANDIDATES_A_SECOND

    def crawl(self, indices: Indices) -> None:
        """Offer URLs as the links of pages, LINKS_OF_A_PAGE each, so that each has its share of a target."""
        for begin in range(0, len(indices), LINES_AHEAD):
            links = deque(self.made(indices[begin : begin + LINES_AHEAD]))
            while links:
                before = len(links)
                lines = self._answered(links)
                if not lines and self.dry:  # a crawl that has just begun: its seeds
                    lines = candidate_lines([links.popleft() for _ in range(min(before, 1000))])
                self._turn(lines)
                self.driver.meter.count += before - len(links)

    def serve(self, count: int) -> None:
        """Let `count` targets leave and come back without links, or all there are."""
        self.dry, settled = False, self.kinds.total()
        while not self.dry and self.kinds.total() - settled < count:
            before = self.kinds.total()
            self._turn(self._answered(deque()))
            self.driver.meter.count += self.kinds.total() - before

    def _answered(self, links: deque[bytes]) -> list[bytes]:
        """Answer what is out: at most what one turn would read from a pipe."""
        lines: list[bytes] = []
        size, needs_links = 0, bool(links)
        while self.waiting and len(lines) < BATCH_LINES_MAX and size < limits.PIPE_READ_BYTES and (links or not needs_links):
            target = records.decode(self.waiting.popleft())
            assert isinstance(target, records.Target)
            found = [links.popleft() for _ in range(min(len(links), LINKS_OF_A_PAGE))] if target.kind == "page" else []
            lines.append(self.answers.line(target, self.driver.now, found))
            self.kinds[target.kind] += 1
            size += len(lines[-1])
        return lines

    def _turn(self, lines: list[bytes]) -> None:
        """Do one turn, then let time pass: as at full speed, or until something can leave."""
        driver = self.driver
        driver.now += max(len(lines), 1) / TARGETS_A_SECOND
        turn = driver.turn(lines, self.room)
        self.waiting.extend(turn.targets)
        self.dry = not self.waiting and turn.wakeup == inf
        if not self.waiting and not self.dry:
            driver.now = max(driver.now, turn.wakeup)


def many_hosts(hosts: int) -> Callable[[Indices], list[bytes]]:
    """Give how URLs are made over so many hosts."""
    return lambda indices: urls(indices, hosts)


def span(begin: int, end: int) -> Indices:
    """Give the indices from begin to before end."""
    return np.arange(begin, end, dtype=np.int64)
