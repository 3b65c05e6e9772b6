"""Whatever the operator does while outcomes come in and the frontier is killed: counters and rows say the same (law 6)."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import records
from crawltool.core.frontier import rows
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

HOSTS = ("192.0.2.1", "192.0.2.2")
URLS = [f"http://{host}/{page}" for host in HOSTS for page in "abcd"]
VERDICTS: list[tuple[records.Verdict, int | None]] = [
    ("ok", 200), ("gone", 410), ("server_error", 500), ("timeout", None), ("busy", 429), ("returned", None),
    ("unreachable", None),
]  # fmt: skip

control = st.one_of(
    st.builds(
        lambda action, url: records.Control(action=action, url=url),
        st.sampled_from(["inject", "requeue", "forget"]),
        st.sampled_from(URLS),
    ),
    st.builds(
        lambda action, host: records.Control(action=action, host=host),
        st.sampled_from(["block", "unblock", "requeue", "forget"]),
        st.sampled_from(HOSTS),
    ),
    st.builds(
        lambda action, url: records.Control(action=action, url=url), st.sampled_from(["block", "unblock"]), st.just("re:/[ab]$")
    ),
    st.builds(
        lambda reason: records.Control(action="requeue", value=msgspec.Raw(msgspec.json.encode(reason))),
        st.sampled_from(["gone", "banned"]),
    ),
    st.builds(lambda action: records.Control(action=action), st.sampled_from(["pause", "resume"])),
    st.builds(
        lambda action, host, value: records.Control(action=action, host=host, value=msgspec.Raw(b"%d" % value)),
        st.sampled_from(["slow", "budget"]),
        st.sampled_from(HOSTS),
        st.integers(0, 3),
    ),
)
step = st.one_of(
    st.tuples(st.just("control"), control),
    st.tuples(st.just("outcome"), st.sampled_from(VERDICTS)),
    st.tuples(st.just("candidate"), st.sampled_from(URLS)),
    st.tuples(st.just("turn"), st.sampled_from([0.0, 1.0, 30.0, 700.0])),
    st.tuples(st.just("restart"), st.booleans()),
)


class World:
    """One crawl: the core on a dict, and the targets that are out."""

    def __init__(self) -> None:
        self.store, self.now, self.run = DictStore(), 1_000_000.0, 0
        self.out: list[records.Target] = []
        self.events: list[Event] = [Event(records.Candidate(url=url, source="seed"), b"", "inbox") for url in URLS[::2]]
        self.restart(void=True)
        for _ in range(2):  # past the robots.txt of both hosts
            self.turn()
            self.answer("ok", 200)
            self.answer("ok", 200)
            self.turn()
            self.now += 1.0

    def restart(self, *, void: bool) -> None:
        self.run += 1
        policy = Policy(delay_factor=0.0, backoff_s=0.5, retries=1, per_host=2)
        self.core = Frontier(self.store, policy, Bounds(), Scope(ScopeRules("host")))
        self.store.commit(self.core.start(self.run, self.now, void_leases=void))

    def turn(self) -> None:
        events, self.events = self.events, []
        turn = self.core.turn(events, self.now, 4)
        self.store.commit(turn.save)
        for line in turn.targets:
            target = records.decode(line)
            assert isinstance(target, records.Target)
            self.out.append(target)
        self.check()

    def answer(self, verdict: records.Verdict, status: int | None) -> None:
        if not self.out:
            return
        target = self.out.pop(0)
        asked = {"fetched_at": self.now, "elapsed_s": 0.1} if verdict != "returned" else {}
        if target.kind == "robots" and verdict == "ok":
            verdict, status = "client_error", 404
        links = [records.Link(url=url) for url in URLS] if verdict == "ok" else []
        outcome = records.Outcome(
            url=target.url, lease=target.lease, kind=target.kind, verdict=verdict, status=status, links=links, **asked
        )
        self.events.append(Event(outcome, records.encode(outcome)))

    def check(self) -> None:
        ledger, tables = self.core.book.ledger, self.store.rows
        ledger.check()
        words = [rows.STATE_WORDS[row[:1]] for row in tables[Table.KNOWN].values()]
        assert words.count("queued") == ledger.queued
        assert words.count("leased") == ledger.leased
        assert words.count("done") == ledger.done
        assert words.count("failed") == sum(ledger.failed.values())
        assert words.count("refused") == sum(ledger.refused.values())
        queued = [value for value in tables[Table.QUEUE].values() if rows.entry_of(value).kind != "robots"]
        assert len(queued) + len(tables[Table.WAITING]) == ledger.queued
        assert len(tables[Table.SETTLED]) == sum(ledger.failed.values()) + sum(ledger.refused.values())
        assert 0 <= ledger.pages_out <= ledger.leased


@settings(max_examples=150, deadline=None)
@given(st.lists(step, min_size=15, max_size=60))
def test_counters_and_rows_say_the_same(steps: list[tuple[str, object]]) -> None:
    world = World()
    for word, what in steps:
        if word == "control":
            world.events.append(Event(what, b"", "inbox"))  # type: ignore[arg-type]
            if len(world.events) % 2:
                world.turn()
        elif word == "outcome":
            world.answer(*what)  # type: ignore[misc]
            world.now += 1.0
            world.turn()
        elif word == "candidate":
            world.events.append(Event(records.Candidate(url=str(what)), b""))
        elif word == "turn":
            world.now += float(what)  # type: ignore[arg-type]
            world.turn()
        else:
            world.events.clear()
            world.restart(void=bool(what))
    world.turn()


def test_setting_twice_changes_nothing() -> None:
    """Each action that sets, given again in a later turn, leaves every row as it was."""
    for action, target, value in (
        ("block", {"host": HOSTS[0]}, None),
        ("slow", {"host": HOSTS[0]}, b"5"),
        ("budget", {"host": HOSTS[0]}, b"5"),
        ("reputation", {"host": HOSTS[0]}, b"0.5"),
        ("pause", {}, None),
        ("resume", {}, None),
        ("unblock", {"host": HOSTS[0]}, None),
        ("forget", {"url": URLS[0]}, None),
    ):
        world = World()
        world.turn()
        found = []
        for _ in range(2):
            record = records.Control(action=action, value=msgspec.Raw(value) if value else None, **target)
            world.events.append(Event(record, b"", "inbox"))
            world.turn()
            world.turn()
            found.append({table: dict(world.store.rows[table]) for table in Table if table is not Table.META})
            found[-1][Table.META] = {k: v for k, v in world.store.rows[Table.META].items() if k.startswith(b"control:")}
        assert found[0] == found[1], action
