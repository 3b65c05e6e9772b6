"""Where do a stage's records go, and when are they published?

publish() is one write of all lines; it returns when they are in the pipe, in the file, or in a published segment of a
spool: only then may the input be let go (law 4). --route sends records of one type elsewhere, before the others go.
When the reader has gone publish() raises ReaderGone once and drops what comes later, so that fetch can finish its WARC
files. Sink is for synchronous filters, AsyncSink for frontier and fetch. Seen from other stages this file is a part of
stages/lines.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Mapping, Sequence

import trio

from crawltool import limits, records
from crawltool.errors import Misuse
from crawltool.stages import where as places
from crawltool.stages.drain import ReaderGone
from crawltool.stages.where import Where
from crawltool.stores import atomic
from crawltool.stores.spool import SpoolWriter

PIPE_BUF = 4096  # what poll(2) promises a writer; POSIX promises 512
ROOM_WAIT_S = (0.01, 0.2)  # between looks at a full spool: first and longest
GONE_ERRNOS = frozenset({errno.EPIPE, errno.ECONNRESET})


class Outlet:
    """One place to write to. write() publishes and may block; awrite() is the same for trio."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Publish lines."""

    async def awrite(self, lines: Sequence[bytes]) -> None:
        """Publish lines, letting other tasks run meanwhile."""
        self.write(lines)
        await trio.lowlevel.checkpoint()

    async def flush(self) -> None:
        """Publish what a cancelled awrite() left over."""

    def close(self, *, end: bool = False) -> None:
        """Let go; end: nothing will ever be added (spools)."""


class FileOutlet(Outlet):
    """A file or a descriptor that takes all there is: an append-only file, or a pipe written with blocking writes."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd, self.name = fd, name

    def write(self, lines: Sequence[bytes]) -> None:
        """Write all lines with one write(2) (more only when the system takes less)."""
        view = memoryview(b"".join(lines))
        with atomic.disk(self.name):
            while view:
                view = view[self._write_some(view) :]

    def _write_some(self, view: memoryview) -> int:
        try:
            return os.write(self.fd, view)
        except BlockingIOError:  # somebody who shares this descriptor made it non-blocking
            select.select([], [self.fd], [])
            return 0
        except OSError as error:
            if error.errno in GONE_ERRNOS:
                raise ReaderGone from None
            raise

    def close(self, *, end: bool = False) -> None:
        """Close, so that the reader sees the end; a standard descriptor is left pointing nowhere."""
        if self.fd > 2:
            os.close(self.fd)
            return
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, self.fd)
        os.close(nowhere)


class PipeOutlet(FileOutlet):
    """A pipe, FIFO, socket or terminal written from trio.

    O_NONBLOCK belongs to the open file, which the shell, stderr and our neighbours may share, so it is set on a second
    opening of the same pipe through /proc; where that does not work, no write is larger than what poll(2) promises.
    """

    def __init__(self, fd: int, name: str) -> None:
        super().__init__(fd, name)
        self._own: int | None = None
        self._rest = memoryview(b"")
        self._turn = trio.Lock()
        with contextlib.suppress(OSError):
            self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)

    async def awrite(self, lines: Sequence[bytes]) -> None:
        """Write all lines. Cancelled in the middle of a line, it keeps the rest, which the next write sends first."""
        async with self._turn:
            await self._send()
            self._rest = memoryview(b"".join(lines))
            await self._send()

    async def flush(self) -> None:
        """Send what is left over."""
        async with self._turn:
            await self._send()

    async def _send(self) -> None:
        fd = self.fd if self._own is None else self._own
        while self._rest:
            if self._own is None:
                await trio.lowlevel.wait_writable(fd)
            try:
                sent = os.write(fd, self._rest[:PIPE_BUF] if self._own is None else self._rest)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(fd)
                continue
            except OSError as error:
                if error.errno in GONE_ERRNOS:
                    self._rest = memoryview(b"")
                    raise ReaderGone from None
                raise
            self._rest = self._rest[sent:]

    def close(self, *, end: bool = False) -> None:
        """Close both openings."""
        if self._own is not None:
            os.close(self._own)
            self._own = None
        super().close()


class SpoolOutlet(Outlet):
    """A spool. A forward spool that is full makes the writer wait."""

    def __init__(self, writer: SpoolWriter) -> None:
        self.writer = writer
        self._pending: list[bytes] = []
        self._added = self._published = 0  # lines, ever
        self._closes_at = 0.0  # trio time at which the segment of the pending lines closes
        self._is_full = trio.Event()
        self._turn = trio.Lock()

    def write(self, lines: Sequence[bytes]) -> None:
        """Publish a segment at once (or several): the filter's batch is what fills it."""
        pause = ROOM_WAIT_S[0]
        while self.writer.full():
            time.sleep(pause)
            pause = min(pause * 2, ROOM_WAIT_S[1])
        self.writer.publish(lines)

    async def awrite(self, lines: Sequence[bytes]) -> None:
        """Add lines to the pending segment and return when that is published: at SEGMENT_AGE_S at the latest, room given."""
        if not self._pending:
            self._closes_at, self._is_full = trio.current_time() + limits.SEGMENT_AGE_S, trio.Event()
        self._pending += lines
        self._added += len(lines)
        mine = self._added
        if len(self._pending) >= self.writer.records_max or sum(map(len, self._pending)) >= limits.SEGMENT_BYTES_MAX:
            self._is_full.set()
        with trio.move_on_at(self._closes_at):
            await self._is_full.wait()
        async with self._turn:
            if self._published < mine:
                await self._publish_pending()

    async def flush(self) -> None:
        """Publish what is pending."""
        async with self._turn:
            await self._publish_pending()

    async def _publish_pending(self) -> None:
        pause = ROOM_WAIT_S[0]
        while self.writer.full():
            await trio.sleep(pause)
            pause = min(pause * 2, ROOM_WAIT_S[1])
        lines = self._pending[:]
        # Not abandoned when cancelled: a segment is in or not, and we know which.
        await trio.to_thread.run_sync(self.writer.publish, lines)
        del self._pending[: len(lines)]
        self._published += len(lines)
        if self._pending:  # came while the thread wrote: their segment begins now
            self._closes_at, self._is_full = trio.current_time() + limits.SEGMENT_AGE_S, trio.Event()

    def close(self, *, end: bool = False) -> None:
        """Let go of the spool; with end its readers end when they have read it."""
        self.writer.close(end=end)


def parse_routes(routes: Sequence[str]) -> dict[str, str]:
    """Read the values of --route, TYPE=WHERE. Raises Misuse."""
    found: dict[str, str] = {}
    for route in routes:
        kind, equals, where = route.partition("=")
        if not equals or kind not in records.TYPES:
            raise Misuse(f"--route {route}: write TYPE=WHERE with one of {', '.join(records.TYPES)}")
        found[kind] = where
    return found


def _open_outlet(text: str, *, stdout: int, records_max: int, depth_max: int | None, durable: bool, in_trio: bool) -> Outlet:
    place = places.parse(text)
    if place.kind == "null":
        return Outlet()
    if place.kind == "spool":
        return SpoolOutlet(SpoolWriter(place.name, records_max=records_max, depth_max=depth_max, durable=durable))
    fd = stdout if place.kind == "std" else _open_file(place)
    return PipeOutlet(fd, text) if in_trio and not stat.S_ISREG(os.fstat(fd).st_mode) else FileOutlet(fd, text)


def _open_file(place: Where) -> int:
    """Open a file for appending: an interrupted stage that is run again must not wipe out what it had written."""
    if place.kind == "set" or place.name.endswith((".zst", ".gz")):
        raise Misuse(f"{place.name}: records are written to a plain file, or to spool:DIR")
    with atomic.disk(place.name):
        fd = os.open(place.name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a FIFO: opened for writing only, else a gone reader is never seen
        os.close(fd)
        return os.open(place.name, os.O_WRONLY | os.O_CLOEXEC)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")  # a kill tore the last line; the next record gets its own
    return fd


class _Routes:
    """Which line goes to which outlet."""

    def __init__(self, main: Outlet, routes: Mapping[str, Outlet]) -> None:
        self.main, self.routes = main, dict(routes)
        self.gone = False  # the reader of the main output has gone

    def sort(self, lines: Sequence[bytes]) -> list[tuple[Outlet, Sequence[bytes]]]:
        """Give what each outlet gets, the main one last (a text before its outcome)."""
        if not self.routes:
            return [(self.main, lines)] if lines else []
        sorted_: dict[str | None, list[bytes]] = {}
        for line in lines:
            kind = records.type_of(line)
            sorted_.setdefault(kind if kind in self.routes else None, []).append(line)
        rest = sorted_.pop(None, None)
        found: list[tuple[Outlet, Sequence[bytes]]] = [(self.routes[str(kind)], some) for kind, some in sorted_.items()]
        return [*found, (self.main, rest)] if rest else found

    def all(self) -> list[Outlet]:
        """Give every outlet, the main one last."""
        return [*self.routes.values(), self.main]


class Sink(_Routes):
    """For synchronous filters."""

    def publish(self, lines: Sequence[bytes]) -> None:
        """Publish lines, each with its newline, with one write. Raises ReaderGone, DiskTrouble."""
        if self.gone:
            return
        for outlet, some in self.sort(lines):
            try:
                outlet.write(some)
            except ReaderGone:
                self.gone = True
                raise

    def close(self, *, end: bool = False) -> None:
        """Let go of all outlets; end: at the natural end of input, so that a spool's readers end too."""
        for outlet in self.all():
            outlet.close(end=end)


class AsyncSink(_Routes):
    """For trio stages; any task may publish."""

    async def publish(self, lines: Sequence[bytes]) -> None:
        """Publish lines, each with its newline. Raises ReaderGone, DiskTrouble."""
        if self.gone:
            return
        for outlet, some in self.sort(lines):
            try:
                await outlet.awrite(some)
            except ReaderGone:
                self.gone = True
                raise

    async def aclose(self, *, end: bool = False) -> None:
        """Publish what cancelled calls left over, then let go; the reader sees the end of file."""
        for outlet in self.all():
            try:
                if not self.gone:
                    await outlet.flush()
            finally:
                outlet.close(end=end)


def open_sink(
    where: str,
    routes: Mapping[str, str] | None = None,
    *,
    depth_max: int | None = limits.SPOOL_DEPTH_MAX,
    stdout: int = 1,
) -> Sink:
    """Open places for a synchronous filter. depth_max: None for an inbox. Raises Misuse, CannotHold, DiskTrouble."""

    def one(text: str) -> Outlet:
        return _open_outlet(
            text, stdout=stdout, records_max=limits.SEGMENT_RECORDS_MAX, depth_max=depth_max, durable=True, in_trio=False
        )

    return Sink(one(where), {kind: one(text) for kind, text in (routes or {}).items()})


def open_async_sink(
    where: str, routes: Mapping[str, str] | None = None, *, targets: bool = False, depth_max: int | None = limits.SPOOL_DEPTH_MAX
) -> AsyncSink:
    """Open places for a trio stage, inside trio.run. targets: the lines are the frontier's (small segments, no fsync)."""

    def one(text: str) -> Outlet:
        most = limits.TARGET_SEGMENT_RECORDS_MAX if targets else limits.SEGMENT_RECORDS_MAX
        return _open_outlet(text, stdout=1, records_max=most, depth_max=depth_max, durable=not targets, in_trio=True)

    return AsyncSink(one(where), {kind: one(text) for kind, text in (routes or {}).items()})
