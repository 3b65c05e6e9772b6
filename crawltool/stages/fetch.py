"""The fetch stage: asks what the frontier releases, stores the answers, tells what came of it.

Targets are the exception to law 4: they are let go of before they are asked, and only the frontier sends one again. What is
not started is answered `returned`. Law 2: finished exchanges queue; one task stores all that finished meanwhile with one
fsync and then publishes their outcomes. stages/fetching.py holds what needs no waiting. Run by cli/fetch.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple, Protocol

import trio

from crawltool import limits, records
from crawltool.core import urls
from crawltool.core.mediatypes import WantedTypes
from crawltool.core.urls import Url
from crawltool.errors import Misuse
from crawltool.net import descriptors, failures
from crawltool.net.body import BodyMemory
from crawltool.net.dns import NoName, Resolver
from crawltool.net.engine import Engine, Exchange, Request
from crawltool.records import Outcome, Target
from crawltool.stages import clock as clocks
from crawltool.stages import fetching as asking
from crawltool.stages.clock import Clock
from crawltool.stages.drain import ReaderGone, TrioDrain
from crawltool.stages.feeds import Batch
from crawltool.stages.fetchpressure import Throttle
from crawltool.stages.fetchroom import Room
from crawltool.stages.fetchsettings import Settings
from crawltool.stages.outlets import parse_routes
from crawltool.stages.sinks import open_async_sink
from crawltool.stages.sources import AsyncSource, open_async_source
from crawltool.stages.where import Trouble
from crawltool.stores import atomic
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warc import Capture, Stored, WarcWriter

FETCH_LOCK = "fetch.lock"
TOO_LATE = "too late: its lease would end before the exchange"
NO_CONTACT = (
    "without --contact only loopback addresses are asked: whoever runs a site must be able to reach whoever crawls it, so "
    "the contact is sent in User-Agent and From"
)


class Archive(Protocol):
    """What the stage needs of stores/warc.WarcWriter: durable on return."""

    def store(self, captures: Sequence[Capture]) -> list[Stored]: ...


class Network(Protocol):
    """What the stage needs of net/engine.Engine. stages/fetchreplay answers from an archive instead."""

    memory: BodyMemory

    @property
    def in_flight(self) -> int: ...

    async def exchange(self, request: Request) -> Exchange: ...


class Lines(Protocol):
    """What the stage needs of an AsyncSink."""

    async def publish(self, lines: Sequence[bytes]) -> None: ...


class _Finished(NamedTuple):
    """An answer on its way out; `exchange` and `capture` where there is something to store."""

    outcome: Outcome
    exchange: Exchange | None = None
    capture: Capture | None = None


class FetchStage:
    """One run of fetch. `counts` tells, while it runs and after, how many outcomes had which verdict."""

    def __init__(
        self,
        settings: Settings,
        source: AsyncSource,
        sink: Lines,
        archive: Archive,
        drain: TrioDrain,
        *,
        clock: Clock | None = None,
        resolver: Resolver | None = None,
        network: AbstractAsyncContextManager[Network] | None = None,
        say: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.settings, self.source, self.sink, self.archive, self.drain, self.say = settings, source, sink, archive, drain, say
        self.clock = clock or clocks.of_crawl(settings.dir)
        self.network, self.is_replay = network or Engine(settings.engine), network is not None
        self.resolver = resolver or Resolver(pins=settings.pins)
        timeouts_s = (settings.timeout_connect_s, settings.timeout_first_byte_s, settings.timeout_total_s)
        types = WantedTypes(settings.types)
        self.asking = asking.Asking(settings.identity, types, settings.max_body_bytes, timeouts_s, self.resolver.connect_port)
        self.counts: Counter[str] = Counter()
        self.candidates = self.targets = 0
        self._run = ""  # of the frontier, as in its leases; '' when there is none
        self._lock: atomic.Lock | None = None
        self._waiting: deque[Target] = deque()
        self._ahead = limits.TARGETS_AHEAD * settings.concurrency
        self._fewer = trio.Event()  # no more than that wait
        self._workers = 0
        self._throttle = Throttle(settings.concurrency, say)
        self._room = Room(settings.dir, settings.min_free_bytes, settings.max_rest_s, say)
        self._told: list[_Finished] = []  # with nothing to store
        self._finished: list[_Finished] = []
        self._passing: list[bytes] = []  # lines that are not ours
        self._passed = trio.Event()
        self._news = trio.Event()
        self._stored = trio.Event()
        self._is_storing = False
        self._all_landed = self._is_ending = False

    async def run(self) -> None:
        """Run to the end of input. Raises DiskTrouble, Misuse; a drain is concluded by the caller's TrioDrain."""
        try:
            async with self.network as self._engine, trio.open_nursery() as nursery:
                self._room.look()
                self._throttle.grant(descriptors.free())
                nursery.start_soon(self._obey)
                nursery.start_soon(self._throttle.watch, lambda: self._engine.in_flight, self._hire_more)
                nursery.start_soon(self._room.watch, self._while_paused, self._give_up)
                committed = trio.Event()
                nursery.start_soon(self._settle, committed)
                async with trio.open_nursery() as self._air:
                    await self._read()
                self._all_landed = True
                self._news.set()
                await committed.wait()
                nursery.cancel_scope.cancel()
        finally:
            if self._lock is not None:
                self._lock.release()
        self._room.check()
        if self.candidates and not self.targets:
            self.say("candidates came, but no target: put `crawltool frontier` before fetch, it decides what is fetched and when")

    # --- in ---

    async def _read(self) -> None:
        """Take batches until the input ends; a reader that has gone ends it too."""
        with trio.CancelScope() as self._reading:
            while (batch := await self.source.next()) is not None:
                if batch.lines:
                    self._take(batch)
                    await self._pass_on()
                batch.done()
                while len(self._waiting) > self._ahead:
                    self._fewer = trio.Event()  # the rest is left to the pipe, or to another fetch of the spool
                    await self._fewer.wait()

    def _take(self, batch: Batch) -> None:
        for number, line in enumerate(batch.lines, batch.first):
            kind = records.type_of(line)
            if kind == "target":
                self._take_target(line, batch.origin, number)
            elif kind:
                self.candidates += kind == "candidate"
                self._passing.append(line)
            else:
                self.source.trouble.refuse(batch.origin, number, "not a record", line)

    def _take_target(self, line: bytes, origin: str, number: int) -> None:
        try:
            target = records.decode(line)
        except ValueError as error:
            self.source.trouble.refuse(origin, number, f"not a target: {error}", line)
            return
        assert isinstance(target, Target)
        self._begin()
        if self.drain.reason is not None:
            self._finish(_Finished(asking.returned(target, "fetch is stopping")))
        elif not self._is_of_this_run(target):
            self._finish(_Finished(asking.returned(target, "its lease is of another run of the frontier")))
        elif target.kind == "address":
            self._air.start_soon(self._look_up, target)  # outside of --concurrency: a slow name must not hold up a page
        else:
            self._waiting.append(target)
            self._hire(1)

    def _begin(self) -> None:
        """At the first target: say on disk that a fetch is alive, and learn the frontier's run and clock."""
        self.targets += 1
        if self._lock is not None:
            return
        # A starting frontier holds this for an instant, to see whether anybody fetches.
        self._lock = atomic.lock(self.settings.dir / FETCH_LOCK, shared=True, wait=True)
        self._learn_run()

    def _learn_run(self) -> None:
        try:
            note = clocks.read_note((self.settings.dir / clocks.LOCK_NAME).read_bytes())
        except FileNotFoundError:
            return
        self._run = str(note.run) if note.run else ""
        if note.boot and note.boot == clocks.boot_id():
            self.clock.offset = note.offset

    def _is_of_this_run(self, target: Target) -> bool:
        """Tell whether the frontier that holds the directory gave this lease: one of an older run may be given twice."""
        if not self._run:
            return True
        run = target.lease.partition("-")[0]
        if run != self._run:
            self._learn_run()  # the frontier may have been started again since
        return run == self._run or not self._run

    # --- asking ---

    def _hire(self, count: int) -> None:
        """Start workers, as far as so many may be in flight."""
        for _ in range(min(count, self._throttle.allowed - self._workers)):
            self._workers += 1
            self._air.start_soon(self._work)

    def _hire_more(self) -> None:
        self._hire(len(self._waiting))

    async def _work(self) -> None:
        """Ask what waits, one target after the other, until nothing waits or fewer may be in flight."""
        try:
            while self._waiting and self._workers <= self._throttle.allowed:
                if self._room.is_paused:
                    await self._room.wait()
                elif self._is_behind():
                    await self._stored.wait()
                else:
                    target = self._waiting.popleft()
                    if len(self._waiting) == self._ahead:
                        self._fewer.set()
                    await self._ask(target)
        finally:
            self._workers -= 1

    def _is_behind(self) -> bool:
        """Tell whether answers come faster than they are stored: then wait, rather than put them into temporary files."""
        return self._is_storing and self._engine.memory.used > self.settings.body_memory_bytes // 2

    async def _ask(self, target: Target) -> None:
        url = urls.split(target.url)
        if url is None:
            return self._finish(_Finished(asking.failed(target, "malformed", f"url: {urls.why_not(target.url)}")))
        address = _literal(target.address or url.host)
        if address is None:
            return self._finish(_Finished(asking.returned(target, "no address: a target names the one to connect to")))
        if self.settings.contact is None and not self.is_replay and not ip_address(address).is_loopback:
            raise Misuse(NO_CONTACT, remedy="give --contact MAIL-or-URL")
        if self._is_too_late(target):
            return self._finish(_Finished(asking.returned(target, TOO_LATE)))
        return await self._exchange(target, url, address)

    def _is_too_late(self, target: Target) -> bool:
        return bool(target.expires_at) and self.clock.now() > target.expires_at - self.settings.timeout_total_s

    async def _exchange(self, target: Target, url: Url, address: str) -> None:
        """Carry one exchange. One that is cut off, at the end of the grace time, comes back with its times."""
        began_at = self.clock.now()
        try:
            exchange = await self._engine.exchange(self.asking.request(target, url, address))
        except trio.Cancelled:
            elapsed_s = self.clock.now() - began_at
            self._finish(_Finished(asking.returned(target, "cut off", round(began_at, 6), round(elapsed_s, 6))))
            raise
        if self._throttle.is_shortage(exchange.error, exchange.reason, self._engine.in_flight):
            await self._ask_later(target)
            return
        fetched_at = self.clock.at(exchange.started)
        outcome = self.asking.outcome(target, url, exchange, fetched_at)
        self._finish(_Finished(outcome, exchange, asking.capture(target, url, exchange, fetched_at)))

    async def _ask_later(self, target: Target) -> None:
        """Put back a target that nobody was asked for, because this machine ran short."""
        if self._is_ending:
            self._finish(_Finished(asking.returned(target, "fetch is stopping")))
        else:
            self._waiting.appendleft(target)
            await self._throttle.pause()

    async def _look_up(self, target: Target) -> None:
        """Answer kind address: resolve and judge, contact nobody."""
        url = urls.split(target.url)
        if url is None:
            return self._finish(_Finished(asking.failed(target, "malformed", f"url: {urls.why_not(target.url)}")))
        try:
            answer = await self.resolver.resolve(url.host.strip("[]"), url.port)
        except NoName as error:
            if error.reason == "own_trouble":
                reason = f"{failures.OWN_TROUBLE_IS}{error.detail}"
                self._throttle.is_shortage("returned", reason, self._engine.in_flight)
                return self._finish(_Finished(asking.returned(target, reason)))
            reason = f"{error.reason}: {error.detail}" if error.detail else error.reason
            return self._finish(_Finished(asking.failed(target, "dns_failure", reason)))
        except trio.Cancelled:
            self._finish(_Finished(asking.returned(target, "fetch is stopping")))
            raise
        return self._finish(_Finished(asking.resolved(target, answer, self.settings.allow_nets)))

    # --- out ---

    def _finish(self, finished: _Finished) -> None:
        (self._told if finished.capture is None else self._finished).append(finished)
        self._news.set()

    async def _pass_on(self) -> None:
        """Wait until lines that are not ours are published: only then may their input be let go."""
        if self._passing:
            self._passed = trio.Event()
            self._news.set()
            await self._passed.wait()

    async def _settle(self, committed: trio.Event) -> None:
        """Store and publish, group by group: a group is what came while the one before was written."""
        while self._finished or self._told or self._passing or not self._all_landed:
            group = self._next_group()
            if not group and not self._passing:
                self._news = trio.Event()
                await self._news.wait()
                continue
            lines, self._passing = self._passing, []
            passed = self._passed
            await self._store(group)
            lines += [records.encode(finished.outcome) for finished in group]
            await self._publish(lines)
            self.counts.update(finished.outcome.verdict for finished in group)
            passed.set()
        committed.set()

    def _next_group(self) -> list[_Finished]:
        """Take what is to be published next; while the disk is nearly full, only what needs no storing."""
        group, self._told = self._told, []
        if self._finished:
            self._room.look()
            if not self._room.is_paused:
                group += self._finished
                self._finished = []
        return group

    async def _store(self, group: list[_Finished]) -> None:
        """Make a group's answers durable and note in its outcomes where they lie. Raises DiskTrouble."""
        captures = [finished.capture for finished in group if finished.capture is not None]
        if captures:
            self._is_storing = True
            stored = iter(await trio.to_thread.run_sync(self.archive.store, captures))
            for finished in group:
                if finished.capture is not None:
                    asking.archived(finished.outcome, next(stored))
        for finished in group:
            if finished.exchange is not None:
                finished.exchange.close()
        self._is_storing = False
        self._stored.set()
        self._stored = trio.Event()

    def _while_paused(self) -> None:
        """After each look at a full disk: give back what has waited too long, and wake the writer when there is room."""
        if self._room.is_paused:
            late = [target for target in self._waiting if self._is_too_late(target)]
            self._waiting = deque(target for target in self._waiting if not self._is_too_late(target))
            self._fewer.set()
            for target in late:
                self._finish(_Finished(asking.returned(target, TOO_LATE)))
        self._news.set()

    def _give_up(self) -> None:
        """The disk stayed full: give back what waits, store what came, and end."""
        self._reading.cancel()
        self._return_all("the disk is full")

    def _return_all(self, reason: str) -> None:
        self._is_ending = True
        while self._waiting:
            self._finish(_Finished(asking.returned(self._waiting.popleft(), reason)))
        self._fewer.set()

    async def _publish(self, lines: list[bytes]) -> None:
        try:
            await self.sink.publish(lines)
        except ReaderGone as gone:
            # The archive is finished all the same; nothing more is read.
            self.drain.begin(gone.signum)
            self._reading.cancel()

    async def _obey(self) -> None:
        """On the first signal: start nothing more; at the end of the grace time cut off what is in the air."""
        await self.drain.stopping.wait()
        self.source.stop()
        self._return_all("fetch is stopping")
        self._room.resign()
        await trio.sleep_until(self.drain.grace_ends_at)
        # Reading stops too: who feeds us has not ended, and the leases of what it still sends run out.
        self._air.cancel_scope.cancel()


async def run(settings: Settings, say: Callable[[str], object]) -> FetchStage:
    """Open everything, fetch to the end of input, close everything in the order that loses nothing.

    Raises what FetchStage.run raises, BadRecord with --strict, and what the drain concludes.
    """
    with TrioDrain(settings.grace_s) as drain:
        source = open_async_source(settings.input, Trouble(say), at_most_once=True)
        sink = open_async_sink(settings.output, parse_routes(settings.routes))
        digests = DigestIndex(settings.dir / "warc" / "digests.lmdb")
        archive = WarcWriter(settings.dir / "warc", digests, settings.warcinfo())
        stage = FetchStage(settings, source, sink, archive, drain, say=say)
        try:
            await stage.run()
        finally:
            archive.close()
            digests.close()
            source.close()
            with trio.CancelScope(shield=True):
                await sink.aclose(end=not drain.stopping.is_set())
        source.trouble.check(settings.strict)
    return stage


@lru_cache(maxsize=65_536)
def _literal(host: str) -> str | None:
    """Give the address that a host is when it is written as one."""
    with suppress(ValueError):
        return str(ip_address(host.strip("[]")))
    return None
