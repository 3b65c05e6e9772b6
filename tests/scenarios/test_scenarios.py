"""Conversations with the frontier's core: prose, commands, `----`, the expected trace.

`pytest tests/scenarios --rewrite` writes the traces anew; commit such a diff only if you understand every line of it.

Commands, one a line: `policy delay_s=1 per_host=2 …` · `bounds max_depth=2 …` · `now +S` · `seed URL…` (the operator's inbox) ·
`candidate URL[@DEPTH][!PRIORITY]…` · `from CHANNEL URL…` · `control ACTION [TARGET] [value=V]` · `bans LINE…` (a ban file) ·
`outcome LEASE VERDICT key=value…` (url and kind are the lease's) · `turn room=N` · `restart void|keep`.
"""

from __future__ import annotations

import shlex
from math import inf
from pathlib import Path

import msgspec
import pytest

from crawltool import records
from crawltool.core.frontier.bans import Bans, read_lines
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.channels import Rule, read_rule
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier, Turn
from crawltool.core.scope import Scope, ScopeRules
from tests.sim.store import DictStore

FOLDER = Path(__file__).parent
START = 1_000_000.0


class Conversation:
    """One scenario file's state."""

    def __init__(self) -> None:
        self.store = DictStore()
        self.policy = Policy(delay_factor=0.0)
        self.bounds = Bounds()
        self.now = START
        self.run = 0
        self.events: list[Event] = []
        self.bans = Bans()
        self.channels: dict[str, Rule] = {}
        self.frontier: Frontier | None = None
        self.targets: dict[str, records.Target] = {}

    def core(self) -> Frontier:
        if self.frontier is None:
            self._start(void=True)
        assert self.frontier is not None
        return self.frontier

    def _start(self, *, void: bool) -> None:
        self.run += 1
        scope = Scope(ScopeRules("host"))
        self.frontier = Frontier(self.store, self.policy, self.bounds, scope, bans=self.bans, channels=self.channels)
        self.store.commit(self.frontier.start(self.run, self.now, void_leases=void))

    def command(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        return list(getattr(self, "do_" + word)(rest) or [])

    def do_policy(self, rest: list[str]) -> None:
        self.policy = Policy(**({"delay_factor": 0.0} | pairs(rest)))

    def do_bounds(self, rest: list[str]) -> None:
        self.bounds = Bounds(**pairs(rest))

    def do_now(self, rest: list[str]) -> None:
        self.now += float(rest[0])

    def do_seed(self, rest: list[str]) -> None:
        for url in rest:
            url, _, second = url.partition("|")
            self.events.append(Event(records.Candidate(url=url, source="seed", else_url=second or None), b"", channel="inbox"))

    def do_candidate(self, rest: list[str]) -> None:
        for url in rest:
            url, _, priority = url.partition("!")
            url, _, depth = url.partition("@")
            self.events.append(Event(records.Candidate(url=url, depth=int(depth or 1), priority=float(priority or 0)), b""))

    def do_from(self, rest: list[str]) -> None:
        for url in rest[1:]:
            self.events.append(Event(records.Candidate(url=url, source="seed"), b"", channel=rest[0]))

    def do_control(self, rest: list[str]) -> None:
        channel = "" if rest[0] == "forged" else "inbox"
        words = [word for word in rest if not word.startswith("value=") and word != "forged"]
        value = next((msgspec.Raw(word[6:].encode()) for word in rest if word.startswith("value=")), None)
        target = {"url" if "/" in words[1] else "host": words[1]} if len(words) > 1 else {}
        self.events.append(Event(records.Control(action=words[0], value=value, **target), b"", channel=channel))

    def do_bans(self, rest: list[str]) -> None:
        self.bans = Bans({"bans.txt": read_lines("\n".join(rest), "bans.txt")})
        if self.frontier is not None:
            self.frontier.steering.replace_bans({"bans.txt": self.bans.lists["bans.txt"]}, [])

    def do_channel(self, rest: list[str]) -> None:
        self.channels |= dict(read_rule(text) for text in rest)

    def do_outcome(self, rest: list[str]) -> None:
        lease, verdict, *facts = rest
        given = pairs(facts)
        target = self.targets.get(lease)
        base = {"url": target.url, "kind": target.kind} if target else {"url": "http://nobody.example/", "kind": "page"}
        if "links" in given:
            given["links"] = [records.Link(url=url) for url in str(given["links"]).split(",")]
        if "addresses" in given:
            given["addresses"] = str(given["addresses"]).split(",")
        if "disallow" in given or "crawl_delay" in given:
            rules = [("disallow", given["disallow"], 2)] if "disallow" in given else []
            given["robots"] = records.Robots(rules=rules, crawl_delay_s=given.pop("crawl_delay", None))
            given.pop("disallow", None)
        if "took" in given:
            given["elapsed_s"] = given.pop("took")
            given["fetched_at"] = self.now - given["elapsed_s"]
        outcome = records.Outcome(**(base | {"lease": lease, "verdict": verdict} | given))
        self.events.append(Event(outcome, records.encode(outcome)))

    def do_restart(self, rest: list[str]) -> None:
        self._start(void=rest == ["void"])

    def do_turn(self, rest: list[str]) -> list[str]:
        room = int(pairs(rest).get("room", 10))
        core = self.core()
        events, self.events = self.events, []
        turn = core.turn(events, self.now, room)
        self.store.commit(turn.save)
        return self.trace(turn)

    def trace(self, turn: Turn) -> list[str]:
        out = []
        for line in turn.targets:
            target = records.decode(line)
            assert isinstance(target, records.Target)
            self.targets[target.lease] = target
            at = f" at {target.address}" if target.address else ""
            of = f" for {target.for_}" if target.for_ else ""
            out.append(f"target {target.lease} {target.kind} {target.url}{at}{of}")
        ledger = self.core().book.ledger
        parts = [f"{n} {word}" for word, n in (("queued", ledger.queued), ("leased", ledger.leased), ("done", ledger.done)) if n]
        parts += [f"{n} failed({why})" for why, n in ledger.failed.items()] + [
            f"{n} refused({why})" for why, n in ledger.refused.items()
        ]
        parts += [f"{n} {why}" for why, n in (ledger.out_of_scope | ledger.lines_refused).items()]
        out.append("sums " + (", ".join(parts) or "nothing"))
        out += [f"says {news}" for news in turn.news]
        steering = self.core().steering
        out += [
            f"told {' '.join(str(fact) for name, fact in row.items() if name != 'did')}: {row['did']}" for row in steering.told
        ]
        steering.told.clear()
        wake = "never" if turn.wakeup == inf else f"+{max(turn.wakeup - self.now, 0):.6g}"
        out.append("idle" if turn.idle else f"wakeup {wake}")
        return out


def pairs(words: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = (
                float(value) if "." in value and value.replace(".", "").isdigit() and value.count(".") == 1 else int(value)
            )
        except ValueError:
            found[name] = value
    return found


def play(text: str) -> str:
    """Run a scenario and give it with the traces that came out."""
    talk, out, in_trace = Conversation(), [], False
    for line in text.splitlines():
        if line.strip() == "----":
            in_trace = True
        elif in_trace:
            in_trace = line.strip() != ""
            if not in_trace:
                out.append("")
        else:
            out.append(line)
            if line.strip() and not line.startswith("#"):
                trace = talk.command(line)
                if trace:
                    out += ["----", *trace]
    return "\n".join(out).rstrip() + "\n"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda p: p.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
    assert played == text
