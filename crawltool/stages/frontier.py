"""The frontier's shell: waits for lines, lets the core decide, saves, then releases.

The order of `_one_turn` is the protocol: commit (law 1), then hand the targets to a writer task that alone waits for the
pipe, then let go of the inbox segment (law 4). The frontier never waits on a write: pipes hold 64 KiB, and a loop of
blocking writers stands still. Run by cli/frontier; one per crawl directory, by flock on frontier.lock.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import msgspec
import trio

from crawltool import limits, records
from crawltool.core.frontier import status
from crawltool.core.frontier.bans import Bans
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.channels import Rule
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.ordering import Order
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Event, Frontier, Turn
from crawltool.core.scope import Scope, ScopeRules
from crawltool.errors import BadRecord, CannotHold, NoInput, NothingFetched, Unfinished
from crawltool.stages.clock import LOCK_NAME, Clock, from_note, read_note
from crawltool.stages.drain import TrioDrain
from crawltool.stages.frontierinputs import Doors
from crawltool.stages.sinks import AsyncSink
from crawltool.stages.sources import AsyncSource, Batch
from crawltool.stores import atomic
from crawltool.stores.banfiles import BanFiles
from crawltool.stores.crawldb import CrawlDb
from crawltool.stores.crawllog import CrawlLog

STATUS_EVERY_S = 1.0
STATS_EVERY_S = 10.0
BATCH_LINES_MAX = 2000  # of one turn


@dataclass(frozen=True)
class Settings:
    """What the operator decided."""

    dir: Path
    policy: Policy = field(default_factory=Policy)
    bounds: Bounds = field(default_factory=Bounds)
    scope: ScopeRules = field(default_factory=ScopeRules)
    order: Order = field(default_factory=Order)
    ban_files: tuple[Path, ...] = ()
    channels: dict[str, Rule] = field(default_factory=dict)
    accept: tuple[str, ...] = ("candidate", "outcome")  # record types of the input
    room: int = 1000
    until_idle: bool = False
    max_rest_s: float = 900.0
    max_time_s: float | None = None
    strict: bool = False
    voids_leases: bool = True  # the output is a pipe: targets of a dead fetch are gone with it
    in_force: dict[str, object] = field(default_factory=dict)  # every option as typed, kept in stats.jsonl


class FrontierStage:
    """One run of the frontier on a crawl directory."""

    def __init__(self, settings: Settings, source: AsyncSource, inbox: AsyncSource, sink: AsyncSink, drain: TrioDrain) -> None:
        self.settings = settings
        self.source, self.inbox, self.sink, self.drain = source, inbox, sink, drain
        self.lock = hold(settings.dir)
        note = read_note(self.lock.read())
        self.clock: Clock = from_note(note)
        self.db = CrawlDb(settings.dir / "frontier.db")
        # Both are asked: a lock file that was lost must not give lease ids a second time.
        self.run_number = max(note.run, int(self.db.get(Table.META, b"run") or b"0")) + 1
        self.lock.write(self.clock.note(self.run_number, os.getpid()))
        self.log = CrawlLog(settings.dir / "outcomes")
        self.ban_files = BanFiles(settings.ban_files)
        bans, scope = Bans(self.ban_files.lists), Scope(settings.scope)
        self.core = Frontier(self.db, settings.policy, settings.bounds, scope, settings.order, bans, settings.channels)
        self.doors = Doors(settings.dir, source, inbox, settings.accept)
        self.looked_at = -inf  # when the folders of inbox.d and the ban files were last looked at
        self.survey = status.Survey()
        self.waiting = trio.CancelScope()
        self.outgoing: deque[bytes] = deque()
        self.has_outgoing = trio.Event()
        self.is_closed = trio.Event()  # the output
        self.releasing = True
        self.complete = False  # a spool of targets is over for good
        self.why_stopped: Unfinished | None = None
        self.started_at = self.clock.now()
        self.bad_lines = 0
        self.said: list[str] = []
        self.last_turn: Turn | None = None
        self.caught_up = True  # all input that was readable has been read

    async def run(self) -> None:
        """Run to the end. Raises the ending: Unfinished, NothingFetched, or nothing when the crawl is complete."""
        self._start()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._heed_signals)
                nursery.start_soon(self._tell)
                await self._loop()
                with trio.move_on_after(limits.GRACE_S):
                    await self.is_closed.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._stop()
        self._ending()

    # --- start and stop ---

    def _start(self) -> None:
        now = self.clock.now()
        void = self.settings.voids_leases and self._no_fetch_alive()
        self.db.commit(self.core.start(self.run_number, now, void_leases=void))
        self.log.append(list(self.db.outbox()), now)
        self.log.flush()
        self.db.forget_outbox(self.log.durable)
        calm_collector()

    def _no_fetch_alive(self) -> bool:
        try:
            atomic.lock(self.settings.dir / "fetch.lock").release()
        except CannotHold:
            return False
        return True

    def _stop(self) -> None:
        self.log.flush()
        self.db.forget_outbox(self.log.durable)
        self.survey = status.Survey()
        self._write_status()
        self._keep_stats()
        self.log.close()
        self.db.close()
        self.doors.inputs.close()
        self.lock.release()

    def _ending(self) -> None:
        """Say how it ended, by the exit code's class."""
        ledger = self.core.book.ledger
        if self.why_stopped is not None:
            if ledger.pages == 0 and ledger.leased == 0 and self.last_turn is not None and self.last_turn.next_release_at < inf:
                raise NothingFetched(f"nothing was fetched: {self.why_stopped}")
            raise self.why_stopped
        if self.drain.reason is None and ledger.ok_pages == 0:
            raise NothingFetched(self._reasons())

    def _reasons(self) -> str:
        ledger = self.core.book.ledger
        reasons = [f"{n} × {what}" for what, n in ledger.lines()]
        reasons += [f"{n} × {what}" for what, n in {**ledger.lines_refused, **ledger.out_of_scope}.items()]
        closed = [f"{name}: {why}" for name, why in status.closed_hosts(self.core.book).items()]
        told = "; ".join([*reasons, *closed])
        return f"no seed gave a page ({told or 'there were no seeds'})"

    # --- tasks ---

    async def _heed_signals(self) -> None:
        """Wake the loop when the drain begins."""
        await self.drain.stopping.wait()
        self.waiting.cancel()

    async def _write(self) -> None:
        """Drain the outgoing targets; the only task that waits for the pipe."""
        while True:
            if not self.outgoing:
                if not self.releasing:
                    await self.sink.aclose(end=self.complete)
                    self.is_closed.set()
                    return
                self.has_outgoing = trio.Event()
                await self.has_outgoing.wait()
                continue
            lines = list(self.outgoing)
            self.outgoing.clear()
            await self.sink.publish(lines)

    async def _tell(self) -> None:
        """Write status.json each second and a line of stats.jsonl each ten; the run's first line there is its policy."""
        next_stats = 0.0
        self._keep({"at": self.started_at, "run": self.run_number, "policy": self.settings.in_force})
        while True:
            self._write_status()
            now = self.clock.now()
            if now >= next_stats:
                next_stats = now + STATS_EVERY_S
                self._keep_stats()
            await trio.sleep(STATUS_EVERY_S)

    def _keep_stats(self) -> None:
        self._keep(self._status() | {"discovery": self.core.lessons.discovery.line()})

    def _keep(self, row: dict[str, object]) -> None:
        with atomic.disk(self.settings.dir), (self.settings.dir / "stats.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    def _status(self) -> dict[str, object]:
        now = self.clock.now()
        return status.status(self.core.book, now, self.survey) | {
            "at": now,
            "run": self.run_number,
            "started_at": self.started_at,
            "elapsed_s": round(now - self.started_at, 3),
            "bad_lines": self.bad_lines,
            "limit": self.core.release.limit,
            "said": self.said[-20:],
            "control": self.core.steering.status(),
        }

    def _write_status(self) -> None:
        atomic.write_file(self.settings.dir / "status.json", msgspec.json.encode(self._status()) + b"\n", durable=False)

    # --- the loop ---

    async def _loop(self) -> None:
        wakeup = self.clock.now()
        while True:
            batches = await self._arrivals(wakeup)
            turn = self._one_turn(batches)
            wakeup = turn.wakeup
            if self.releasing and self._should_stop(turn):
                self._stop_releasing()
            if not self.releasing and self.source.ended:
                return

    async def _arrivals(self, wakeup: float) -> list[Batch]:
        """Wait for input until `wakeup`, the log's next frame or the time limit; give all that is there then."""
        until = min(wakeup, self.log.wakeup() or inf, self._time_is_up_at())
        if self.releasing:
            self._look_around()
            wait_s = limits.SPOOL_RESCAN_S if self.core.steering.new_lists is None else 0.0
            until = min(until, self.clock.now() + wait_s)
        batch = None
        with trio.CancelScope() as self.waiting:
            if not (self.releasing and self.drain.stopping.is_set()):
                inputs = self.doors.inputs if self.releasing else self.source
                batch = await inputs.next(max(until - self.clock.now(), 0.0))
        batches: list[Batch] = []
        lines = 0
        while batch is not None and batch.lines and lines < BATCH_LINES_MAX:
            batches.append(batch)
            lines += len(batch.lines)
            batch = self.doors.inputs.poll() if self.releasing else self.source.poll()
        if batch is not None and batch.lines:
            batches.append(batch)
        self.caught_up = lines < BATCH_LINES_MAX
        return batches

    def _time_is_up_at(self) -> float:
        limit_s = self.settings.max_time_s
        return self.started_at + limit_s if limit_s is not None and self.releasing else inf

    def _one_turn(self, batches: list[Batch]) -> Turn:
        """The protocol: decide, commit, release, let go."""
        now = self.clock.now()
        events: list[Event] = []
        segments: list[bytes] = []
        for batch in batches:
            segment = self.doors.segment_of(batch)
            segments += [segment] if segment is not None else []
            if segment is None or self.db.get(Table.META, segment) is None:
                events += self.doors.events(batch, self._bad_line, self._refused_line)
        for _ in range(self.doors.newly_dropped()):
            self._bad_line(b"", "longer than a record may be")
        self._reload_if_asked(events)
        room = self.settings.room if self.releasing else 0
        turn = self.core.turn(events, now, room, caught_up_at=now if self.caught_up else -inf)
        turn.save += [(Table.META, segment, b"1") for segment in segments]
        self._log_control(now)
        if turn.save:
            self.db.commit(turn.save)
            self.db.keep_sieve()
        self._release(turn)
        self._keep_log(turn, now)
        for batch in batches:
            batch.done()
        if segments:
            self.db.commit([(Table.META, segment, None) for segment in segments])
        self.said += turn.news
        self.last_turn = turn
        return turn

    def _bad_line(self, line: bytes, why: str) -> None:
        self.bad_lines += 1
        self._refused_line("not a record")
        if self.settings.strict:
            raise BadRecord(f"{why}: {line[:80]!r}")

    def _refused_line(self, why: str) -> None:
        bump(self.core.book.ledger.lines_refused, why)

    # --- control ---

    def _look_around(self) -> None:
        """See every few seconds whether a channel is new or a ban file has changed."""
        now = self.clock.now()
        if now < self.looked_at + limits.SPOOL_RESCAN_S:
            return
        self.looked_at = now
        self.said += self.doors.rescan()
        if self.ban_files.changed():
            self._reload_bans()

    def _reload_if_asked(self, events: list[Event]) -> None:
        if any(isinstance(e.record, records.Control) and e.operator and e.record.action == "reload" for e in events):
            self._reload_bans()

    def _reload_bans(self) -> None:
        """Read the ban files; the core judges by them from the next turn on, what is queued included."""
        troubles = self.ban_files.reload()
        self.said += troubles
        self.core.steering.replace_bans(self.ban_files.lists, troubles)

    def _log_control(self, now: float) -> None:
        """Keep what control lines did, before it counts: after a crash a line may be logged twice, never not at all."""
        told, self.core.steering.told = self.core.steering.told, []
        for row in told:
            self._keep({"at": now, "run": self.run_number, "control": row})
            self.said.append(f"control: {row['action']} {row.get('host') or row.get('url') or ''}: {row['did']}")

    def _release(self, turn: Turn) -> None:
        if turn.targets:
            self.outgoing.extend(turn.targets)
            self.has_outgoing.set()

    def _keep_log(self, turn: Turn, now: float) -> None:
        """Append what is in the outbox to the crawl log; what is durable there leaves the outbox."""
        durable = self.log.durable
        lines = [(int.from_bytes(key, "big"), value) for table, key, value in turn.save if table is Table.OUTBOX and value]
        if self.log.append(lines, now) > durable:
            self.db.forget_outbox(self.log.durable)

    # --- when to stop ---

    def _should_stop(self, turn: Turn) -> bool:
        now = self.clock.now()
        if self.drain.stopping.is_set():
            return True
        if self.core.steering.stop:
            self.why_stopped = Unfinished("stopped by crawltool control")
            return True
        if self.source.ended and not (turn.idle and self.settings.until_idle):
            self.why_stopped = Unfinished("the input ended while targets were out; nothing more is released")
            return True
        if now >= self._time_is_up_at():
            self.why_stopped = Unfinished(f"the time limit of {self.settings.max_time_s:g} s is reached")
            return True
        if not self.settings.until_idle or not self.doors.is_quiet(self.core.channels.is_full):
            return False
        if turn.idle:
            return True
        if self.core.leases_out == 0 and not self.core.steering.is_busy and turn.next_release_at - now > self.settings.max_rest_s:
            resting = status.resting_hosts(self.core.book, now)
            told = ", ".join(f"{name} for {rest_s:.0f} s" for name, rest_s in resting.items())
            self.why_stopped = Unfinished(f"only hosts that rest longer than --max-rest remain: {told}")
            return True
        return False

    def _stop_releasing(self) -> None:
        """Close the output once it is drained; the input is settled to its end."""
        self.releasing = False
        self.complete = self.why_stopped is None and not self.drain.stopping.is_set()
        self.source.stop()  # a spool has no end of file; a pipe is read to its end all the same
        self.has_outgoing.set()


def calm_collector() -> None:
    """Let the cyclic collector look seldom, and not at what the start loaded.

    A turn makes thousands of rows that reference counts free; looking for cycles among all hosts meanwhile took a third of
    the frontier's time.
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


def hold(directory: Path) -> atomic.Lock:
    """Hold a crawl directory's frontier lock. Raises CannotHold when another frontier does, NoInput without directory."""
    if not directory.is_dir():
        raise NoInput(f"{directory} is not a crawl directory", remedy="make it with: crawltool init -C DIR --contact …")
    try:
        return atomic.lock(directory / LOCK_NAME)
    except CannotHold:
        raise CannotHold(f"another frontier holds {directory}") from None
