"""What the operator sets is durable, bounded, and told."""

from __future__ import annotations

import msgspec
import pytest

from crawltool import limits, records
from crawltool.core.frontier import jobs, rows
from crawltool.core.frontier.bans import Bans, read_lines
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

HOST = "192.0.2.1"


class Desk:
    """A frontier on a dict, and the operator before it."""

    def __init__(self, bans: Bans | None = None) -> None:
        self.store, self.run, self.now, self.bans = DictStore(), 0, 1e6, bans
        self.start()

    def start(self) -> Frontier:
        self.run += 1
        self.core = Frontier(self.store, Policy(), Bounds(), Scope(ScopeRules("host")), bans=self.bans)
        self.store.commit(self.core.start(self.run, self.now, void_leases=True))
        return self.core

    def turn(self, *events: records.Record, room: int = 0) -> list[str]:
        turn = self.core.turn([Event(event, records.encode(event), "inbox") for event in events], self.now, room)
        self.store.commit(turn.save)
        told, self.core.steering.told = self.core.steering.told, []
        return [str(row["did"]) for row in told]

    def sow(self, pages: int) -> None:
        self.turn(*(records.Candidate(url=f"http://{HOST}/{number}", source="seed") for number in range(pages)))


def wish(action: str, value: object = None, **target: str) -> records.Control:
    return records.Control(action=action, value=msgspec.Raw(msgspec.json.encode(value)) if value is not None else None, **target)


def test_what_is_set_is_there_after_a_restart() -> None:
    desk = Desk()
    desk.sow(1)
    desk.turn(wish("slow", 7, host=HOST), wish("budget", 3, host=HOST), wish("reputation", 0.5, host=HOST))
    desk.turn(wish("block", host="*.example.org"), wish("pause"))
    steering = desk.start().steering
    assert (steering.delays, steering.budgets, steering.reputations) == ({HOST: 7.0}, {HOST: 3}, {HOST: 0.5})
    assert steering.paused
    assert steering.bans.lists["control"].lines() == ["*.example.org"]
    desk.turn(wish("slow", host=HOST), wish("budget", host=HOST), wish("reputation", host=HOST), wish("resume"))
    desk.turn(wish("unblock", host="*.example.org"))
    left = [key for key in desk.store.rows[Table.META] if key.startswith(b"control:") and key != b"control:bans"]
    assert left == []


def test_a_host_that_nobody_met_can_be_set_and_is_not_made() -> None:
    desk = Desk()
    desk.turn(
        wish("slow", 7, host="Never.Example"), wish("budget", 7, host="never.example"), wish("forget", host="never.example")
    )
    assert desk.core.steering.delays == {"never.example": 7.0}
    assert not desk.store.rows[Table.HOSTS]


def test_a_job_takes_a_bounded_part_of_each_turn_and_goes_on_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ROWS_PER_TURN", 10)
    desk = Desk()
    desk.sow(35)
    assert desk.turn(wish("block", host=f"={HOST}")) == [f"blocked ={HOST}"]
    ledger = desk.core.book.ledger
    assert (ledger.queued, ledger.refused) == (25, {"banned": 10})
    turn = desk.core.turn([], desk.now, 0)  # killed before the commit
    assert turn.wakeup == desk.now and not turn.idle
    desk.start()
    told: list[str] = []
    for _ in range(3):
        told += desk.turn()
    assert told == ["35 queued URLs refused (banned)"]
    assert desk.core.book.ledger.refused == {"banned": 35}
    assert desk.core.turn([], desk.now, 0).idle


def test_a_ban_list_that_changed_between_two_runs_is_applied() -> None:
    desk = Desk()
    desk.sow(5)
    desk.bans = Bans({"f": read_lines(f"{HOST}/[0-2]", "f")})
    desk.start()
    desk.turn()
    assert desk.core.book.ledger.refused == {"banned": 3}
    desk.bans = None
    desk.start()
    assert desk.turn() == ["3 URLs queued again that were refused (banned)"]
    assert desk.core.book.ledger.queued == 5
    desk.start()
    assert not desk.core.steering.jobs, "nothing changed since"


def test_an_injected_url_is_the_head_of_its_host() -> None:
    desk = Desk()
    desk.sow(3)
    desk.turn(records.Candidate(url=f"http://{HOST}/claims", source="link", priority=1e5))
    desk.turn(wish("inject", url=f"http://{HOST}/now"))
    queue = desk.store.rows[Table.QUEUE]
    assert rows.entry_of(queue[min(queue)]).url == f"http://{HOST}/now"


def test_a_banned_url_is_not_injected_nor_requeued() -> None:
    desk = Desk()
    desk.sow(2)
    desk.turn(wish("block", host=HOST))
    said = desk.turn(wish("inject", url=f"http://{HOST}/0"), wish("requeue", url=f"http://{HOST}/0"), wish("requeue", host=HOST))
    assert said[0] == f"not queued: banned by {HOST} (control)"
    assert said[1] == "not queued: banned still holds"
    assert said[3] == "0 dead letters queued again; 2 are refused for a reason that still holds"


def test_a_stop_of_an_earlier_run_stops_nothing() -> None:
    desk = Desk()
    assert desk.turn(wish("stop", 0)) == ["run 0 is over already"]
    assert not desk.core.steering.stop
    desk.turn(wish("stop", 1))
    assert desk.core.steering.stop
    assert not desk.start().steering.stop


@pytest.mark.parametrize(
    "control",
    [
        wish("dance"),
        wish("x" * 1000),
        wish("slow", host=HOST, value=limits.CONTROL_DELAY_S_MAX + 1),
        wish("slow", host=HOST, value=True),
        wish("slow", host=HOST, value=[1]),
        wish("budget", host="a b", value=1),
        wish("budget", value=1),
        wish("budget", host="x" * 100_000, value=1),
        wish("inject", url="ftp://a.example/"),
        wish("inject", url="http://" + "x" * 70_000),
        wish("block", url="re:("),
        wish("block", host="#"),
        wish("requeue", value={"a": 1}),
        wish("forget"),
    ],
    ids=lambda control: control.action[:20],
)
def test_what_cannot_be_meant_is_counted_and_told_and_changes_nothing(control: records.Control) -> None:
    desk = Desk()
    said = desk.turn(control)
    assert len(said) == 1 and said[0].startswith("refused: ") and len(said[0]) < 300
    assert sum(desk.core.book.ledger.lines_refused.values()) == 1
    assert all(len(reason) < 120 for reason in desk.core.book.ledger.lines_refused)
    assert not [key for key in desk.store.rows[Table.META] if key.startswith(b"control:")]


def test_control_from_elsewhere_is_counted() -> None:
    desk = Desk()
    for channel in ("", "feeds"):
        desk.core.turn([Event(wish("pause"), b"", channel)], desk.now, 0)
    assert desk.core.book.ledger.lines_refused == {"control: not from the operator": 2}
    assert not desk.core.steering.paused
