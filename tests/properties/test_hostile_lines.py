"""No line, however odd its numbers and texts, breaks the frontier: it is applied within bounds, or refused and counted."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawltool import records
from crawltool.core.frontier import rows
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

NOW = 1_700_000_000.0
YEAR_S = 366 * 86_400.0
LONG = "http://192.0.2.1/" + "x" * 100_000
URLS = st.sampled_from(
    [
        "http://192.0.2.1/a", "http://192.0.2.1/b?c=%ff", "http://192.0.2.2/", "http://192.0.2.1:70000/", "http://[::1", "", "x",
        "ftp://192.0.2.1/", "http://192.0.2.1/\ud800", "http://user:pass@192.0.2.1/a", "http://192.0.2.1/%00", "javascript:1",
        "http://192.0.2.1/robots.txt", "http://host.test/", "http://./", "http://192.0.2.1/../../x", "\x00", "http://xn--/",
        "http://é.test/ü", LONG,
    ]
)  # fmt: skip
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-300, 1e18, 1e300, -1e300, 1.7e308, NOW, NOW + 1e9, -NOW, 253402300800.0])
COUNTS = st.sampled_from([0, 1, -1, 5, 17, 1 << 31, 1 << 63, -(1 << 63), 10**30])
TEXTS = st.sampled_from(["", "x", "\x00", "é" * 400, "no_such_name", "2026-13-99", "\ud800"])


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


LINKS = st.builds(
    records.Link,
    url=URLS,
    kind=st.sampled_from(["a", "sitemap", "sitemap_index", "?"]),
    hops=COUNTS,
    priority=NUMBERS,
    follow=st.booleans(),
)
PATTERNS = st.sampled_from(["/", "*", "$", "", "/a", "*" * 500])
ROBOTS = st.builds(
    records.Robots,
    rules=st.lists(st.tuples(st.sampled_from(["allow", "disallow", "?"]), PATTERNS, COUNTS), max_size=3),
    crawl_delay_s=some(NUMBERS),
    sitemaps=st.lists(URLS, max_size=3),
    max_age_s=some(NUMBERS),
)
CANDIDATES = st.builds(
    records.Candidate, url=URLS, kind=st.sampled_from(records.KINDS), source=TEXTS, via=some(URLS), depth=COUNTS, hops=COUNTS,
    priority=NUMBERS, due_at=some(NUMBERS), lastmod=some(TEXTS), importance=some(NUMBERS), else_url=some(URLS),
)  # fmt: skip
SEEDS = st.builds(records.Candidate, url=URLS, source=st.just("seed"), else_url=some(URLS), priority=NUMBERS)
FACTS = st.fixed_dictionaries(
    {"verdict": st.sampled_from(list(records.VERDICTS))},
    optional={
        "status": some(st.sampled_from([0, -1, 200, 301, 404, 429, 500, 99999])),
        "reason": some(TEXTS), "redirect": some(URLS), "fetched_at": some(NUMBERS), "elapsed_s": some(NUMBERS),
        "addresses": some(st.lists(st.sampled_from(["192.0.2.9", "::1", "", "x", "999.1.1.1"]), max_size=3)),
        "ttl_s": some(NUMBERS), "body_bytes": some(COUNTS), "retry_after_s": some(NUMBERS), "robots": some(ROBOTS),
        "depth": COUNTS, "hops": COUNTS, "links": st.lists(LINKS, max_size=3), "peer_ip": some(TEXTS),
        "page": some(st.builds(records.Page, words=COUNTS, links_found=COUNTS)),
        "dup": some(st.builds(records.Dup, kind=st.sampled_from(["exact", "near"]), of=URLS, distance=COUNTS)),
    },
)  # fmt: skip
STEPS = st.one_of(
    st.tuples(st.just("candidate"), CANDIDATES, st.sampled_from(["", "inbox", "other"])),
    st.tuples(st.just("candidate"), SEEDS, st.just("inbox")),
    st.tuples(st.just("answer"), st.integers(0, 5), FACTS),
    st.tuples(st.just("forge"), st.tuples(URLS, TEXTS, st.sampled_from(records.KINDS)), FACTS),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 1.0, 60.0, 700.0, 1e5]), st.none()),
    st.tuples(st.just("restart"), st.booleans(), st.sampled_from([0.0, -1e6, 1e6])),
)


class Victim:
    """A frontier core that is told anything."""

    def __init__(self) -> None:
        self.store, self.now, self.run = DictStore(), NOW, 0
        self.out: list[records.Target] = []
        self.start(True, 0.0)

    def start(self, void: bool, jump_s: float) -> None:
        self.run += 1
        self.now += jump_s
        self.core = Frontier(self.store, Policy(delay_s=0.0, backoff_s=1.0), Bounds(), Scope(ScopeRules("host")))
        self.store.commit(self.core.start(self.run, self.now, void_leases=void))

    def step(self, word: str, what: Any, more: Any) -> None:
        events: list[Event] = []
        if word == "wait":
            self.now += what
        elif word == "restart":
            self.start(what, more)
        elif word == "candidate":
            events = told(what, more)
        elif word == "answer" and self.out:
            target = self.out.pop(what % len(self.out))
            events = told(records.Outcome(url=target.url, lease=target.lease, kind=target.kind, **more))
        elif word == "forge":
            url, lease, kind = what
            events = told(records.Outcome(url=url, lease=lease, kind=kind, **more))
        turn = self.core.turn(events, self.now, 20)
        assert turn.wakeup == inf or turn.wakeup < self.now + YEAR_S
        self.store.commit(turn.save)
        targets = [records.decode(line) for line in turn.targets]
        self.out += [target for target in targets if isinstance(target, records.Target)]

    def check(self) -> None:
        """The sums match, and no host or waiting URL was put off for ever."""
        self.core.book.ledger.check()
        for value in self.store.rows[Table.HOSTS].values():
            row = rows.host_row_of(value)
            times = [*row.slots, row.rest_s, row.rest_until, row.backoff_s, row.failed_at]
            assert all(isfinite(at) and at <= self.now + YEAR_S for at in times), row
            assert row.address_until == inf or row.address_until <= self.now + YEAR_S  # literal addresses hold for ever
        for place in self.store.rows[Table.WAITING]:
            assert int.from_bytes(place[:8], "big") / 1e6 < self.now + YEAR_S


def told(record: records.Record, channel: str = "") -> list[Event]:
    """Let a record cross a pipe; one that cannot is a bad line and is counted by the shell."""
    try:
        line = records.encode(record)
        return [Event(records.decode(line), line, channel=channel)]
    except (ValueError, UnicodeEncodeError, OverflowError):
        return []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(STEPS, min_size=1, max_size=14))
def test_any_lines_leave_a_crawl_whose_sums_match(steps: list[tuple[str, Any, Any]]) -> None:
    victim = Victim()
    victim.step("candidate", records.Candidate(url="http://192.0.2.1/a", source="seed"), "inbox")
    for word, what, more in steps:
        victim.step(word, what, more)
        victim.check()
    victim.start(True, 0.0)
    victim.step("wait", 0.0, None)
    victim.check()
