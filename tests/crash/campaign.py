"""Kills real crawls at many random points, several crawls at a time, and holds each against the laws once it has ended.

A worker is a thread with a test web of its own; starting processes is most of the work, waiting for hosts costs nothing. What a
crawl does follows from the seed and its number (tests/crash/plans), but for the scheduling of processes. Called by
`python -m tests.crash` and by test_kill.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.crash.checks import check, gaps
from tests.crash.plans import SITES, Blow, Plan
from tests.e2e.crawls import Crawl, family, kill_group, pages_asked
from tests.e2e.reference import reach
from tests.e2e.test_whole_site import LOOPBACK, may
from tests.web import Ask, Web

ROOM = 16
WAIT_S_MAX = 120.0
LOOK_EVERY_S = 0.01
ROUNDING_S = 0.001  # of the server's log


class Watch:
    """Follows the test web's log during one crawl."""

    def __init__(self, web: Web) -> None:
        self._file = web.log_file
        self._offset = self._file.stat().st_size if self._file.exists() else 0
        self.asks: list[Ask] = []
        self.pages: set[str] = set()

    def look(self) -> None:
        """Take in what was asked for since."""
        if not self._file.exists() or self._file.stat().st_size == self._offset:
            return
        with self._file.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().rpartition(b"\n")[0]
        self._offset += len(lines) + 1 if lines else 0
        new = [Ask(**json.loads(line)) for line in lines.splitlines()]
        self.asks += new
        self.pages.update(pages_asked(new))


@dataclass
class Tally:
    """What came of the crawls."""

    crawls: int = 0
    pages: int = 0
    repeats: int = 0
    repeats_a_kill: float = 0.0  # the most in one crawl
    kills: Counter[str] = field(default_factory=Counter)  # by victim
    moments: Counter[str] = field(default_factory=Counter)
    shares: Counter[int] = field(default_factory=Counter)  # by tenth of the pages that had been asked for; -1 before the first
    smallest: dict[float, float] = field(default_factory=lambda: defaultdict(lambda: 1e9))  # gap by delay
    over_kill: dict[float, float] = field(default_factory=lambda: defaultdict(lambda: 1e9))  # the same with a kill in between
    bound: int = 0  # gaps over a kill that the delay, not the restart, made as long as they are

    def add(self, other: Tally) -> None:
        """Add another one."""
        self.crawls, self.pages, self.repeats = self.crawls + 1, self.pages + other.pages, self.repeats + other.repeats
        self.repeats_a_kill = max(self.repeats_a_kill, other.repeats / max(other.kills.total(), 1))
        self.kills += other.kills
        self.moments += other.moments
        self.shares.update(other.shares)
        for ours, theirs in ((self.smallest, other.smallest), (self.over_kill, other.over_kill)):
            for delay_s, gap_s in theirs.items():
                ours[delay_s] = min(ours[delay_s], gap_s)
        self.bound += other.bound

    def summary(self) -> list[str]:
        """Tell it in a few lines."""
        victims = ", ".join(f"{count} {victim}" for victim, count in self.kills.most_common())
        tenths = ", ".join(f"{self.shares[tenth]}" for tenth in range(11))
        lines = [
            f"{self.kills.total()} kills ({victims}) in {self.crawls} crawls: {self.pages} pages, none lost",
            f"{self.repeats} repeats, at most {self.repeats_a_kill:.1f} a kill (--room {ROOM})",
            f"{self.moments['start']} of them while the stages started, {self.shares[-1]} before the first page; the others "
            f"by tenth of the pages asked for, and after the last: {tenths}",
        ]
        for delay_s, gap_s in sorted(self.smallest.items()):
            over = f", over a kill {self.over_kill[delay_s]:.4f} s" if delay_s in self.over_kill else ""
            lines.append(f"--delay {delay_s:g}: smallest gap seen by a host {gap_s:.4f} s{over}")
        return [*lines, f"{self.bound} gaps over a kill were within 1 s of the delay: only the kept clock held them"]


class Killing:
    """One crawl: kills it by plan, runs it to its end, checks it."""

    def __init__(self, plan: Plan, web: Web, folder: Path, expected: set[str]) -> None:
        self.plan, self.web, self.expected = plan, web, expected
        options = ["--delay", f"{plan.delay_s}", "--delay-factor", "0", "--backoff", "0.1s", "--room", str(ROOM), *LOOPBACK]
        self.crawl = Crawl(
            folder, *(web.url(name) for name in plan.sites), *options, "--concurrency", "8", name=f"crawl{plan.number}"
        )
        self.seedless = Crawl(folder, name=f"crawl{plan.number}")
        self.watch = Watch(web)
        self.killed_at: list[float] = []
        self.tally = Tally()

    def run(self) -> Tally:
        """Do all of it. Raises AssertionError where a law is broken."""
        for blow in self.plan.blows:
            if not self._strike(blow):
                break
            self.watch.look()
            asked = pages_asked(self.watch.asks)
            repeats, most = asked.total() - len(asked), ROOM * len(self.killed_at)
            assert repeats <= most, f"{repeats} repeats after {len(self.killed_at)} kills"
        self.crawl.run(timeout_s=WAIT_S_MAX)
        self.watch.look()
        check(self.crawl, self.watch.asks, self.expected, ROOM * len(self.killed_at))
        self._measure()
        return self.tally

    def _strike(self, blow: Blow) -> bool:
        """Start the crawl and kill it or one of its stages at its moment; False when it had ended before."""
        begun = bool(self.watch.asks)
        process = (self.seedless if blow.seedless and begun else self.crawl).start()
        try:
            if not self._moment(blow, process):
                assert process.returncode == 0, f"ended with {process.returncode}:\n{self.crawl.said()[-3000:]}"
                return False
            victim = self._stage(process, blow.victim) if blow.victim != "group" else None
            self.killed_at.append(time.monotonic())
            if victim is None:
                kill_group(process)
            else:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
                code = process.wait(WAIT_S_MAX)
                assert code in (0, 75), f"{blow.victim} was killed, crawl ended with {code}:\n{self.crawl.said()[-3000:]}"
        finally:
            kill_group(process)
        self.tally.kills[blow.victim if victim is not None else "group"] += 1
        self.tally.moments[blow.moment] += 1
        done = len(self.watch.pages) * 10 // len(self.expected)
        self.tally.shares[done if self.watch.pages else -1] += 1
        return True

    def _moment(self, blow: Blow, process: subprocess.Popen[str]) -> bool:
        """Wait for the blow's moment; False when the crawl ended first."""
        started, before = time.monotonic(), len(self.watch.asks)
        after_s = blow.at if blow.moment == "end" else blow.then_s
        all_asked = len(self.watch.pages) == len(self.expected)
        while process.poll() is None:
            self.watch.look()
            passed_s = time.monotonic() - started
            share = len(self.watch.pages) / len(self.expected)
            if all_asked or blow.moment == "start":  # no request may come
                is_time = passed_s >= (blow.at if blow.moment == "start" else 2 * after_s)
            else:
                is_time = share >= (blow.at if blow.moment == "progress" else 1.0) and len(self.watch.asks) > before
            if is_time:
                time.sleep(0.0 if blow.moment == "start" else after_s)
                return process.poll() is None
            assert passed_s < WAIT_S_MAX, f"{blow} did not come; the crawl said:\n{self.crawl.said()[-3000:]}"
            time.sleep(LOOK_EVERY_S)
        return False

    @staticmethod
    def _stage(process: subprocess.Popen[str], name: str) -> psutil.Process | None:
        """Find a stage; None when it has ended."""
        for member in family(process)[1:]:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                words = member.cmdline()
                if name in words and any("crawltool" in word for word in words):
                    return member
        return None

    def _measure(self) -> None:
        """Claim that no host was asked early (law 5), and note how near it was."""
        delay_s, tally = self.plan.delay_s, self.tally
        for gap_s, began, between in gaps(self.watch.asks):
            assert gap_s >= delay_s - ROUNDING_S, f"{gap_s:.4f} s between {between}, with --delay {delay_s:g}"
            tally.smallest[delay_s] = min(tally.smallest[delay_s], gap_s)
            if any(began < at < began + gap_s for at in self.killed_at):
                tally.over_kill[delay_s] = min(tally.over_kill[delay_s], gap_s)
                tally.bound += gap_s < delay_s + 1 and delay_s > 1
        asked = pages_asked(self.watch.asks)
        tally.pages, tally.repeats = len(asked), asked.total() - len(asked)


class Campaign:
    """Many crawls, until enough kills have been made."""

    def __init__(self, folder: Path, seed: int, kills: int, minutes: float = 1e9, first: int = 0) -> None:
        self.folder, self.seed, self.kills = folder, seed, kills
        self.until = time.monotonic() + minutes * 60
        self.began = time.monotonic()
        self.tally = Tally()
        self.planned = 0  # kills of the crawls that run
        self.next = first
        self.failures: list[str] = []
        self.lock = threading.Condition()

    def run(self, jobs: int) -> None:
        """Run so many crawls at a time, until enough kills were made, a law was broken or the time is up."""
        workers = [threading.Thread(target=self._work, args=(number,)) for number in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, worker: int) -> None:
        folder = self.folder / f"worker{worker}"
        folder.mkdir()
        with Web(folder, SITES) as web:
            reached = {name: set(reach([web.url(name)], may)) for name in SITES}
            while (plan := self._plan()) is not None:
                expected = set[str]().union(*(reached[name] for name in plan.sites))
                try:
                    self._done(plan, Killing(plan, web, folder, expected).run())
                except Exception:
                    with self.lock:
                        self.failures.append(f"crawl {plan.number} in {folder} ({plan}):\n{traceback.format_exc()}")
                        self.lock.notify_all()
                    return
                shutil.rmtree(folder / f"crawl{plan.number}")

    def _plan(self) -> Plan | None:
        with self.lock:
            # Not each planned kill finds its crawl alive: wait for what the others make of theirs.
            self.lock.wait_for(lambda: self._left() > 0 or not self.planned or self.failures)
            if self._left() <= 0 or self.failures or time.monotonic() > self.until:
                return None
            plan = Plan.make(self.seed, self.next, self.kills)
            self.planned += len(plan.blows)
            self.next += 1
            return plan

    def _left(self) -> int:
        return self.kills - self.tally.kills.total() - self.planned

    def _done(self, plan: Plan, tally: Tally) -> None:
        with self.lock:
            self.planned -= len(plan.blows)
            self.tally.add(tally)
            self.lock.notify_all()
            victims = ", ".join(f"{count} {victim}" for victim, count in tally.kills.most_common())
            minutes = (time.monotonic() - self.began) / 60
            print(
                f"crawl {plan.number} ({plan.kind}, {len(plan.sites)} hosts): killed {victims or 'never'}; {tally.pages} pages, "
                f"{tally.repeats} repeats. {self.tally.kills.total()} of {self.kills} kills, {minutes:.1f} min",
                flush=True,
            )
